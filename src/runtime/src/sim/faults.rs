//! What a network, a disk and a kubelet can do to one call.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use contract::error::PortError;
use tokio_util::sync::CancellationToken;

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It did not happen, and the caller was told.
    RefusedTold,
    /// It did not happen, and the caller does not know.
    LostRequest,
    /// It happened, and the caller does not know.
    LostAnswer,
    /// It has not happened yet, the caller does not know, and it happens later.
    Late,
    /// The process dies before the call.
    DiesBefore,
    /// The process dies after it happened, before the answer.
    DiesAfter,
    /// The process dies after the call was sent, and it happens later.
    DiesLate,
}

impl Fault {
    const ALL: [Fault; 7] = [
        Fault::RefusedTold,
        Fault::LostRequest,
        Fault::LostAnswer,
        Fault::Late,
        Fault::DiesBefore,
        Fault::DiesAfter,
        Fault::DiesLate,
    ];
}

impl Fault {
    /// The faults that a call can have: memory has no network, a read has no effect that comes late.
    pub(super) fn of(site: &Site) -> impl Iterator<Item = Fault> {
        let call = site.call.as_str();
        let random = call == "world random";
        let reads = call.starts_with("journal ") || call.starts_with("source ");
        let local = call.starts_with("append ");
        Fault::ALL.into_iter().filter(move |fault| match fault {
            Fault::RefusedTold => true,
            Fault::DiesBefore => !random,
            Fault::LostRequest => !random && !call.starts_with("journal "),
            Fault::LostAnswer | Fault::DiesAfter => !random && !reads,
            Fault::Late | Fault::DiesLate => !random && !reads && !local,
        })
    }
}

/// One call: what it is, and which one of its kind, counted over all processes of a world.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) call: String,
    pub(super) occurrence: u32,
}

/// Code of every injected failure.
pub(super) const INJECTED: &str = "sim.injected";

#[derive(Debug, Default)]
struct Inner {
    planned: Vec<(Site, Fault)>,
    hits: Vec<(Site, Fault)>,
    trace: Vec<Site>,
    counts: HashMap<String, u32>,
    stops_at: Option<(Site, CancellationToken)>,
    disk_fills_at: Option<Site>,
    disk_is_full: bool,
    dead: bool,
    death: CancellationToken,
    buried: Arc<(Mutex<bool>, Condvar)>,
}

/// The injector, shared by all ports of a world.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Inner>>);

impl Faults {
    pub(super) fn plan(&self, site: Site, fault: Fault) {
        self.lock().planned.push((site, fault));
    }

    /// As this call begins the process is asked to stop.
    pub(super) fn stop_at(&self, site: Site, stop: CancellationToken) {
        self.lock().stops_at = Some((site, stop));
    }

    /// From this append on no append of the process succeeds.
    pub(super) fn fill_disk_at(&self, site: Site) {
        self.lock().disk_fills_at = Some(site);
    }

    pub(super) fn disk_is_full(&self) -> bool {
        self.lock().disk_is_full
    }

    /// The faults that took place.
    pub(super) fn hits(&self) -> Vec<(Site, Fault)> {
        self.lock().hits.clone()
    }

    /// Every call so far, in order.
    pub(super) fn trace(&self) -> Vec<Site> {
        self.lock().trace.clone()
    }

    /// A new process begins: nothing of the former one runs any more.
    pub(super) fn revive(&self) -> CancellationToken {
        let mut inner = self.lock();
        inner.dead = false;
        inner.disk_is_full = false;
        inner.buried = Arc::default();
        inner.death = CancellationToken::new();
        inner.death.clone()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// Kills the process; nothing that it had in flight has an effect from now on.
    pub(super) fn kill(&self) {
        let mut inner = self.lock();
        inner.dead = true;
        inner.death.cancel();
    }

    /// Kills the process from a thread of its own, which gets no further until everything else of it is gone.
    pub(super) fn kill_and_wait(&self) {
        let buried = Arc::clone(&self.lock().buried);
        self.kill();
        let gone = buried.0.lock().unwrap();
        drop(buried.1.wait_while(gone, |gone| !*gone).unwrap());
    }

    /// Nothing of the process is run any more.
    pub(super) fn bury(&self) {
        let buried = Arc::clone(&self.lock().buried);
        *buried.0.lock().unwrap() = true;
        buried.1.notify_all();
    }

    /// Counts a call and says how it goes wrong, if it does.
    pub(super) fn enter(&self, call: &str) -> Option<Fault> {
        let mut inner = self.lock();
        let count = inner.counts.entry(call.to_owned()).or_default();
        let site = Site { call: call.to_owned(), occurrence: *count };
        *count += 1;
        inner.trace.push(site.clone());
        if let Some((_, stop)) = inner.stops_at.take_if(|(at, _)| *at == site) {
            stop.cancel();
        }
        if inner.disk_fills_at.as_ref() == Some(&site) {
            inner.disk_fills_at = None;
            inner.disk_is_full = true;
            inner.hits.push((site.clone(), Fault::RefusedTold));
        }
        let at = inner.planned.iter().position(|(planned, _)| *planned == site)?;
        let (site, fault) = inner.planned.remove(at);
        inner.hits.push((site, fault));
        Some(fault)
    }

    /// A call over the network: `effect` happens or not, the caller is told or not; an effect that comes late goes to
    /// `postpone`.
    pub(super) async fn call<R: Send>(
        &self,
        call: &str,
        effect: impl FnOnce() -> Result<R, PortError> + Send + 'static,
        postpone: impl FnOnce(Late),
    ) -> Result<R, PortError> {
        // Others get their turn, so that workers interleave.
        tokio::task::yield_now().await;
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
        match self.enter(call) {
            None => effect(),
            Some(Fault::RefusedTold) => Err(refused()),
            Some(Fault::LostRequest) => Err(lost()),
            Some(Fault::LostAnswer) => effect().and_then(|_| Err(lost())),
            Some(Fault::Late) => {
                postpone(Box::new(move || drop(effect())));
                Err(lost())
            }
            Some(fault) => {
                match fault {
                    Fault::DiesAfter => drop(effect()),
                    Fault::DiesLate => postpone(Box::new(move || drop(effect()))),
                    _ => {}
                }
                self.kill();
                std::future::pending().await
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

/// An effect that is still on its way.
pub(super) type Late = Box<dyn FnOnce() + Send>;

pub(super) fn refused() -> PortError {
    PortError::not_done(INJECTED, "refused by the simulation")
}

pub(super) fn lost() -> PortError {
    PortError::unknown(INJECTED, "cut by the simulation")
}
