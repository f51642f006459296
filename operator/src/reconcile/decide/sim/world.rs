//! API server, kubelet, node, people and two operator processes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::observation::{Claim, Competitor, Observation, Pod, Standing, Wish};
use super::super::state::{Outcome, State, WorkerId};
use super::super::{Decision, Step, decide};
use super::engine::{self, Attempt, Journal};
use super::objects::{Process, SimClaim, SimPod, rules};
use crate::crd::status::WorkerPhase;

/// An operator process between its look and its step.
#[derive(Debug, Clone, Default)]
struct Operator {
    pending: Option<(Observation, u64, Decision, bool)>,
}

pub(super) struct World {
    random: u64,
    faults: bool,
    now: i64,
    wish: Wish,
    deleting: bool,
    guarded: bool,
    pub(super) gone: bool,
    busy: bool,
    generation: i64,
    state: State,
    version: u64,
    pods: Vec<SimPod>,
    claim: Option<SimClaim>,
    attempts: BTreeMap<(String, u32), Attempt>,
    used_tokens: BTreeSet<String>,
    epoch: u64,
    uids: u64,
    operators: [Operator; 2],
    leader: usize,
    /// Older looks with their versions, for a process that reads an old cache.
    past: VecDeque<(Observation, u64)>,
    story: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let attempts = 1 + u32::try_from(seed % 3).expect("small");
        World {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            faults: true,
            now: 1_000,
            wish: Wish {
                token: "1".into(),
                suspend: false,
                attempts,
                deadline_seconds: seed.is_multiple_of(5).then_some(400),
                backoff_seconds: 10,
                retention_seconds: None,
                publish_on_delete: false,
                plan: Ok("plan".into()),
                template: "t1".into(),
            },
            deleting: false,
            guarded: false,
            gone: false,
            busy: false,
            generation: 1,
            state: State::default(),
            version: 1,
            pods: Vec::new(),
            claim: None,
            attempts: BTreeMap::new(),
            used_tokens: BTreeSet::new(),
            epoch: 0,
            uids: 0,
            operators: Default::default(),
            leader: 0,
            past: VecDeque::new(),
            story: Vec::new(),
        }
    }

    fn choose(&mut self, of: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        u32::try_from((self.random >> 33) % u64::from(of)).expect("below of")
    }

    fn uid(&mut self) -> String {
        self.uids += 1;
        format!("u{}", self.uids)
    }

    pub(super) fn story(&self) -> String {
        self.story.join("\n")
    }

    fn tell(&mut self, what: impl Into<String>) {
        self.story.push(what.into());
    }

    pub(super) fn look(&self) -> Observation {
        Observation {
            now: self.now,
            namespace: "ns".into(),
            uid: "transfer".into(),
            created_at: 10,
            generation: self.generation,
            deleting: self.deleting,
            guarded: self.guarded,
            wish: self.wish.clone(),
            state: self.state.clone(),
            pods: self.pods.iter().filter(|pod| pod.object).map(|pod| self.seen(pod)).collect(),
            claim: self.claim.as_ref().map_or(Claim::Absent, |claim| Claim::Present {
                uid: claim.uid.clone(),
                guarded: claim.guarded,
                deleting: claim.deleting,
                lost: false,
                short: false,
            }),
            competitors: if self.busy {
                vec![Competitor {
                    namespace: "ns".into(),
                    name: "other".into(),
                    uid: "a".into(),
                    created_at: 5,
                    standing: Standing::Holds,
                }]
            } else {
                Vec::new()
            },
            used_tokens: self.used_tokens.clone(),
            refused: None,
        }
    }

    fn seen(&self, pod: &SimPod) -> Pod {
        let ours = self.state.run.as_ref().is_some_and(|run| run.token == pod.token);
        Pod {
            name: pod.name(),
            uid: pod.uid.clone(),
            worker: ours.then_some(pod.id),
            unread: pod.unread,
            deleting: pod.deleting,
            life: pod.life(),
            receipt: pod.message.clone().filter(|_| !pod.lost),
            template: pod.template.clone(),
            created_at: pod.created_at,
        }
    }

    /// One move of anybody.
    pub(super) fn disturb(&mut self) {
        self.now += 1 + i64::from(self.choose(4));
        match self.choose(20) {
            0..8 => {
                let which = usize::from(self.choose(5) == 0);
                self.operate(which);
            }
            8..14 => self.run_some_pod(),
            14..17 => self.hurt(),
            17 => self.person(),
            _ => self.now += 20,
        }
    }

    /// Faults stop: everybody gets on with it until nothing moves.
    pub(super) fn calm(&mut self, seed: u64) {
        self.faults = false;
        self.busy = false;
        self.wish.suspend = false;
        self.wish.publish_on_delete = true;
        self.operators = Default::default();
        self.tell("-- calm --");
        for pod in &mut self.pods {
            pod.reachable = true;
        }
        for _ in 0..600 {
            if self.gone {
                return;
            }
            let before = (self.version, self.pods.len());
            self.past.clear();
            for _ in 0..3 {
                self.operate(0);
            }
            for at in 0..self.pods.len() {
                for _ in 0..4 {
                    self.run_pod(at);
                }
            }
            let decision = decide(&self.look());
            let idle = decision.step == Step::Nothing && decision.state == self.state;
            if idle && before == (self.version, self.pods.len()) {
                match decision.again_after {
                    None => return,
                    Some(seconds) => self.now += seconds.max(1),
                }
            }
        }
        let run = self.state.run.as_ref();
        assert!(
            run.is_some_and(|run| run.rest.is_some()) && !self.deleting,
            "seed {seed} does not come to rest: {:#?}\n{}",
            self.state,
            self.story()
        );
    }

    fn operate(&mut self, which: usize) {
        if self.gone {
            return;
        }
        if which != self.leader {
            // Fail-stop: a lease is lost before another takes it, and no call outlives it. A status write of the old
            // leader may still be under way: compare-and-swap judges it.
            let old = &mut self.operators[self.leader];
            old.pending =
                old.pending.take().filter(|(look, _, decision, stored)| !stored && decision.state != look.state);
            self.leader = which;
        }
        match self.operators[which].pending.take() {
            None => {
                let (look, version) = if self.faults && self.choose(6) == 0 && !self.past.is_empty() {
                    let at = self.choose(u32::try_from(self.past.len()).expect("few"));
                    self.past[usize::try_from(at).expect("few")].clone()
                } else {
                    (self.look(), self.version)
                };
                let decision = decide(&look);
                self.past.push_back((look.clone(), version));
                self.past.truncate(6);
                self.operators[which].pending = Some((look, version, decision, false));
            }
            Some((look, version, decision, false)) => {
                if self.crash() {
                    return;
                }
                if decision.state != look.state && !self.store(&decision.state, version) {
                    return;
                }
                let version = version + u64::from(decision.state != look.state);
                self.operators[which].pending = Some((look, version, decision, true));
            }
            // The resource is read again right before a step: an old look is noticed by its version.
            Some((_, version, decision, true)) => {
                if version == self.version && !self.crash() {
                    self.perform(&decision.step);
                }
            }
        }
    }

    fn crash(&mut self) -> bool {
        self.faults && self.choose(12) == 0
    }

    fn store(&mut self, state: &State, version: u64) -> bool {
        if version != self.version {
            return false;
        }
        assert!(state.epoch >= self.state.epoch, "the epoch fell");
        if let (Some(old), Some(new)) = (&self.state.run, &state.run) {
            rules(old, new);
            if old.token != new.token {
                self.used_tokens.insert(old.token.clone());
                assert!(!self.used_tokens.contains(&new.token), "token {} was taken up twice", new.token);
            } else {
                assert!(new.attempt >= old.attempt, "the attempt fell");
                assert!(
                    old.publication.outcome != Outcome::Committed || new.publication.outcome == Outcome::Committed,
                    "a commit was forgotten"
                );
            }
        }
        self.state = state.clone();
        self.version += 1;
        let worker = state.run.as_ref().and_then(|run| run.worker.as_ref()).map(|worker| (worker.id, worker.settling));
        self.tell(format!(
            "{} status {:?} {worker:?} {:?}",
            self.now,
            state.phase,
            state.run.as_ref().map(|r| r.custody)
        ));
        true
    }

    fn perform(&mut self, step: &Step) {
        if *step != Step::Nothing {
            self.tell(format!("{} step {step:?}", self.now));
        }
        match step {
            Step::Nothing => {}
            Step::Guard => {
                if !self.deleting {
                    self.guarded = true;
                    self.version += 1;
                }
            }
            Step::CreateClaim => {
                if self.claim.is_none() {
                    let uid = self.uid();
                    self.claim = Some(SimClaim { uid, guarded: true, deleting: false });
                }
            }
            Step::CreatePod(worker) => self.create(worker.id),
            Step::StopPod { uid, only_unstarted, .. } => {
                let found = self.pods.iter().position(|pod| pod.object && pod.uid == *uid);
                if let Some(at) = found
                    && (!*only_unstarted || self.pods[at].process == Process::Waiting)
                {
                    self.delete(at);
                }
            }
            Step::ReleasePod { uid, .. } => {
                let Some(pod) = self.pods.iter_mut().find(|pod| pod.object && pod.uid == *uid) else { return };
                assert_ne!(pod.process, Process::Alive, "a living pod was let go");
                pod.unread = false;
                pod.object = !pod.deleting;
            }
            Step::RemovePod { uid, .. } => {
                let Some(pod) = self.pods.iter_mut().find(|pod| pod.object && pod.uid == *uid) else { return };
                assert!(!pod.unread && pod.process != Process::Alive, "a pod was removed unread");
                pod.object = false;
            }
            Step::GrowClaim { .. } => panic!("no claim of the simulation is short"),
            Step::ReleaseClaim { uid } => {
                self.nothing_held("the claim was let go");
                if self.claim.as_ref().is_some_and(|claim| claim.uid == *uid) {
                    self.claim = None;
                }
            }
            Step::Unguard => {
                self.nothing_held("the finalizer was removed");
                assert!(self.deleting);
                self.guarded = false;
                self.gone = true;
            }
        }
    }

    fn nothing_held(&self, what: &str) {
        for ((token, number), attempt) in &self.attempts {
            assert!(
                !attempt.journal.holds(),
                "{what} while {token}/{number} is {attempt:?}\n{:#?}\n{}",
                self.state,
                self.story()
            );
        }
    }

    fn create(&mut self, id: WorkerId) {
        let Some(token) = self.state.run.as_ref().map(|run| run.token.clone()) else { return };
        let name = format!("{token}-{}-{}-{}", id.phase.as_str(), id.attempt, id.r#try);
        if self.pods.iter().any(|pod| pod.object && pod.name() == name) {
            return;
        }
        for other in &self.pods {
            let may_act =
                other.process == Process::Alive || other.object && other.process == Process::Waiting && !other.deleting;
            assert!(
                !may_act || other.vanished,
                "{name} was created beside {} that may act\n{:#?}\n{}",
                other.name(),
                self.state,
                self.story()
            );
        }
        if id.phase == WorkerPhase::Publish {
            let journal = self.attempts.get(&(token.clone(), id.attempt)).map_or(Journal::Absent, |a| a.journal);
            let sealed = matches!(
                journal,
                Journal::Sealed | Journal::Publishing | Journal::Published | Journal::Succeeded | Journal::Settled
            );
            assert!(sealed, "publish in journal state {journal:?}");
        }
        let uid = self.uid();
        self.pods.push(SimPod {
            token,
            id,
            uid,
            template: self.wish.template.clone(),
            created_at: self.now,
            object: true,
            unread: true,
            deleting: false,
            reachable: true,
            process: Process::Waiting,
            ever_started: false,
            lost: false,
            claimed: false,
            terminated: false,
            message: None,
            vanished: false,
        });
    }

    /// SIGTERM, or the end of a pod that never ran.
    fn delete(&mut self, at: usize) {
        let pod = &mut self.pods[at];
        pod.deleting = true;
        pod.terminated = true;
        if pod.process == Process::Waiting && pod.reachable {
            pod.process = Process::Ended;
        }
        if pod.process == Process::Ended && !pod.unread {
            pod.object = false;
        }
    }

    fn run_some_pod(&mut self) {
        if !self.pods.is_empty() {
            let at = self.choose(u32::try_from(self.pods.len()).expect("few"));
            self.run_pod(usize::try_from(at).expect("few"));
        }
    }

    fn run_pod(&mut self, at: usize) {
        let key = (self.pods[at].token.clone(), self.pods[at].id.attempt);
        match self.pods[at].process {
            Process::Ended => {}
            Process::Waiting => {
                let pod = &mut self.pods[at];
                if pod.object && pod.reachable && !pod.deleting {
                    pod.process = Process::Alive;
                    pod.ever_started = true;
                }
            }
            Process::Alive => {
                let id = self.pods[at].id;
                let locks = matches!(id.phase, WorkerPhase::Extract | WorkerPhase::Publish);
                let locked = locks
                    && self.pods.iter().enumerate().any(|(other, pod)| {
                        other != at
                            && pod.process == Process::Alive
                            && matches!(pod.id.phase, WorkerPhase::Extract | WorkerPhase::Publish)
                    });
                // An orphan that an operator has stopped waiting for is fenced off by whoever opened the journal after it.
                if locked && self.pods[at].vanished || self.gone {
                    self.pods[at].process = Process::Ended;
                    return;
                }
                self.epoch += u64::from(locks);
                let epoch = self.epoch;
                let mut attempt = self.attempts.get(&key).copied().unwrap_or_default();
                let (mut claimed, terminated) = (self.pods[at].claimed, self.pods[at].terminated);
                let faults = self.faults;
                let receipt = {
                    let mut choose = |of: u32| if faults { self.choose(of) } else { 0 };
                    engine::step(id, &mut attempt, &mut claimed, terminated, epoch, &mut choose)
                };
                assert!(attempt.opened <= 1, "the source was opened twice for {key:?}\n{}", self.story());
                assert!(attempt.commits <= 1, "{key:?} was committed twice");
                self.attempts.insert(key, attempt);
                let cut = self.faults && self.choose(8) == 0;
                let pod = &mut self.pods[at];
                pod.claimed = claimed;
                if let Some(receipt) = receipt {
                    pod.process = Process::Ended;
                    pod.message = (!cut).then_some(receipt);
                    let told = format!("{} {} ends: {:?}", self.now, pod.name(), pod.message);
                    self.tell(told);
                }
                let commits: u32 = self
                    .attempts
                    .iter()
                    .filter(|((token, _), _)| *token == self.pods[at].token)
                    .map(|(_, attempt)| attempt.commits)
                    .sum();
                assert!(commits <= 1, "one token was committed twice\n{}", self.story());
            }
        }
    }

    fn hurt(&mut self) {
        if self.pods.is_empty() {
            return;
        }
        let at = usize::try_from(self.choose(u32::try_from(self.pods.len()).expect("few"))).expect("few");
        let what = self.choose(6);
        let name = self.pods[at].name();
        let recorded =
            self.state.run.as_ref().and_then(|run| run.worker.as_ref()).and_then(|worker| worker.uid.clone());
        let pod = &mut self.pods[at];
        match what {
            0 | 1 if pod.process == Process::Alive => pod.process = Process::Ended,
            2 => pod.reachable = false,
            3 if !pod.reachable => {
                pod.reachable = true;
                if pod.process == Process::Ended && pod.ever_started && pod.message.is_none() {
                    pod.lost = true;
                }
            }
            4 if pod.object => self.delete(at),
            // A person takes the object away by force: after it was seen, and with the warning read.
            5 if pod.object && !pod.reachable && recorded.as_deref() == Some(pod.uid.as_str()) => {
                pod.object = false;
                pod.vanished = true;
                if pod.process == Process::Waiting {
                    pod.process = Process::Ended;
                }
            }
            _ => return,
        }
        self.tell(format!("{} hurt {what} {name}", self.now));
    }

    fn person(&mut self) {
        match self.choose(9) {
            0 | 1 => self.wish.suspend = !self.wish.suspend,
            2 => self.busy = !self.busy,
            3 => self.wish.template = format!("t{}", self.choose(3)),
            4 => {
                let settled = self.state.run.as_ref().is_some_and(|run| run.rest.is_some() && run.is_settled());
                let again = self.choose(3) == 0;
                if settled && !self.deleting {
                    self.wish.token = match self.used_tokens.iter().next().filter(|_| again) {
                        Some(used) => used.clone(),
                        None => format!("{}x", self.wish.token),
                    };
                }
            }
            5 if self.choose(2) == 0 => {
                self.deleting = true;
                self.gone = !self.guarded;
            }
            6 => self.wish.publish_on_delete = !self.wish.publish_on_delete,
            _ => return,
        }
        self.generation += 1;
        self.version += 1;
        self.tell(format!(
            "{} person: suspend {} deleting {} token {}",
            self.now, self.wish.suspend, self.deleting, self.wish.token
        ));
    }
}
