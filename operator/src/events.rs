//! Events: best effort, for people. They fail in a namespace that is being deleted, and nothing depends on them.

use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};

use crate::api::call;
use crate::crd::NativeTransfer;
use crate::names;
use crate::reconcile::decide::Note;

/// Longest note of an event, bytes; Kubernetes takes 1 kB.
const NOTE_BYTES_MAX: usize = 1000;

/// Writes events about transfers. Equal ones within six minutes become one series.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}

impl Events {
    /// Events of the operator process `identity`.
    pub fn new(client: Client, identity: &str) -> Self {
        let reporter = Reporter { controller: names::FIELD_MANAGER.to_owned(), instance: Some(identity.to_owned()) };
        Events { recorder: Recorder::new(client, reporter) }
    }

    /// Tells the notes of one decision.
    pub async fn publish(&self, transfer: &NativeTransfer, notes: &[Note]) {
        let about = transfer.object_ref(&());
        for note in notes {
            let event = Event {
                type_: if note.warning { EventType::Warning } else { EventType::Normal },
                reason: note.reason.to_owned(),
                note: Some(bounded(&note.message)),
                action: "Reconcile".to_owned(),
                secondary: None,
            };
            if let Err(error) = call("write an event", self.recorder.publish(&event, &about)).await {
                tracing::debug!(%error, "an event was not written");
                return;
            }
        }
    }
}

fn bounded(text: &str) -> String {
    let mut end = text.len().min(NOTE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
