//! The progress bar of a terminal: rows, bytes, chunks verified, phase.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use runtime::Progress;

const REFRESH: Duration = Duration::from_millis(200);

/// A bar on standard error that follows the counters until it is dropped; nothing without a terminal.
pub(crate) struct Bar {
    task: Option<tokio::task::JoinHandle<()>>,
    bar: ProgressBar,
}

impl Bar {
    /// Starts following.
    pub(crate) fn follow(progress: Progress) -> Self {
        if !std::io::stderr().is_terminal() {
            return Bar { task: None, bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        let shown = bar.clone();
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(REFRESH);
            loop {
                ticks.tick().await;
                let now = progress.read();
                shown.set_message(format!(
                    "{}: {} rows, {}, {} of {} chunks verified",
                    now.stage.text(),
                    HumanCount(now.rows_read),
                    HumanBytes(now.bytes_encoded),
                    now.chunks_verified,
                    now.chunks_sealed,
                ));
                shown.tick();
            }
        });
        Bar { task: Some(task), bar }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        self.bar.finish_and_clear();
    }
}
