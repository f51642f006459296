//! A node that does not report.

use e2e::Case;
use e2e::case::condition;
use servers::sqlserver::control::{Breakpoint, Then, When};

/// Starts the kubelet again whatever becomes of the case.
struct Stopped<'a>(&'a e2e::Cluster);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.start_kubelet();
    }
}

pub(crate) fn stopped_while_the_worker_dies() {
    let mut case = Case::alone("kubelet");
    case.table("t", 100);
    let held = case.hold(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.cluster.stop_kubelet();
    let stopped = Stopped(case.cluster);
    case.kill_worker("extract");
    case.release(held, Then::DropConnection);
    let unknown = case.until_reason("t", "Ready", "WorkerUnreachable");
    assert_eq!(unknown["status"]["phase"], "CustodyUnknown");
    let ready = condition(&unknown, "Ready").expect("a condition");
    assert_eq!(ready["status"], "Unknown");
    assert_eq!(case.pods("extract").len(), 1, "nothing is started without proof");
    drop(stopped);
    case.until_phase("t", "ReextractRequired");
    case.assert_untouched("t");
}
