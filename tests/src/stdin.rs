//! The end of standard input as the end of a server.

use std::io::Read as _;

/// Returns when standard input has ended; never if that is not `wanted`.
pub(crate) async fn ended(wanted: bool) {
    if !wanted {
        return std::future::pending().await;
    }
    let (sender, end) = tokio::sync::oneshot::channel();
    // A thread of its own: a runtime would wait for a blocking read when it ends.
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while matches!(std::io::stdin().read(&mut buffer), Ok(read) if read > 0) {}
        // The server may have stopped for another reason.
        let _ = sender.send(());
    });
    // A sender that is gone without a word is an end as well.
    let _ = end.await;
}
