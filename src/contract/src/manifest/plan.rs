//! The plan: what a manifest means, legal by construction.

use super::keys;
use super::policy::{self, Policy, VerificationBackend};
use crate::canon::{Json, Object};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::identity::{ImportBackend, LayoutVersion};
use crate::limits::Limits;
use crate::lineage::LineagePreset;
use crate::mapping::{Overrides, parse_override, valid_identifier};
use crate::port::source::{SourceMode, SourceRequest};
use crate::port::target::{Mutation, TableName, TargetRequest};
use crate::raw::selector::scope_text;
use crate::transaction;
use crate::window::{RollingWindow, WindowSpec};

/// How long one source query may run unless the manifest says otherwise, seconds.
const QUERY_SECONDS_DEFAULT: u32 = 21_600;

/// Longest query time, seconds.
const QUERY_SECONDS_MAX: u64 = 86_400;

/// Schema of the catalog tables unless the manifest says otherwise.
const STATE_SCHEMA_DEFAULT: &str = "dpone";

/// Longest SQL Server identifier, characters.
const IDENTIFIER_CHARS_MAX: usize = 128;

/// The source table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRelation {
    /// Database: one plain identifier.
    pub database: String,
    /// Table: one plain identifier.
    pub table: String,
}

/// How full_refresh empties the target inside the publication transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clear {
    /// `TRUNCATE TABLE`: fast, takes a schema modification lock.
    Truncate,
    /// `DELETE`: logged row by row, needs no ALTER permission.
    Delete,
}

/// What is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy<W = RollingWindow> {
    /// The whole table.
    FullRefresh {
        /// How the table is emptied.
        clear: Clear,
    },
    /// The rows of one window.
    PartitionReplace {
        /// The window as authored.
        spec: WindowSpec,
        /// The window's bounds.
        window: W,
    },
}

/// A transfer that passed every check that needs no connection.
///
/// There is no other way to get one than [`Plan::from_process`], so whatever takes a plan needs no check of its own. `W` is
/// what is known of a window's bounds: a plan to run has them, a [`Preview`] may not.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plan<W = RollingWindow> {
    /// The process's name.
    pub name: Option<String>,
    /// What is read.
    pub source: SourceRelation,
    /// How it is read.
    pub mode: SourceMode,
    /// Whether the manifest names the mode.
    pub mode_authored: bool,
    /// Where it goes.
    pub sink: TableName,
    /// What is replaced there.
    pub strategy: Strategy<W>,
    /// Resource limits.
    pub limits: Limits,
    /// Verifier.
    pub verification: VerificationBackend,
    /// Whether the manifest names the verifier.
    pub verification_authored: bool,
    /// Importer.
    pub import: ImportBackend,
    /// Layout of stages.
    pub layout: LayoutVersion,
    /// Authored target types.
    pub overrides: Overrides,
    /// Framework columns of the target.
    pub lineage: LineagePreset,
    /// Schema of the catalog tables in the target.
    pub state_schema: String,
    /// Schema of the staging tables in the target.
    pub staging_schema: String,
    /// How long one source query may run, seconds.
    pub query_seconds: u32,
    /// Manifest keys that are accepted and have no effect.
    pub ignored_keys: Vec<String>,
    /// What identifies the route: source, target, strategy, backends and options, without names of connections and
    /// without the interval.
    pub route: Json,
}

/// A plan to look at: its window may still lack an interval. Nothing runs from it.
pub type Preview = Plan<Option<RollingWindow>>;

impl Plan {
    /// The plan of one process.
    ///
    /// # Errors
    /// `native_transfer.unknown_key:PATH` and `native_transfer.manifest_invalid:PATH` for the document's shape; then the
    /// first failing check of [`policy::check`]; then `mssql_native.quality_policy_requires_composition`,
    /// `mssql_native.source_identifier_invalid`, `native_transfer.target_name_invalid:PATH`,
    /// `native_transfer.invalid_query_seconds`, `native_transfer.invalid_lineage_preset`,
    /// `native_transfer.invalid_full_refresh_clear`, `mssql_snapshot_reconciliation.target_physical_type_invalid:COL`.
    pub fn from_process(process: &Json, interval_end: Option<&str>) -> Result<Plan, Refusal> {
        let preview = Preview::read(process, interval_end, false)?;
        preview.map_window(|window| {
            // The check above has refused a window without an interval already.
            window.ok_or_else(|| Refusal::new(code::WINDOW_INTERVAL_REQUIRED, "a window needs the interval's end"))
        })
    }

    /// The frozen window, if one is replaced.
    pub fn window(&self) -> Option<&RollingWindow> {
        match &self.strategy {
            Strategy::FullRefresh { .. } => None,
            Strategy::PartitionReplace { window, .. } => Some(window),
        }
    }

    /// What the source port is asked for.
    pub fn source_request(&self) -> SourceRequest {
        SourceRequest {
            database: self.source.database.clone(),
            table: self.source.table.clone(),
            mode: self.mode,
            window: self.window().map(RollingWindow::frozen),
            query_seconds: self.query_seconds,
            max_row_bytes: self.limits.max_row_bytes,
        }
    }

    /// What the publication does to the target.
    pub fn mutation(&self) -> Mutation {
        match &self.strategy {
            Strategy::FullRefresh { clear } => Mutation::FullRefresh { delete: *clear == Clear::Delete },
            Strategy::PartitionReplace { window, .. } => Mutation::PartitionReplace {
                column: window.column().to_owned(),
                start: window.start().query_text(),
                end: window.end().query_text(),
            },
        }
    }
}

impl Preview {
    /// The preview of one process; without an interval a window has no bounds.
    ///
    /// # Errors
    /// Those of [`Plan::from_process`], but for a missing interval.
    pub fn of_process(process: &Json, interval_end: Option<&str>) -> Result<Preview, Refusal> {
        Self::read(process, interval_end, true)
    }

    fn read(process: &Json, interval_end: Option<&str>, interval_optional: bool) -> Result<Preview, Refusal> {
        let process = process.as_object().ok_or_else(|| keys::invalid("manifest", "an object"))?;
        let ignored_keys = keys::check(process)?;
        let parts = Parts::of(process)?;
        let options = parts.flat_options(interval_end);
        let policy = policy::check(policy::Options {
            options: &options,
            mode: parts.strategy_mode,
            strategy: Some(parts.strategy),
            additional_scope: parts.strategy.get("custom_predicate").is_some_and(policy::is_set),
            interval_optional,
        })?;
        if process.get("quality").is_some_and(policy::is_set) {
            return Err(Refusal::new(
                code::QUALITY_POLICY_REQUIRES_COMPOSITION,
                "quality policies are not part of this route; remove quality from the process",
            ));
        }
        parts.plan(policy, ignored_keys)
    }
}

impl From<Plan> for Preview {
    fn from(plan: Plan) -> Preview {
        match plan.map_window(|window| Ok::<_, std::convert::Infallible>(Some(window))) {
            Ok(preview) => preview,
            Err(never) => match never {},
        }
    }
}

impl<W> Plan<W> {
    /// The digest that stands for the route in operations and source bindings.
    pub fn route_fingerprint(&self) -> Digest {
        transaction::route_fingerprint(&self.route)
    }

    fn map_window<V, E>(self, map: impl FnOnce(W) -> Result<V, E>) -> Result<Plan<V>, E> {
        let strategy = match self.strategy {
            Strategy::FullRefresh { clear } => Strategy::FullRefresh { clear },
            Strategy::PartitionReplace { spec, window } => Strategy::PartitionReplace { spec, window: map(window)? },
        };
        Ok(Plan {
            strategy,
            name: self.name,
            source: self.source,
            mode: self.mode,
            mode_authored: self.mode_authored,
            sink: self.sink,
            limits: self.limits,
            verification: self.verification,
            verification_authored: self.verification_authored,
            import: self.import,
            layout: self.layout,
            overrides: self.overrides,
            lineage: self.lineage,
            state_schema: self.state_schema,
            staging_schema: self.staging_schema,
            query_seconds: self.query_seconds,
            ignored_keys: self.ignored_keys,
            route: self.route,
        })
    }

    /// What the target port is asked for.
    pub fn target_request(&self) -> TargetRequest {
        TargetRequest {
            table: self.sink.clone(),
            state_schema: self.state_schema.clone(),
            staging_schema: self.staging_schema.clone(),
            truncates: matches!(self.strategy, Strategy::FullRefresh { clear: Clear::Truncate }),
        }
    }

    /// Whether this release can run the plan. A backend is never substituted for another.
    ///
    /// # Errors
    /// `mssql_native.composition_required` for bcp, python_readback and layout 2, also where they are the default.
    pub fn require_runnable(&self) -> Result<(), Refusal> {
        let session_writer = self.import == ImportBackend::SqlClient && self.layout == LayoutVersion::V1;
        if session_writer && self.verification == VerificationBackend::TargetLocal {
            Ok(())
        } else {
            Err(Refusal::new(
                code::COMPOSITION_REQUIRED,
                "this release runs import_backend mssql_sqlclient with verification_backend target_local and layout 1; \
                 set them in native_transfer.execution",
            ))
        }
    }
}

/// The pieces of a process whose keys have been checked.
struct Parts<'a> {
    process: &'a Object,
    source: &'a Object,
    source_options: &'a Object,
    sink: &'a Object,
    sink_options: &'a Object,
    strategy: &'a Object,
    strategy_mode: &'a str,
}

static NOTHING: Object = Object::new();

impl<'a> Parts<'a> {
    fn of(process: &'a Object) -> Result<Self, Refusal> {
        let part = |of: &'a Object, key: &str| of.get(key).and_then(Json::as_object).unwrap_or(&NOTHING);
        let required = |key: &'static str| {
            process.get(key).and_then(Json::as_object).ok_or_else(|| keys::invalid(key, "an object"))
        };
        let (source, sink) = (required("source")?, required("sink")?);
        let strategy = part(sink, "strategy");
        let strategy_mode = strategy.get("mode").and_then(Json::as_str).unwrap_or_default();
        let (source_options, sink_options) = (part(source, "options"), part(sink, "options"));
        Ok(Parts { process, source, source_options, sink, sink_options, strategy, strategy_mode })
    }

    /// The options as [`policy::check`] takes them.
    fn flat_options(&self, interval_end: Option<&str>) -> Object {
        let mut flat = self.source_options.clone();
        let mut put = |key: &str, value: Option<Json>| {
            if let Some(value) = value {
                flat.insert(key.to_owned(), value);
            }
        };
        put("source_type", self.source.get("type").cloned());
        put("sink_type", self.sink.get("type").cloned());
        put("mssql_native_window", self.strategy.get("window").cloned());
        put("interval", interval_end.map(|end| Json::object([("interval_end", Json::from(end))])));
        flat
    }

    fn plan(&self, policy: Policy, ignored_keys: Vec<String>) -> Result<Preview, Refusal> {
        let source = self.source_relation()?;
        let sink = self.sink_table()?;
        let state_schema = self.schema("state_schema", STATE_SCHEMA_DEFAULT)?;
        let staging_schema = self.schema("staging_schema", &state_schema)?;
        let native = self.source_options.get("native_transfer");
        let mut plan = Plan {
            name: self.process.get("name").and_then(Json::as_str).map(str::to_owned),
            source,
            mode: policy.mode,
            mode_authored: native.and_then(|native| native.get("source_snapshot")).is_some(),
            sink,
            strategy: self.strategy(policy.window)?,
            limits: policy.limits,
            verification: policy.verification,
            verification_authored: policy.verification_authored,
            import: policy.import,
            layout: policy.layout,
            overrides: self.overrides()?,
            lineage: self.lineage()?,
            state_schema,
            staging_schema,
            query_seconds: self.query_seconds()?,
            ignored_keys,
            route: Json::Null,
        };
        plan.route = route(&plan);
        Ok(plan)
    }

    fn source_relation(&self) -> Result<SourceRelation, Refusal> {
        let name = |key: &str| {
            let path = format!("source.table.{key}");
            let text = self.source.get("table").and_then(|table| table.get(key)).and_then(Json::as_str);
            let text = text.ok_or_else(|| keys::invalid(&path, "a text"))?;
            valid_identifier(text).then(|| text.to_owned()).ok_or_else(|| {
                Refusal::new(
                    code::SOURCE_IDENTIFIER_INVALID,
                    "source database and table are plain identifiers (letters, digits and underscore)",
                )
            })
        };
        Ok(SourceRelation { database: name("schema")?, table: name("name")? })
    }

    fn sink_table(&self) -> Result<TableName, Refusal> {
        let name = |key: &str| {
            let path = format!("sink.table.{key}");
            let text = self.sink.get("table").and_then(|table| table.get(key)).and_then(Json::as_str);
            target_name(text.ok_or_else(|| keys::invalid(&path, "a text"))?, &path)
        };
        Ok(TableName { schema: name("schema")?, table: name("name")? })
    }

    fn schema(&self, key: &str, default: &str) -> Result<String, Refusal> {
        let authored = self.sink_options.get(key).and_then(Json::as_str);
        target_name(authored.unwrap_or(default), &format!("sink.options.{key}"))
    }

    fn strategy(
        &self,
        window: Option<(WindowSpec, Option<RollingWindow>)>,
    ) -> Result<Strategy<Option<RollingWindow>>, Refusal> {
        let authored = self.sink_options.get("full_refresh").and_then(|options| options.get("clear"));
        let clear = match authored.and_then(Json::as_str) {
            None | Some("truncate") => Clear::Truncate,
            Some("delete") => Clear::Delete,
            Some(_) => {
                return Err(Refusal::new(
                    code::INVALID_FULL_REFRESH_CLEAR,
                    "sink.options.full_refresh.clear is truncate or delete",
                ));
            }
        };
        Ok(match window {
            None => Strategy::FullRefresh { clear },
            Some((spec, window)) => Strategy::PartitionReplace { spec, window },
        })
    }

    fn overrides(&self) -> Result<Overrides, Refusal> {
        let columns = self.sink_options.get("physical_design").and_then(|design| design.get("columns"));
        let authored =
            |design: &'a Json| design.get("target_type")?.get("mssql")?.as_str().filter(|text| !text.is_empty());
        columns
            .and_then(Json::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, design)| Some((name, authored(design)?)))
            .map(|(name, text)| Ok((name.clone(), parse_override(name, text)?.to_string())))
            .collect()
    }

    fn lineage(&self) -> Result<LineagePreset, Refusal> {
        let authored =
            self.sink_options.get("lineage").and_then(|lineage| lineage.get("preset")).and_then(Json::as_str);
        authored.map_or(Some(LineagePreset::Off), LineagePreset::parse).ok_or_else(|| {
            Refusal::new(
                code::INVALID_LINEAGE_PRESET,
                "sink.options.lineage.preset is off, minimal, standard, bulk_standard or debug",
            )
        })
    }

    fn query_seconds(&self) -> Result<u32, Refusal> {
        let Some(authored) = self.source_options.get("query_seconds") else { return Ok(QUERY_SECONDS_DEFAULT) };
        let seconds = authored.as_u64().filter(|seconds| (1..=QUERY_SECONDS_MAX).contains(seconds));
        seconds.and_then(|seconds| u32::try_from(seconds).ok()).ok_or_else(|| {
            Refusal::new(
                code::INVALID_QUERY_SECONDS,
                "source.options.query_seconds is a whole number of seconds from 1 to 86400",
            )
        })
    }
}

fn target_name(text: &str, path: &str) -> Result<String, Refusal> {
    let length = text.chars().count();
    if (1..=IDENTIFIER_CHARS_MAX).contains(&length) && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::with_detail(
            code::TARGET_NAME_INVALID,
            path,
            "a SQL Server name has 1 to 128 characters and no control character",
        ))
    }
}

/// The route document: everything of the plan that makes another operation when it changes.
fn route(plan: &Preview) -> Json {
    let (scope, mode) = match plan.mode {
        SourceMode::QueryVisible => (None, "query_visible"),
        SourceMode::ExactRawRows(scope) => (Some(scope_text(scope)), "exact_raw_rows"),
    };
    let strategy = match &plan.strategy {
        Strategy::FullRefresh { clear } => Json::object([
            ("mode", Json::from("full_refresh")),
            ("clear", Json::from(if *clear == Clear::Delete { "delete" } else { "truncate" })),
        ]),
        Strategy::PartitionReplace { spec, .. } => {
            Json::object([("mode", Json::from("partition_replace")), ("window", spec.document())])
        }
    };
    let overrides = plan.overrides.iter().map(|(name, text)| (name.clone(), Json::from(text))).collect::<Object>();
    Json::object([
        ("kind", Json::from("native-transfer.route.v1")),
        (
            "source",
            Json::object([
                ("type", Json::from("clickhouse")),
                ("database", Json::from(&plan.source.database)),
                ("table", Json::from(&plan.source.table)),
                ("mode", Json::from(mode)),
                ("replica_scope", Json::from(scope)),
                ("query_seconds", Json::from(plan.query_seconds)),
            ]),
        ),
        (
            "sink",
            Json::object([
                ("type", Json::from("mssql")),
                ("schema", Json::from(&plan.sink.schema)),
                ("table", Json::from(&plan.sink.table)),
                ("strategy", strategy),
                ("target_types", Json::Object(overrides)),
                ("lineage", Json::from(plan.lineage.as_str())),
                ("state_schema", Json::from(&plan.state_schema)),
                ("staging_schema", Json::from(&plan.staging_schema)),
            ]),
        ),
        (
            "execution",
            Json::object([
                ("import_backend", Json::from(plan.import.text())),
                ("verification_backend", Json::from(plan.verification.text())),
                ("layout_version", Json::from(if plan.layout == LayoutVersion::V2 { 2 } else { 1 })),
                ("limits", plan.limits.document()),
            ]),
        ),
    ])
}
