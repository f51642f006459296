//! Source qualification: the same SELECT several times, each read to its proven end, encoded and sealed like a run's, and
//! thrown away. The target is only looked at, for the types of its columns (spec raw-snapshot-design, "P3").

use std::path::PathBuf;
use std::time::Instant;

use contract::canon::{Json, decode_object};
use contract::capacity as space;
use contract::digest::{Digest, native_multiset_digest};
use contract::error::{Code, PortError, Refusal};
use contract::manifest::Plan;
use contract::port::source::{RawProfileDocument, Source, SourceFactory, SourceMode};
use contract::port::target::{Target, TargetObservation};
use contract::port::world::World;
use contract::qualification::{Qualification, Reading, TRIALS_MAX, TRIALS_MIN, is_drift, judge};
use contract::raw::eof::EofDescriptor;
use tokio_util::sync::CancellationToken;

use crate::admit;
use crate::measure::{Files, read_and_seal};
use crate::records;
use crate::spool::Spool;

/// What a qualification needs.
#[derive(Debug)]
pub struct QualifyRequest {
    /// The plan whose source is read.
    pub plan: Plan,
    /// Trials after the warm-up: 3 to 100.
    pub trials: u32,
    /// Folder for sealed chunks; each is removed at once.
    pub scratch: PathBuf,
    /// Cancelled when the process is asked to stop.
    pub stop: CancellationToken,
}

/// What was read, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Qualified {
    /// The warm-up; it never counts.
    pub warm_up: Result<Reading, Code>,
    /// The trials in order.
    pub trials: Vec<Result<Reading, Code>>,
    /// The judgement over the trials.
    pub judged: Qualification,
}

/// Reads the source once to warm it up and then once per trial; `ended` is told of each read.
///
/// # Errors
/// `native_transfer.qualification_unsupported` outside exact_raw_rows or for another count of trials; those of admission,
/// of the read and of the scratch folder. Drift is no error: it excludes its trial.
pub async fn qualify<F: SourceFactory, T: Target, W: World>(
    request: QualifyRequest,
    factory: F,
    target: T,
    world: W,
    mut ended: impl FnMut(&Result<Reading, Code>),
) -> Result<Qualified, PortError> {
    check(&request)?;
    let seen = target.observe(&request.plan.target_request()).await?;
    admit::target(&seen)?;
    // Made before its room is looked at.
    let spool = Spool::new(&request.scratch, "measure");
    spool.create()?;
    space::admit_spool(&request.plan.limits, spool.free_bytes()?)?;
    let trial = Trials { request, factory, seen, world };
    let warm_up = trial.read().await?;
    ended(&warm_up);
    let mut trials = Vec::new();
    for _ in 0..trial.request.trials {
        let read = trial.read().await?;
        ended(&read);
        trials.push(read);
    }
    let judged = judge(&trials);
    Ok(Qualified { warm_up, trials, judged })
}

fn check(request: &QualifyRequest) -> Result<(), Refusal> {
    let refused = |message: &'static str| Refusal::new("native_transfer.qualification_unsupported", message);
    if !(TRIALS_MIN..=TRIALS_MAX).contains(&request.trials) {
        return Err(refused("a qualification has 3 to 100 trials beside its warm-up"));
    }
    match request.plan.source_request().mode {
        SourceMode::ExactRawRows(_) => Ok(()),
        SourceMode::QueryVisible => Err(refused(
            "only exact_raw_rows shows which parts were read, so only its trials can be told from drift: select it, or \
             compare the digests of whole runs",
        )),
    }
}

struct Trials<F, W> {
    request: QualifyRequest,
    factory: F,
    seen: TargetObservation,
    world: W,
}

impl<F: SourceFactory, W: World> Trials<F, W> {
    /// One read. Drift that the read itself found is a trial, every other failure is the end.
    async fn read(&self) -> Result<Result<Reading, Code>, PortError> {
        match self.reading().await {
            Ok(reading) => Ok(Ok(reading)),
            Err(error) if is_drift(&error.code) => Ok(Err(error.code)),
            Err(error) => Err(error),
        }
    }

    async fn reading(&self) -> Result<Reading, PortError> {
        let plan = &self.request.plan;
        let query_id = format!("dpone-native-{}", &self.world.random()?.to_string()[..32]);
        let mut session = self.factory.connect().await?;
        let opened = async {
            let admission = session.admit(&plan.source_request()).await?;
            let started_at = self.world.now().isoformat();
            let frozen = admit::freeze(plan, &query_id, &self.seen, &admission, started_at).map_err(admit::refused)?;
            let encoder = frozen.encoder(plan.limits.max_row_bytes)?;
            session.open(&admission, &query_id).await?;
            Ok((admission, encoder))
        };
        let (admission, encoder) = match opened.await {
            Ok(opened) => opened,
            Err(error) => {
                session.cancel().await;
                return Err(error);
            }
        };
        let (scratch, stop) = (&self.request.scratch, &self.request.stop);
        let started = Instant::now();
        let sealed = read_and_seal(session, encoder, plan.limits, scratch, Files::Removed, stop).await?;
        let wall = started.elapsed();
        if sealed.rows != sealed.eof.rows {
            return Err(row_count());
        }
        let eof = sealed.eof.descriptor.as_deref().map(decoded).transpose()?.ok_or_else(records::invalid)?;
        let eof = EofDescriptor::from_document(&eof)?;
        Ok(Reading {
            rows: sealed.rows,
            encoded_bytes: sealed.encoded_bytes,
            workload: native_multiset_digest(sealed.rows, &sealed.sum),
            profile: profile_digest(admission.profile.as_ref())?,
            before: eof.before_physical_profile_sha256,
            after: eof.after_physical_profile_sha256,
            wall,
        })
    }
}

fn profile_digest(profile: Option<&RawProfileDocument>) -> Result<Digest, PortError> {
    profile.map(|profile| Digest::of(&profile.canonical)).ok_or_else(records::invalid)
}

fn decoded(canonical: &[u8]) -> Result<Json, PortError> {
    decode_object(canonical).map(Json::Object).map_err(|_| records::invalid())
}

/// The code of a read whose sealed rows are not those that the source counted.
fn row_count() -> PortError {
    PortError::from(Refusal::new(
        "mssql_native.source_snapshot_row_count_mismatch",
        "the sealed files hold other rows than the source sent: this is a defect, please report it",
    ))
}
