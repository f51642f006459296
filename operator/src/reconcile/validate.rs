//! From a spec to what runs: the frozen plan with the settings of its pods, or a refusal with a stable code.
//!
//! The manifest goes through [`FrozenPlan`] and `contract::manifest::parse`, the very bytes and the very door that the
//! worker uses, so that codes and texts are those of the command line. Plan and settings are two functions: a run that
//! has begun keeps its plan, and a setting that became invalid later is a reason to start no pod, not to drop the run.

use std::time::Duration;

use contract::canon::{Json, Object};
use contract::code;
use contract::error::Refusal;
use contract::manifest::{Plan, Strategy};
use contract::port::source::SourceMode;
use contract::window;
use contract::worker::FrozenPlan;

use super::quantity;
use crate::crd::manifest::Manifest;
use crate::crd::spec::{
    AccessMode, ImagePullPolicy, JournalSpec, LimitsSpec, ResourceAmounts, ResourcesSpec, SecretReference, WorkersSpec,
};
use crate::crd::status::EffectiveStatus;
use crate::crd::{NativeTransfer, NativeTransferSpec};

/// Token of a resource that names none.
pub const TOKEN_DEFAULT: &str = "1";

/// Extractions of one run where the resource names no number.
const ATTEMPTS_DEFAULT: i32 = 1;

/// Most extractions of one run.
const ATTEMPTS_MAX: i32 = 100;

/// Wait before the first repetition where the resource names none.
const BACKOFF_DEFAULT: Duration = Duration::from_secs(10);

/// Longest duration of a limit: a year of pods is a mistake.
const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Most paths of ignored keys in status.
const IGNORED_KEYS_MAX: usize = 64;

/// What the operator itself brings to every pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    /// Image of the workers.
    pub image: String,
    /// When it is pulled; the kubelet's rule where `None`.
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets with credentials of its registry, of each transfer's namespace.
    pub image_pull_secrets: Vec<String>,
    /// Repositories, or beginnings of their names, whose images a resource may name besides [`Defaults::image`].
    pub allowed_images: Vec<ImagePrefix>,
}

/// The beginning of image names: a registry, a folder of it, or a repository with every tag, or one tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePrefix(String);

impl ImagePrefix {
    /// A prefix as people write it; a slash at its end changes nothing but that the prefix itself is no image.
    ///
    /// # Errors
    /// What is wrong with it, for the person who wrote it.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if text.is_empty() || text.contains(odd) || text.ends_with([':', '@']) || text.starts_with('/') {
            return Err("it is the beginning of image names up to a whole part, such as registry.example/team");
        }
        Ok(ImagePrefix(text.to_owned()))
    }

    /// Whether more parts may follow. A single word is a repository, and with a folder behind it the account of somebody.
    fn is_folder(&self) -> bool {
        self.0.contains(['/', '.', ':']) || self.0 == "localhost"
    }

    /// Whether an image is of it. Names are compared part by part: `registry/a` has `registry/a/b`, `registry/a:1` and
    /// `registry/a@sha256:...`, and neither `registry/ab` nor, where the prefix is a host, the same host with a port.
    pub fn has(&self, image: &str) -> bool {
        let Some(rest) = image.strip_prefix(self.0.as_str()) else { return false };
        match rest.chars().next() {
            None => !self.0.ends_with('/'),
            Some('/') => self.is_folder(),
            Some(':' | '@') => !rest.contains('/'),
            Some(_) => self.0.ends_with('/'),
        }
    }
}

/// What a resource means.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The token of the run that is wanted.
    pub token: String,
    /// The document that the worker reads.
    pub frozen: FrozenPlan,
    /// The plan that the worker will make of it.
    pub plan: Plan,
    /// What its pods and its volume look like.
    pub settings: Settings,
    /// What applies where the spec says nothing.
    pub effective: EffectiveStatus,
}

/// The mutable part of a resource with its defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Image of the workers.
    pub image: String,
    /// When it is pulled.
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Everything else about worker pods, as authored and checked.
    pub workers: WorkersSpec,
    /// Memory that the plan's extraction may reach, bytes.
    pub resident_bytes_max: u64,
    /// Secret of the source's connection.
    pub source_secret: String,
    /// Secret of the target's connection.
    pub target_secret: String,
    /// Longest time from the start of a run to its sealed end of source.
    pub deadline: Option<Duration>,
    /// Extractions of one run at most.
    pub attempts: i32,
    /// Wait before the first repetition.
    pub backoff: Duration,
    /// How long a finished pod stays after its receipt was read; `None` for as long as the run is not settled.
    pub worker_pods_retention: Option<Duration>,
    /// Access mode of the journal claim.
    pub access_mode: AccessMode,
    /// Class of the journal claim; the cluster's default where `None`.
    pub storage_class: Option<String>,
    /// Size of the journal claim, as authored.
    pub journal_size: String,
}

/// Everything at once.
///
/// # Errors
/// Those of [`plan`], then those of [`settings`].
pub fn validate(transfer: &NativeTransfer, defaults: &Defaults) -> Result<Accepted, Refusal> {
    let (frozen, plan) = plan(transfer)?;
    let settings = settings(&transfer.spec, &plan, defaults)?;
    let effective = effective(&plan, &settings);
    Ok(Accepted { token: token(&transfer.spec).to_owned(), frozen, plan, settings, effective })
}

/// The token of the run that is wanted.
pub fn token(spec: &NativeTransferSpec) -> &str {
    spec.run.as_ref().map_or(TOKEN_DEFAULT, |run| &run.token)
}

/// The immutable part: the document that the worker reads, and the plan that it makes of it.
///
/// # Errors
/// `native_transfer.frozen_plan_too_large`, `native_transfer.frozen_plan_invalid`, those of `contract::manifest::parse`,
/// and `mssql_native.composition_required` for a route that this release cannot run.
pub fn plan(transfer: &NativeTransfer) -> Result<(FrozenPlan, Plan), Refusal> {
    let interval_end = transfer.spec.interval.as_ref().map(|interval| interval.end.as_str());
    let namespace = transfer.metadata.namespace.as_deref().unwrap_or_default();
    let name = transfer.metadata.name.as_deref().unwrap_or_default();
    let frozen = FrozenPlan::new(namespace, name, &json(&transfer.spec.manifest)?, interval_end)?;
    let plan = frozen.plan()?;
    plan.require_runnable()?;
    Ok((frozen, plan))
}

fn json(manifest: &Manifest) -> Result<Json, Refusal> {
    let members = manifest.0.iter().map(|(key, value)| Ok((key.clone(), Json::try_from(value)?)));
    members
        .collect::<Result<Object, contract::canon::DecodeError>>()
        .map(Json::Object)
        .map_err(|_| Refusal::new(code::FROZEN_PLAN_INVALID, "the manifest holds a number that is not finite"))
}

/// The mutable part, with its defaults filled in.
///
/// # Errors
/// `native_transfer.worker_image_refused`, `native_transfer.resource_field_invalid:PATH`,
/// `native_transfer.journal_too_small`.
pub fn settings(spec: &NativeTransferSpec, plan: &Plan, defaults: &Defaults) -> Result<Settings, Refusal> {
    let mut workers = spec.workers.clone().unwrap_or_default();
    // Credentials of the operator belong to the operator's image.
    if workers.image.is_none() && workers.image_pull_secrets.is_empty() {
        let named = |name: &String| SecretReference { name: name.clone() };
        workers.image_pull_secrets = defaults.image_pull_secrets.iter().map(named).collect();
    }
    if let Some(image) = &workers.image {
        check_image(image, defaults)?;
    }
    if let Some(resources) = &workers.resources {
        check_resources(resources)?;
    }
    check_journal(&spec.journal, plan)?;
    let no_limits = LimitsSpec::default();
    let limits = spec.limits.as_ref().unwrap_or(&no_limits);
    let attempts = limits.attempts.unwrap_or(ATTEMPTS_DEFAULT);
    if !(1..=ATTEMPTS_MAX).contains(&attempts) {
        return Err(invalid("spec.limits.attempts", "a whole number from 1 to 100"));
    }
    let retention = spec.retention.as_ref().and_then(|retention| retention.worker_pods.as_deref());
    Ok(Settings {
        image: workers.image.clone().unwrap_or_else(|| defaults.image.clone()),
        // A policy of the operator belongs to the operator's image.
        image_pull_policy: workers
            .image_pull_policy
            .or_else(|| defaults.image_pull_policy.filter(|_| workers.image.is_none())),
        workers,
        resident_bytes_max: contract::capacity::resident_bytes_max(&plan.limits),
        source_secret: spec.connections.source.secret_ref.name.clone(),
        target_secret: spec.connections.target.secret_ref.name.clone(),
        deadline: duration("spec.limits.deadline", limits.deadline.as_deref())?,
        attempts,
        backoff: duration("spec.limits.backoff", limits.backoff.as_deref())?.unwrap_or(BACKOFF_DEFAULT),
        worker_pods_retention: duration("spec.retention.workerPods", retention)?,
        access_mode: spec.journal.access_mode.unwrap_or_default(),
        storage_class: spec.journal.storage_class_name.clone(),
        journal_size: spec.journal.size.clone(),
    })
}

fn effective(plan: &Plan, settings: &Settings) -> EffectiveStatus {
    let window = plan.window();
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    EffectiveStatus {
        source: Some(format!("{}.{}", plan.source.database, plan.source.table)),
        target: Some(format!("{}.{}", plan.sink.schema, plan.sink.table)),
        source_mode: Some(
            match plan.mode {
                SourceMode::QueryVisible => "query_visible",
                SourceMode::ExactRawRows(_) => "exact_raw_rows",
            }
            .to_owned(),
        ),
        strategy: Some(
            match plan.strategy {
                Strategy::FullRefresh { .. } => "full_refresh",
                Strategy::PartitionReplace { .. } => "partition_replace",
            }
            .to_owned(),
        ),
        window_start: window.map(|window| window.start().query_text()),
        window_end: window.map(|window| window.end().query_text()),
        ignored_keys: plan.ignored_keys.iter().take(IGNORED_KEYS_MAX).cloned().collect(),
        image: Some(settings.image.clone()),
        access_mode: Some(settings.access_mode),
        attempts: Some(settings.attempts),
        deadline_seconds: settings.deadline.map(seconds),
        backoff_seconds: Some(seconds(settings.backoff)),
    }
}

/// A duration of the resource: the grammar of the manifest's, whole seconds, at most a year.
fn duration(path: &str, text: Option<&str>) -> Result<Option<Duration>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let micros = window::Duration::parse(text).ok().and_then(|duration| u64::try_from(duration.micros()).ok());
    let duration = micros
        .map(Duration::from_micros)
        .filter(|duration| duration.subsec_nanos() == 0 && (Duration::from_secs(1)..=DURATION_MAX).contains(duration));
    let duration = duration.ok_or_else(|| {
        invalid(path, "a fixed ISO 8601 duration of whole seconds, at least PT1S and at most P366D, such as PT6H")
    })?;
    Ok(Some(duration))
}

fn check_journal(journal: &JournalSpec, plan: &Plan) -> Result<(), Refusal> {
    let size = quantity::bytes(&journal.size)
        .ok_or_else(|| invalid("spec.journal.size", "a quantity of bytes such as 5Gi, below 16 EiB"))?;
    let needed = plan.limits.required_free_spool_bytes();
    if size < needed {
        return Err(Refusal {
            code: contract::error::Code::new(code::JOURNAL_TOO_SMALL),
            message: format!(
                "the chunks in flight need {} MiB on the journal volume; let spec.journal.size grow above that",
                needed.div_ceil(1 << 20)
            )
            .into(),
        });
    }
    Ok(())
}

/// Whoever may create a transfer has a pod started that mounts the connections: its image is the operator's affair.
fn check_image(image: &str, defaults: &Defaults) -> Result<(), Refusal> {
    if image == defaults.image || defaults.allowed_images.iter().any(|prefix| prefix.has(image)) {
        return Ok(());
    }
    Err(Refusal::new(code::WORKER_IMAGE_REFUSED, "spec.workers.image is not an image that this operator starts"))
}

/// A resource's name, its amount in a block, and how the amount is read.
type Amount = (&'static str, fn(&ResourceAmounts) -> Option<&str>, fn(&str) -> Option<u64>);

const AMOUNTS: [Amount; 3] = [
    ("cpu", |amounts| amounts.cpu.as_deref(), quantity::millis),
    ("memory", |amounts| amounts.memory.as_deref(), quantity::bytes),
    ("ephemeralStorage", |amounts| amounts.ephemeral_storage.as_deref(), quantity::bytes),
];

fn check_resources(resources: &ResourcesSpec) -> Result<(), Refusal> {
    for (name, of, read) in AMOUNTS {
        let amount = |block: &str, amounts: &Option<ResourceAmounts>| {
            let path = format!("spec.workers.resources.{block}.{name}");
            let text = amounts.as_ref().and_then(of);
            text.map(|text| {
                read(text).filter(|value| *value > 0).ok_or_else(|| invalid(&path, "a quantity above zero"))
            })
            .transpose()
        };
        let (request, limit) = (amount("requests", &resources.requests)?, amount("limits", &resources.limits)?);
        if let (Some(request), Some(limit)) = (request, limit)
            && request > limit
        {
            return Err(invalid(&format!("spec.workers.resources.requests.{name}"), "at most what limits allows"));
        }
    }
    Ok(())
}

fn invalid(path: &str, wanted: &str) -> Refusal {
    Refusal::with_detail(code::RESOURCE_FIELD_INVALID, path, format!("the field takes {wanted}"))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
