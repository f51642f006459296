//! The checks of the route's options, in their documented order (contract.md 10): wire, route, limits, verifier,
//! importer, layout, raw needs target_local, session writer needs target_local, layout needs the session writer, window,
//! unsupported source options. The first failure wins.

use crate::canon::{Json, Object};
use crate::code;
use crate::error::Refusal;
use crate::identity::{ImportBackend, LayoutVersion};
use crate::limits::Limits;
use crate::port::source::SourceMode;
use crate::raw::selector;
use crate::window::{RollingWindow, WindowSpec};

/// Source options that belong to other routes: any value but null, false, 0 and the empty text is refused, an empty list
/// among them.
pub const UNSUPPORTED_SOURCE_OPTIONS: [&str; 20] = [
    "query",
    "columns",
    "export_to_gcs",
    "source_custom_predicate",
    "custom_predicate",
    "partition_by",
    "date_from",
    "date_to",
    "with_dedup",
    "dedup_expression",
    "source_materialization",
    "pre_sql",
    "post_sql",
    "hooks",
    "pre_hooks",
    "post_hooks",
    "backfill",
    "cdc",
    "scd2",
    "diff",
];

/// Who proves that a stage holds the rows of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VerificationBackend {
    /// Rows are read back and encoded again.
    PythonReadback,
    /// The target digests its own rows.
    TargetLocal,
}

impl VerificationBackend {
    /// The backend's text in manifests and documents.
    pub const fn text(self) -> &'static str {
        match self {
            VerificationBackend::PythonReadback => "python_readback",
            VerificationBackend::TargetLocal => "target_local",
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        [VerificationBackend::PythonReadback, VerificationBackend::TargetLocal].into_iter().find(|b| b.text() == text)
    }
}

/// A route as its options describe it, before they are checked.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// The flat options: `source_type`, `sink_type`, `native_transfer`, `mssql_native_window`, `interval`, and the source
    /// options.
    pub options: &'a Object,
    /// `sink.strategy.mode`.
    pub mode: &'a str,
    /// The whole of `sink.strategy`, where there is one.
    pub strategy: Option<&'a Object>,
    /// A predicate or deduplication that is configured beside the options.
    pub additional_scope: bool,
    /// Whether a window may stay without an interval: to look at a route, not to run it.
    pub interval_optional: bool,
}

/// Options that passed every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
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
    /// How rows are read.
    pub mode: SourceMode,
    /// The window as authored, and as frozen where there is an interval; `None` for full_refresh.
    pub window: Option<(WindowSpec, Option<RollingWindow>)>,
}

/// Checks the options.
///
/// # Errors
/// The code of the first check that fails; every one is in `code`.
pub fn check(route: Options<'_>) -> Result<Policy, Refusal> {
    let empty = Object::new();
    let native = match route.options.get("native_transfer") {
        None | Some(Json::Null | Json::Bool(false)) => &empty,
        Some(Json::Object(native)) => native,
        Some(_) => {
            return Err(Refusal::new(code::INVALID_OPTIONS, "source.options.native_transfer must be an object"));
        }
    };
    let wire = |key: &str| native.get("wire").and_then(|wire| wire.get(key)).and_then(Json::as_str);
    if (wire("mode"), wire("binary_format")) != (Some("typed_binary"), Some("mssql_native")) {
        return Err(Refusal::new(
            code::WIRE_REQUIRED,
            "set native_transfer.wire.mode to typed_binary and native_transfer.wire.binary_format to mssql_native",
        ));
    }
    let kind = |key: &str| route.options.get(key).and_then(Json::as_str);
    if (kind("source_type"), kind("sink_type")) != (Some("clickhouse"), Some("mssql")) {
        return Err(Refusal::new(code::ROUTE_UNSUPPORTED, "this route reads from clickhouse and writes to mssql"));
    }
    let execution = native.get("execution").and_then(Json::as_object).ok_or_else(|| {
        Refusal::new(code::EXECUTION_REQUIRED, "native_transfer.execution with chunking and native_chunks is required")
    })?;
    let limits = limits(execution)?;
    let verification = verification(execution.get("verification_backend"))?;
    let import = import(execution.get("import_backend"))?;
    let layout = layout(execution.get("layout_version"))?;
    let mode = selector::select(Some(&Json::Object(native.clone())))?;
    let target_local = verification == VerificationBackend::TargetLocal;
    if matches!(mode, SourceMode::ExactRawRows(_)) && !target_local {
        return Err(Refusal::new(
            code::RAW_SNAPSHOT_REQUIRES_TARGET_LOCAL,
            "exact_raw_rows needs execution.verification_backend: target_local",
        ));
    }
    if import == ImportBackend::SqlClient && !target_local {
        return Err(Refusal::new(
            code::SQLCLIENT_REQUIRES_TARGET_LOCAL,
            "import_backend mssql_sqlclient needs execution.verification_backend: target_local",
        ));
    }
    if execution.contains_key("layout_version") && import != ImportBackend::SqlClient {
        return Err(Refusal::new(
            code::LAYOUT_REQUIRES_SQLCLIENT,
            "layout_version is a choice of import_backend mssql_sqlclient; remove it, or choose that backend",
        ));
    }
    let window = window(route)?;
    source_options(route.options)?;
    if route.additional_scope {
        return Err(Refusal::new(
            code::ADDITIONAL_SCOPE_UNSUPPORTED,
            "a transfer takes the whole table or one window; remove the predicate and the deduplication",
        ));
    }
    let verification_authored = execution.contains_key("verification_backend");
    Ok(Policy { limits, verification, verification_authored, import, layout, mode, window })
}

fn limits(execution: &Object) -> Result<Limits, Refusal> {
    let keys = ["mode", "parallelism", "checkpointing"];
    let chunking = execution.get("chunking").and_then(Json::as_object).filter(|chunking| {
        let closed = chunking.keys().all(|key| keys.contains(&key.as_str()));
        let resumable = chunking.get("checkpointing").is_none_or(|value| value.as_str() == Some("resumable"));
        closed && resumable && chunking.get("mode").and_then(Json::as_str) == Some("bounded_stream")
    });
    let chunking = chunking.ok_or_else(|| {
        Refusal::new(
            code::CHUNKING_INVALID,
            "execution.chunking is {mode: bounded_stream}, with parallelism and checkpointing: resumable if wanted",
        )
    })?;
    Limits::parse(execution.get("native_chunks"), chunking.get("parallelism"))
}

fn verification(value: Option<&Json>) -> Result<VerificationBackend, Refusal> {
    let Some(value) = value else { return Ok(VerificationBackend::PythonReadback) };
    value.as_str().and_then(VerificationBackend::from_text).ok_or_else(|| {
        Refusal::new(
            code::INVALID_VERIFICATION_BACKEND,
            "execution.verification_backend is target_local or python_readback, in exactly that spelling",
        )
    })
}

fn import(value: Option<&Json>) -> Result<ImportBackend, Refusal> {
    let Some(value) = value else { return Ok(ImportBackend::Bcp) };
    value.as_str().and_then(ImportBackend::from_text).ok_or_else(|| {
        Refusal::new(
            code::INVALID_IMPORT_BACKEND,
            "execution.import_backend is bcp or mssql_sqlclient, in exactly that spelling",
        )
    })
}

fn layout(value: Option<&Json>) -> Result<LayoutVersion, Refusal> {
    match value.map(Json::as_u64) {
        None | Some(Some(1)) => Ok(LayoutVersion::V1),
        Some(Some(2)) => Ok(LayoutVersion::V2),
        Some(_) => Err(Refusal::new(code::INVALID_LAYOUT_VERSION, "execution.layout_version is the number 1 or 2")),
    }
}

fn window(route: Options<'_>) -> Result<Option<(WindowSpec, Option<RollingWindow>)>, Refusal> {
    let authored = route.options.get("mssql_native_window").filter(|window| !window.is_null());
    if route.mode == "full_refresh" && authored.is_some() {
        return Err(Refusal::new(
            code::FULL_REFRESH_WINDOW_FORBIDDEN,
            "full_refresh replaces the whole table; remove the window, or choose partition_replace",
        ));
    }
    if let Some(strategy) = route.strategy {
        strategy_scope(route.mode, strategy)?;
    }
    match (route.mode, authored) {
        ("full_refresh", _) => Ok(None),
        ("partition_replace", Some(authored)) => {
            let interval = route.options.get("interval").and_then(Json::as_object);
            if interval.is_none() && !route.interval_optional {
                return Err(Refusal::new(
                    code::WINDOW_INTERVAL_REQUIRED,
                    "a window needs the interval's end: spec.interval.end, or --interval-end",
                ));
            }
            let spec = WindowSpec::parse(authored)?;
            let frozen = interval.map(|interval| spec.freeze(interval.get("interval_end"))).transpose()?;
            Ok(Some((spec, frozen)))
        }
        _ => Err(Refusal::new(
            code::EXPLICIT_WINDOW_REQUIRED,
            "the strategy is full_refresh without a window, or partition_replace with one",
        )),
    }
}

/// How window, atomicity and predicates may stand together.
fn strategy_scope(mode: &str, strategy: &Object) -> Result<(), Refusal> {
    let set = |key: &str| strategy.get(key).is_some_and(is_set);
    if strategy.get("window").is_none_or(Json::is_null) {
        return if set("atomicity") {
            Err(Refusal::new(
                code::ROLLING_WINDOW_REQUIRED_FOR_ATOMICITY,
                "strategy.atomicity belongs to a window; add the window, or remove atomicity",
            ))
        } else {
            Ok(())
        };
    }
    let atomic = strategy.get("atomicity").and_then(Json::as_str) == Some("target_atomic");
    let scoped =
        set("custom_predicate") || set("partition") || strategy.get("portable_scope").is_some_and(|s| !s.is_null());
    if mode == "partition_replace" && atomic && !scoped {
        Ok(())
    } else {
        Err(Refusal::new(
            code::ROLLING_WINDOW_REQUIRES_ATOMIC_REPLACE,
            "a window goes with mode partition_replace and atomicity target_atomic, and with no other predicate",
        ))
    }
}

fn source_options(options: &Object) -> Result<(), Refusal> {
    own_route_only(options)?;
    match options.get("source_options") {
        None => Ok(()),
        Some(Json::Object(nested)) => own_route_only(nested),
        Some(_) => Err(Refusal::new(code::SOURCE_OPTIONS_INVALID, "source_options must be an object")),
    }
}

fn own_route_only(scope: &Object) -> Result<(), Refusal> {
    match UNSUPPORTED_SOURCE_OPTIONS.iter().find(|key| scope.get(**key).is_some_and(is_authored)) {
        None => Ok(()),
        Some(key) => Err(Refusal {
            code: crate::error::Code::new(code::SOURCE_POLICY_UNSUPPORTED),
            message: format!("the source option {key} belongs to another route; this one reads whole ordinary columns")
                .into(),
        }),
    }
}

/// Anything but null, false, 0 and the empty text.
fn is_authored(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => false,
        Json::Int(value) => value.bits() != 0,
        Json::Float(value) => value.get() != 0.0,
        Json::Str(text) => !text.is_empty(),
        Json::Bool(true) | Json::Array(_) | Json::Object(_) => true,
    }
}

/// As [`is_authored`], but an empty list or object is nothing.
pub(super) fn is_set(value: &Json) -> bool {
    match value {
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
        other => is_authored(other),
    }
}
