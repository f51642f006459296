//! The journal behind one thread: appends of concurrent workers share an fsync (group commit, design.md 3.15).

use contract::error::{Fate, PortError};
use contract::port::journal::{Appended, Journal, JournalHeader, NewRecord, Record};
use tokio::sync::{mpsc, oneshot};

enum Request {
    Append(Vec<NewRecord>, oneshot::Sender<Result<Appended, PortError>>),
    Records(String, oneshot::Sender<Result<Vec<Record>, PortError>>),
    LatestShared(&'static str, String, oneshot::Sender<Result<Option<Record>, PortError>>),
}

/// A handle that any worker can clone. A returned append is durable.
#[derive(Debug, Clone)]
pub(crate) struct JournalHandle {
    requests: mpsc::UnboundedSender<Request>,
    header: JournalHeader,
}

impl JournalHandle {
    /// Moves a journal to its thread. The thread ends, and the journal closes, when the last handle is dropped.
    pub(crate) fn spawn<J: Journal + 'static>(journal: J) -> Self {
        let (requests, receiver) = mpsc::unbounded_channel();
        let header = journal.header().clone();
        tokio::task::spawn_blocking(move || serve(journal, receiver));
        JournalHandle { requests, header }
    }

    /// Identity, epoch and nonce of this opening.
    pub(crate) fn header(&self) -> &JournalHeader {
        &self.header
    }

    /// Appends records; durable when it returns.
    pub(crate) async fn append(&self, records: Vec<NewRecord>) -> Result<Appended, PortError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Append(records, reply))?;
        answer.await.map_err(|_| stopped())?
    }

    /// All records of one run.
    pub(crate) async fn records(&self, run: &str) -> Result<Vec<Record>, PortError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Records(run.to_string(), reply))?;
        answer.await.map_err(|_| stopped())?
    }

    /// The latest shared record of a kind and key.
    pub(crate) async fn latest_shared(&self, kind: &'static str, key: &str) -> Result<Option<Record>, PortError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::LatestShared(kind, key.to_string(), reply))?;
        answer.await.map_err(|_| stopped())?
    }

    fn send(&self, request: Request) -> Result<(), PortError> {
        self.requests.send(request).map_err(|_| stopped())
    }
}

fn stopped() -> PortError {
    PortError::unknown(
        "native_transfer.journal_unavailable",
        "the journal's thread ended: look at the run with inspect",
    )
}

type Waiting = (Vec<NewRecord>, oneshot::Sender<Result<Appended, PortError>>);

fn serve<J: Journal>(mut journal: J, mut receiver: mpsc::UnboundedReceiver<Request>) {
    while let Some(request) = receiver.blocking_recv() {
        let mut appends: Vec<Waiting> = Vec::new();
        let mut next = Some(request);
        while let Some(request) = next {
            match request {
                Request::Append(records, reply) => appends.push((records, reply)),
                // Why first: a reader must see everything that was sent before it.
                other => {
                    commit(&mut journal, std::mem::take(&mut appends));
                    answer(&journal, other);
                }
            }
            next = receiver.try_recv().ok();
        }
        commit(&mut journal, appends);
    }
}

fn answer<J: Journal>(journal: &J, request: Request) {
    // Why ignored: a caller that no longer waits needs no answer.
    match request {
        Request::Records(run, reply) => drop(reply.send(journal.records(&run))),
        Request::LatestShared(kind, key, reply) => drop(reply.send(journal.latest_shared(kind, &key))),
        Request::Append(..) => {}
    }
}

/// Appends all waiting requests in one transaction; if that is refused, each on its own, so that one worker's refused
/// record does not fail another's.
fn commit<J: Journal>(journal: &mut J, mut waiting: Vec<Waiting>) {
    if waiting.len() > 1 {
        let all: Vec<NewRecord> = waiting.iter().flat_map(|(records, _)| records.iter().cloned()).collect();
        match journal.append(&all) {
            Ok(appended) => {
                for (_, reply) in waiting {
                    drop(reply.send(Ok(appended)));
                }
                return;
            }
            Err(error) if error.fate == Fate::Unknown => {
                for (_, reply) in waiting {
                    let same = PortError {
                        code: error.code.clone(),
                        message: error.message.clone(),
                        fate: Fate::Unknown,
                        source: None,
                    };
                    drop(reply.send(Err(same)));
                }
                return;
            }
            Err(_) => {}
        }
    }
    for (records, reply) in waiting.drain(..) {
        drop(reply.send(journal.append(&records)));
    }
}
