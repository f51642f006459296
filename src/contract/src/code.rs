//! Every stable code that this crate hands out, with its meaning and remedy.
//!
//! The pages under `docs/reference/errors/` are generated from this table. A code is the text before `: ` of a message
//! and never changes once released; codes with a detail (`BASE:DETAIL`) are listed by their base.

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeEntry {
    /// The stable text.
    pub code: &'static str,
    /// What it says about the world.
    pub meaning: &'static str,
    /// What a person does about it.
    pub remedy: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal, $remedy:literal;)*) => {
        $(#[doc = $meaning] pub const $name: &str = $code;)*

        const TABLE: &[CodeEntry] = &[$(CodeEntry { code: $code, meaning: $meaning, remedy: $remedy }),*];
    };
}

/// The whole table, in the order of this file.
pub fn all() -> &'static [CodeEntry] {
    TABLE
}

codes! {
    // --- raw snapshot (contract.md 2, 11) ---
    SOURCE_SNAPSHOT_INVALID = "mssql_native.source_snapshot_invalid",
        "A raw snapshot document is larger than 65,536 canonical bytes, deeper than 8 levels, or holds a value that no such document may hold.",
        "Treat it as tampering or a bug: keep the journal, inspect it, do not publish.";
    SOURCE_SNAPSHOT_PROFILE_INVALID = "mssql_native.source_snapshot_profile_invalid",
        "A raw snapshot profile has missing, extra or ill-typed fields.",
        "Treat it as tampering or a bug: keep the journal, inspect it, do not publish.";
    SOURCE_SNAPSHOT_EOF_INVALID = "mssql_native.source_snapshot_eof_invalid",
        "An EOF descriptor has missing, extra or ill-typed fields.",
        "Treat it as tampering or a bug: keep the journal, inspect it, do not publish.";
    SOURCE_SNAPSHOT_EXTENSION_INVALID = "mssql_native.source_snapshot_extension_invalid",
        "The completion record's raw snapshot disagrees with its binding, its digests or the completed rows.",
        "Treat it as tampering or a bug: keep the journal, inspect it, do not publish.";
    SOURCE_SNAPSHOT_BINDING_INVALID = "mssql_native.source_snapshot_binding_invalid",
        "A stored source binding is no plain digest and no version 1 marker, or does not agree with the selected mode.",
        "Use the version that wrote the journal; otherwise treat it as tampering and do not act on it.";
    SOURCE_SNAPSHOT_MODE_INVALID = "mssql_native.source_snapshot_mode_invalid",
        "The source_snapshot selector is malformed.",
        "Write {mode: query_visible}, or {mode: exact_raw_rows, replica_scope: single_server | connected_replica}, or omit it.";
    SOURCE_SNAPSHOT_PROFILE_CHANGED = "mssql_native.source_snapshot_profile_changed",
        "The source's authority drifted between two acquisitions of the profile.",
        "Settle custody, find what changed (schema, user, roles, policies, settings, certificate, address) and start a new run.";
    SOURCE_SNAPSHOT_ROW_COUNT_MISMATCH = "mssql_native.source_snapshot_row_count_mismatch",
        "The rows of the proven end of the source stream differ from the rows of the verified stages.",
        "Do not publish; inspect the journal and report it.";
    SOURCE_SNAPSHOT_SCHEMA_CHANGED = "mssql_native.source_snapshot_schema_changed",
        "The frozen source schema differs from the one the plan was made from.",
        "Start a new run; do not alter the table while it runs.";
    SOURCE_SNAPSHOT_EOF_REQUIRED = "mssql_native.source_snapshot_eof_required",
        "A raw run was asked to resume although its source end was never sealed.",
        "Inspect, reconcile or retire it; then start a new run.";
    SOURCE_SNAPSHOT_COMPLETION_CHANGED = "mssql_native.source_snapshot_completion_changed",
        "The completion record of a raw run does not match its own digests.",
        "Treat it as tampering or a bug: keep the journal, inspect it, do not publish.";
    REPLACING_RAW_SNAPSHOT_REQUIRED = "mssql_native.replacing_raw_snapshot_required",
        "exact_raw_rows was asked for a relation that is missing, of another engine, with other engine arguments, or not in an Atomic database.",
        "Name a ReplacingMergeTree or ReplicatedReplacingMergeTree of an Atomic database, or remove source_snapshot.";
    REPLICA_SCOPE_UNPROVEN = "mssql_native.replica_scope_unproven",
        "The declared replica scope does not fit the engine, or the connection is not provably one server.",
        "Declare the scope that fits the engine and connect directly to one host.";
    SOURCE_READ_PROFILE_UNSUPPORTED = "mssql_native.source_read_profile_unsupported",
        "TLS, settings, filters, calendars, mutations or the size of the catalog do not allow a provable read.",
        "Fix the named cause; never weaken visibility settings to get past it.";
    SOURCE_PROVENANCE_INCOMPLETE = "mssql_native.source_provenance_incomplete",
        "Parts, offsets, checksums or the partition expression do not prove where the rows come from.",
        "Check partitions, part checksums and column names; settle custody and start a new run.";
    SOURCE_UUID_REQUIRED = "mssql_native.source_uuid_required",
        "The source relation has no UUID.",
        "Use a table of an Atomic database.";
    ORDINARY_COLUMNS_REQUIRED = "mssql_native.ordinary_columns_required",
        "The source relation has no columns, or some with DEFAULT, MATERIALIZED, ALIAS or EPHEMERAL.",
        "Use a table with ordinary columns only.";
    DUPLICATE_COLUMNS = "mssql_native.duplicate_columns",
        "The source catalog lists a column twice.",
        "Check the table's definition.";
    SOURCE_IDENTIFIER_INVALID = "mssql_native.source_identifier_invalid",
        "A source database, table or column name is outside [A-Za-z_][A-Za-z0-9_]*.",
        "Rename it in the source.";
    SOURCE_TYPE_UNSUPPORTED = "mssql_native.source_type_unsupported",
        "A source column has a type that the route does not admit.",
        "Leave the column out by using a table without it, or convert it in the source.";
    PLAIN_MERGETREE_ATOMIC_REQUIRED = "mssql_native.plain_mergetree_atomic_required",
        "The default mode was asked for a relation that is missing, no plain MergeTree, or not in an Atomic database.",
        "Name a MergeTree of an Atomic database, or select exact_raw_rows for a replacing engine.";
    SOURCE_SCHEMA_CHANGED = "mssql_native.source_schema_changed",
        "The source's columns differ from the admitted ones.",
        "Start a new run; do not alter the table while it runs.";
    SOURCE_IDENTITY_CHANGED = "mssql_native.source_identity_changed",
        "The source relation or the way it is read differs from what was admitted.",
        "Start a new run; do not drop, exchange or reconfigure the table while it runs.";
    SOURCE_REEXTRACT_REQUIRED = "mssql_native.source_reextract_required",
        "The source stream ended without the proof of its end.",
        "Settle this attempt and start a new run; a source query is never resumed.";
    SOURCE_BLOCK_TOO_LARGE = "native_transfer.source_block_too_large",
        "A block of the source exceeds the hard cap of decoded bytes, max(32 MiB, 2 x max_row_bytes).",
        "Raise max_row_bytes if single rows are that large; otherwise report it.";
    SOURCE_UNREACHABLE = "native_transfer.source_unreachable",
        "The source server does not accept a connection in time.",
        "Check host, port, network policy and whether the server runs.";
    SOURCE_LOGIN_REFUSED = "native_transfer.source_login_refused",
        "The source server refused the user, the password or the database.",
        "Correct the connection's user, password and database.";
    WINDOW_COLUMN_MISSING = "mssql_native.window_column_missing",
        "The window column is absent or no DateTime or DateTime64 column.",
        "Correct strategy.window.column.";
    ROLLING_WINDOW_BOUNDS_OUT_OF_RANGE = "rolling_window_bounds_out_of_range",
        "A bound of the window lies outside years 1 to 9999, or the window is empty.",
        "Correct the interval end or the lookback.";

    // --- identity and transaction (contract.md 4, 7) ---
    INVALID_V2_IDENTITY = "mssql_native.invalid_v2_identity",
        "A verification identity has missing, extra, empty or unpaired fields.",
        "Treat it as tampering or as a journal of another version; do not act on it.";
    INVALID_SQLCLIENT_COMPANION = "mssql_native.invalid_sqlclient_companion",
        "The session writer does not identify itself as its contract demands.",
        "Install matching versions.";
    INVALID_BARRIER_TIMEOUT = "mssql_native.invalid_barrier_timeout",
        "The barrier timeout is no positive whole number of seconds.",
        "Correct the timeout.";
    INVOCATION_IDENTITY_INCOMPLETE = "mssql_transaction.invocation_identity_incomplete",
        "The run id, the process or the task name of a run is blank.",
        "Give all three.";

    // --- journal, custody, recovery (contract.md 8, 9) ---
    INVALID_JOURNAL_EVENT = "mssql_native.invalid_journal_event",
        "A stored writer event does not follow from its attempt's history.",
        "Keep the journal and do not act on it; use the version that wrote it.";
    INVALID_JOURNAL_EVENT_TRANSITION = "mssql_native.invalid_journal_event_transition",
        "A new writer event does not follow from its attempt's history; it was not written.",
        "Inspect the run: another process may have written to its journal.";
    INVALID_TARGET_CUSTODY = "mssql_native.invalid_target_custody",
        "A custody record is not of its closed form.",
        "Keep the journal and do not act on it; use the version that wrote it.";
    CUSTODY_HELD = "mssql_native.custody_held",
        "Another run holds the target.",
        "Inspect that run and settle it (resume, reconcile or retire) before starting another.";
    CUSTODY_RELEASE_UNPROVED = "mssql_native.custody_release_unproved",
        "Custody could not be released because this run does not hold it.",
        "Inspect the custody row of the target and the run that holds it.";
    INVALID_RECEIPT = "mssql_native.invalid_receipt",
        "A stored chunk receipt is not of its closed form.",
        "Keep the journal and do not act on it.";
    NONCONTIGUOUS_RECEIPTS = "mssql_native.noncontiguous_receipts",
        "The verified chunks of a run are not 0, 1, 2, ... without a gap.",
        "Inspect the run; retire it and start a new one.";
    SHARED_STAGE_IDENTITY = "mssql_native.shared_stage_identity",
        "Two chunks claim one stage.",
        "Do not publish; inspect the run.";
    STAGE_COMPLETE_CHANGED = "mssql_native.stage_complete_changed",
        "The completion record does not match its receipts or metadata.",
        "Treat it as tampering or a bug: keep the journal, do not publish.";
    INVALID_JOURNAL = "mssql_native.invalid_journal",
        "The journal holds a record that does not belong to its run or is not known.",
        "Keep the journal and do not act on it; use the version that wrote it.";
    PUBLICATION_PHASE_ORDER = "mssql_native.publication_phase_order",
        "A step of the publication came out of order.",
        "Inspect the run; resume goes on from the last proved step.";
    JOURNAL_IDENTITY_CHANGED = "mssql_native.journal_identity_changed",
        "The journal of the run carries another identity than the run has now.",
        "Use the manifest, limits and version that started the run, or retire it.";
    NONPUBLICATION_FROZEN = "mssql_native.nonpublication_frozen",
        "The run is proved unpublished; no attempt of it may go on.",
        "Retire it and start a new run.";
    NONPUBLICATION_REQUIRED = "mssql_native.nonpublication_required",
        "Stages can be retired only after the run is proved unpublished.",
        "Reconcile the run first.";
    RECEIPT_EVENT_MISMATCH = "mssql_native.receipt_event_mismatch",
        "A chunk receipt does not agree with the verified event of its attempt.",
        "Do not publish; inspect the run.";
    UNVERIFIED_ATTEMPTS = "mssql_native.unverified_attempts",
        "The run cannot be completed or settled while an attempt is neither verified nor retired.",
        "Reconcile the run.";
    SOURCE_EOF_REQUIRED = "mssql_native.source_EOF_required",
        "The run cannot go on to publication before its source end is sealed.",
        "Start a new run.";
    RECOVERY_PLAN_INVALID = "mssql_native.recovery_plan_invalid",
        "The stored recovery plan is not of its closed form.",
        "Keep the journal and do not act on it.";
    EMPTY_STAGING = "mssql_native.empty_staging",
        "The run staged nothing.",
        "Retire it to release the target.";
    WRITER_ACK_LOST = "mssql_native.writer_ack_lost",
        "The fate of at least one chunk writer is open.",
        "Reconcile: it takes the writer's lock at the target and finds out.";
    PARTIAL_STAGE_PROVED = "mssql_native.partial_stage_proved",
        "A writer is gone and its stage is proved ours.",
        "Reconcile to retire the stages.";
    VERIFIED_EOF_RECOVERABLE = "mssql_native.verified_eof_recoverable",
        "The source was read to its proven end and every chunk is verified; nothing was published.",
        "Resume to publish, or retire to give up; the source is not read again.";
    PRE_EOF_REEXTRACT_REQUIRED = "mssql_native.pre_eof_reextract_required",
        "The run ended before the proven end of the source.",
        "Retire it, then start a new run.";
    PUBLICATION_OUTCOME_UNKNOWN = "mssql_native.publication_outcome_unknown",
        "A publication was begun and its outcome is not known.",
        "Reconcile: it reads the receipt under the publication lock.";
    PUBLISHED_RECOVERABLE = "mssql_native.published_recoverable",
        "The publication is proved; evidence or state is not yet complete.",
        "Resume to finish.";
    RECOVERY_SUCCEEDED = "mssql_native.recovery_succeeded",
        "The run is complete.",
        "Nothing; if custody is still held, resume to clean up.";
    STAGES_RETIRED = "mssql_native.stages_retired",
        "Every stage of the run is gone.",
        "Start a new run; if custody is still held, retire once more.";
    CUSTODY_RELEASED = "mssql_native.custody_released",
        "The run is complete and the target is free.",
        "Nothing.";
    INCIDENT_RETAINED = "mssql_native.incident_retained",
        "A writer's fate could not be settled automatically.",
        "Prove at the server that the writer's session is gone, then retire.";

    // --- capacity (contract.md 5.5) ---
    SPOOL_CAPACITY_INSUFFICIENT = "mssql_native.spool_capacity_insufficient",
        "The work folder has less free space than the chunks in flight can need.",
        "Free space, or lower max_bytes, max_pending or parallelism.";
    TARGET_CAPACITY_UNAVAILABLE = "mssql_native.target_capacity_unavailable",
        "The target does not show its files, volumes or log to the loader.",
        "Grant VIEW SERVER STATE and VIEW DATABASE STATE (or their performance-state successors).";
    TARGET_VOLUME_HEADROOM_INSUFFICIENT = "mssql_native.target_volume_headroom_insufficient",
        "A data volume of the target has less room than max_total_encoded_bytes.",
        "Free space on the volume or lower the limit.";
    TARGET_LOG_HEADROOM_INSUFFICIENT = "mssql_native.target_log_headroom_insufficient",
        "The target's log has less room than max_total_encoded_bytes.",
        "Back up the log, let it grow, or lower the limit.";
    STAGING_TABLE_LIMIT_EXCEEDED = "mssql_native.staging_table_limit_exceeded",
        "The target database holds more staging tables than max_staging_tables.",
        "Settle the runs that left them.";
    STAGING_OBJECT_LIMIT_EXCEEDED = "mssql_native.staging_object_limit_exceeded",
        "The run needs more chunks than max_staging_tables allows.",
        "Raise max_staging_tables, or max_rows and max_bytes, or read a smaller window.";
    STAGE_ALLOCATION_THRESHOLD_EXCEEDED = "mssql_native.stage_allocation_threshold_exceeded",
        "All staging tables together take more space than stage_allocated_bytes_stop_threshold; the number is what was seen.",
        "Raise the threshold, settle other runs, or read a smaller window.";
    TOTAL_ENCODED_BYTES_EXCEEDED = "mssql_native.total_encoded_bytes_exceeded",
        "The run encoded more bytes than max_total_encoded_bytes.",
        "Raise max_total_encoded_bytes or read a smaller window.";

    // --- digests (contract.md 3.4) ---
    TARGET_DIGEST_LIMB = "mssql_native.target_digest_limb",
        "A partial sum of the target's digest query lies outside what its row count allows.",
        "Keep the stage and inspect it: another session may have changed it, or the server misbehaves.";
    // --- source columns and types (contract.md 3.2) ---
    RESERVED_COLUMN_NAME = "native_transfer.reserved_column_name",
        "A business column starts with __dpone__, which belongs to the lineage columns.",
        "Rename the column on the source.";
    SOURCE_PHYSICAL_TYPE_INVALID = "mssql_snapshot_reconciliation.source_physical_type_invalid",
        "No SQL Server type holds the source column's values exactly.",
        "Change the column on the source.";
    TARGET_PHYSICAL_TYPE_INVALID = "mssql_snapshot_reconciliation.target_physical_type_invalid",
        "An authored target type is not a SQL Server column type of this route.",
        "Write the type as in CREATE TABLE, for example decimal(18,4).";
    LOSSY_TARGET_TYPE_FORBIDDEN = "mssql_snapshot_reconciliation.lossy_target_type_forbidden",
        "An authored target type could change a value.",
        "Choose a type that holds every source value.";
    TARGET_SCHEMA_MISMATCH = "native_transfer.target_schema_mismatch",
        "The existing target table differs from what the source needs.",
        "Change the target table, or name the target type in sink.options.physical_design.";
    LINEAGE_COLUMNS_MISMATCH = "native_transfer.lineage_columns_mismatch",
        "The target's lineage columns are not those of the preset.",
        "Add or drop the named column, or choose the preset that the table was made for.";
    UTF8_COLLATION_AUTHORITY_REQUIRED = "mssql_native.utf8_collation_authority_required",
        "A target column is varchar or char, whose bytes depend on a collation.",
        "Use nvarchar.";
    // --- native rows (contract.md 3.1) ---
    UNSUPPORTED_TYPE = "mssql_native_unsupported_type",
        "A column type has no layout in the native profile, or no form for its source type.",
        "Choose another target type.";
    COLUMNS_MISMATCH = "mssql_native_columns_mismatch",
        "Rows and layout have different columns.",
        "The source changed under the transfer, or this is a bug; start a new attempt.";
    INVALID_MAX_ROW_BYTES = "mssql_native_invalid_max_row_bytes",
        "max_row_bytes is not a positive number of bytes.",
        "Set native_chunks.max_row_bytes to 1 byte or more, up to max_bytes.";
    INVALID_VALUE = "mssql_native_invalid_value",
        "A value cannot be written exactly in its target type.",
        "Correct the value on the source, or choose a target type that holds it.";
    UNEXPECTED_NULL = "mssql_native_unexpected_null",
        "A NULL came for a NOT NULL column.",
        "Allow NULL in the target column, or correct the row on the source.";
    ROW_BYTES_EXCEEDED = "mssql_native_row_bytes_exceeded",
        "A row is larger than max_row_bytes.",
        "Raise native_chunks.max_row_bytes.";
    FIELD_LENGTH_EXCEEDED = "mssql_native_field_length_exceeded",
        "A text or binary value does not fit its sized target type.",
        "Widen the target column.";
    INVALID_UTF8_SOURCE_TEXT = "mssql_native.invalid_utf8_source_text",
        "A String value for a text column is not valid UTF-8.",
        "Correct the value on the source; text is never repaired on the way.";
    NATIVE_ROW_MALFORMED = "native_transfer.native_row_malformed",
        "A native file does not hold rows of its layout.",
        "Do not use the file; the attempt has to be settled and the source extracted anew.";
    NATIVE_TIME_INEXACT = "native_transfer.native_time_inexact",
        "A time in a native file does not fit its column's scale.",
        "Do not use the file; the attempt has to be settled and the source extracted anew.";
    // --- target-local layouts (contract.md 3.4-3.5) ---
    TARGET_DIGEST_COLUMN_COUNT = "mssql_native.target_digest_column_count",
        "The table has more than 100 business columns.",
        "Split the table, or use python_readback verification.";
    TARGET_DIGEST_UNSUPPORTED_TYPE = "mssql_native.target_digest_unsupported_type",
        "A column is not bigint, float(53), nvarchar(max) or datetime2(6).",
        "Widen it with sink.options.physical_design, or use python_readback verification.";
    TARGET_DIGEST_COLUMN_IDENTIFIER = "mssql_native.target_digest_column_identifier",
        "A column name is empty, longer than 128 characters or holds a control character.",
        "Rename the column.";
    TARGET_DIGEST_EXPECTED_ROWS = "mssql_native.target_digest_expected_rows",
        "A digest query was asked to expect an impossible number of rows.",
        "This is a bug; report it.";
    TARGET_DIGEST_ROW_SHAPE = "mssql_native.target_digest_row_shape",
        "The digest query returned another number of columns.",
        "Keep the stage; the target server or a proxy misbehaves.";
    TARGET_DIGEST_ROW_VALUES = "mssql_native.target_digest_row_values",
        "The digest query returned a count that it cannot have counted.",
        "Keep the stage; the target server or a proxy misbehaves.";
    TARGET_DIGEST_COUNT_OVERFLOW = "mssql_native.target_digest_count_overflow",
        "The target table holds more rows than were written.",
        "Keep the stage and find out which session wrote into it.";
    LAYOUT_MATRIX_SOURCE_COMMIT = "mssql_native.layout_matrix_source_commit",
        "The commit of a layout matrix artifact is not 40 lower-case hex digits.",
        "Give the full commit hash.";
    // --- manifest, limits and windows (contract.md 5.5, 10) ---
    UNKNOWN_KEY = "native_transfer.unknown_key",
        "The manifest has a key that this route does not know.",
        "Correct its spelling or remove it.";
    MANIFEST_INVALID = "native_transfer.manifest_invalid",
        "A part of the manifest is missing or is another kind of value.",
        "Write what the message asks for at the named place.";
    MANIFEST_UNREADABLE = "native_transfer.manifest_unreadable",
        "The document is not one YAML or JSON document with distinct text keys.",
        "Correct it at the named line.";
    MANIFEST_KIND_UNKNOWN = "native_transfer.manifest_kind_unknown",
        "The document is neither a NativeTransfer nor a dpone.batch.v1 file.",
        "Set apiVersion and kind.";
    SELECTOR_REQUIRED = "native_transfer.selector_required",
        "The file holds several processes and none is named.",
        "Name one as FILE#schema.table.";
    SELECTOR_UNKNOWN = "native_transfer.selector_unknown",
        "The file has no process of that selector.",
        "Write it as FILE#schema.table, or as the table's id.";
    INTERVAL_CONFLICT = "native_transfer.interval_conflict",
        "Document and command line name different interval ends.",
        "Give only one of them.";
    FROZEN_PLAN_TOO_LARGE = "native_transfer.frozen_plan_too_large",
        "The manifest has more than 64 KiB of canonical JSON, so it cannot travel to a worker pod.",
        "Shorten its texts and type overrides, or run it with the command line.";
    FROZEN_PLAN_INVALID = "native_transfer.frozen_plan_invalid",
        "The frozen plan is not a NativeTransfer reduced to manifest and interval, or holds what its reader would not give back unchanged.",
        "Remove control characters and integers beyond 64 bits from the manifest; otherwise do not act on the document.";
    RESOURCE_FIELD_INVALID = "native_transfer.resource_field_invalid",
        "A field of the resource beside its manifest has a value that no pod or volume can be made of.",
        "Correct the field that the code names; it may change while the transfer exists.";
    WORKER_IMAGE_REFUSED = "native_transfer.worker_image_refused",
        "spec.workers.image is neither the operator's own worker image nor of a repository that the operator allows.",
        "Remove spec.workers.image, or have the image's repository added to worker.allowedImagePrefixes of the operator's chart.";
    RUN_TOKEN_USED = "native_transfer.run_token_used",
        "spec.run.token names a run that this transfer has had before: its answer would be the old one.",
        "Set spec.run.token to a value that was never used; a date or a counter is a good one.";
    JOURNAL_TOO_SMALL = "native_transfer.journal_too_small",
        "The journal volume is smaller than the chunks that the manifest lets be in flight, with 1 GiB to spare.",
        "Let spec.journal.size grow, or make a transfer with a lower max_bytes, max_pending or parallelism.";
    TARGET_NAME_INVALID = "native_transfer.target_name_invalid",
        "A schema or table name is not a SQL Server name.",
        "Use 1 to 128 characters without control characters.";
    INVALID_QUERY_SECONDS = "native_transfer.invalid_query_seconds",
        "source.options.query_seconds is not a whole number from 1 to 86400.",
        "Correct it.";
    INVALID_LINEAGE_PRESET = "native_transfer.invalid_lineage_preset",
        "sink.options.lineage.preset is not a preset.",
        "Choose off, minimal, standard, bulk_standard or debug.";
    INVALID_FULL_REFRESH_CLEAR = "native_transfer.invalid_full_refresh_clear",
        "sink.options.full_refresh.clear is neither truncate nor delete.",
        "Choose one.";
    INVALID_OPTIONS = "mssql_native.invalid_options",
        "native_transfer is not an object.",
        "Write it as an object.";
    WIRE_REQUIRED = "mssql_native.wire_required",
        "The wire is not typed_binary with mssql_native.",
        "Set native_transfer.wire.";
    ROUTE_UNSUPPORTED = "mssql_native.route_unsupported",
        "The route is not from clickhouse to mssql.",
        "Set source.type and sink.type.";
    EXECUTION_REQUIRED = "mssql_native.execution_required",
        "native_transfer.execution is missing.",
        "Add it with chunking and native_chunks.";
    CHUNKING_INVALID = "mssql_native.chunking_invalid",
        "execution.chunking is not bounded_stream, or has another key.",
        "Write {mode: bounded_stream}.";
    NATIVE_CHUNKS_INVALID = "mssql_native.native_chunks_invalid",
        "execution.native_chunks is not an object of known limits.",
        "Correct its keys.";
    CAPACITY_LIMITS_REQUIRED = "mssql_native.capacity_limits_required",
        "A capacity limit is missing.",
        "Set max_total_encoded_bytes and stage_allocated_bytes_stop_threshold.";
    INVALID_LIMIT = "mssql_native.invalid_limit",
        "A limit is not a whole number in its range.",
        "Correct the named limit.";
    MAX_ROW_BYTES_EXCEEDS_CHUNK = "mssql_native.max_row_bytes_exceeds_chunk",
        "max_row_bytes is larger than max_bytes.",
        "Lower it, or raise max_bytes.";
    INVALID_VERIFICATION_BACKEND = "mssql_native.invalid_verification_backend",
        "The verifier is unknown.",
        "Choose target_local or python_readback.";
    INVALID_IMPORT_BACKEND = "mssql_native.invalid_import_backend",
        "The importer is unknown.",
        "Choose bcp or mssql_sqlclient.";
    INVALID_LAYOUT_VERSION = "mssql_native.invalid_layout_version",
        "The layout version is not the number 1 or 2.",
        "Correct or remove it.";
    RAW_SNAPSHOT_REQUIRES_TARGET_LOCAL = "mssql_native.raw_snapshot_requires_target_local_verification",
        "exact_raw_rows is verified by something else than target_local.",
        "Set execution.verification_backend: target_local.";
    SQLCLIENT_REQUIRES_TARGET_LOCAL = "mssql_native.sqlclient_requires_target_local_verification",
        "The session writer is verified by something else than target_local.",
        "Set execution.verification_backend: target_local.";
    LAYOUT_REQUIRES_SQLCLIENT = "mssql_native.layout_requires_sqlclient",
        "A layout version is given for the bcp writer.",
        "Remove it, or choose import_backend mssql_sqlclient.";
    EXPLICIT_WINDOW_REQUIRED = "mssql_native.explicit_window_required",
        "The strategy is neither full_refresh nor partition_replace with a window.",
        "Choose one of them.";
    FULL_REFRESH_WINDOW_FORBIDDEN = "mssql_native.full_refresh_window_forbidden",
        "full_refresh has a window.",
        "Remove it, or choose partition_replace.";
    WINDOW_INTERVAL_REQUIRED = "mssql_native.window_interval_required",
        "A window has no interval end.",
        "Give spec.interval.end or --interval-end.";
    SOURCE_POLICY_UNSUPPORTED = "mssql_native.source_policy_unsupported",
        "A source option of another route is set.",
        "Remove it.";
    SOURCE_OPTIONS_INVALID = "mssql_native.source_options_invalid",
        "source_options is not an object.",
        "Correct or remove it.";
    ADDITIONAL_SCOPE_UNSUPPORTED = "mssql_native.additional_scope_unsupported",
        "A predicate or deduplication is set beside the window.",
        "Remove it.";
    COMPOSITION_REQUIRED = "mssql_native.composition_required",
        "This release cannot run the chosen backends.",
        "Set import_backend mssql_sqlclient and verification_backend target_local.";
    QUALITY_POLICY_REQUIRES_COMPOSITION = "mssql_native.quality_policy_requires_composition",
        "The process has a quality policy.",
        "Remove quality from the process.";
    ROLLING_WINDOW_REQUIRED_FOR_ATOMICITY = "rolling_window_required_for_strategy_atomicity",
        "strategy.atomicity stands without a window.",
        "Add the window, or remove atomicity.";
    ROLLING_WINDOW_REQUIRES_ATOMIC_REPLACE = "rolling_window_requires_atomic_replace",
        "A window stands without partition_replace and target_atomic, or with another predicate.",
        "Set mode and atomicity, and remove predicates.";
    WINDOW_OPTIONS_INVALID = "rolling_window_options_invalid",
        "The window is no object of its five keys.",
        "Correct its keys.";
    WINDOW_OPTIONS_REQUIRED = "rolling_window_options_required",
        "The window lacks column, anchor or lookback.",
        "Add them.";
    WINDOW_COLUMN_INVALID = "rolling_window_column_invalid",
        "The window's column is not one identifier.",
        "Name one column without a table.";
    WINDOW_CONTEXT_UNSUPPORTED = "rolling_window_context_unsupported",
        "The window's anchor is not data_interval_end, or its zone not UTC.",
        "Set them so.";
    DURATION_INVALID = "rolling_window_duration_invalid",
        "A duration is not of the form P[nD][T[nH][nM][nS]].",
        "Write it so, for example P1D.";
    DURATION_NONPOSITIVE = "rolling_window_duration_nonpositive",
        "A duration is zero.",
        "Make it longer.";
    DURATION_OUT_OF_RANGE = "rolling_window_duration_out_of_range",
        "A duration is longer than 999,999,999 days.",
        "Make it shorter.";
    WINDOW_ANCHOR_REQUIRED = "rolling_window_anchor_required",
        "The interval's end is missing.",
        "Give it as a timestamp with an offset.";
    WINDOW_ANCHOR_INVALID = "rolling_window_anchor_invalid",
        "The interval's end is not an exact timestamp.",
        "Write it with seconds and offset, such as 2013-07-05T00:00:00Z.";
    WINDOW_CHUNK_COUNT_EXCEEDED = "rolling_window_chunk_count_exceeded",
        "The lookback has more than 100,000 chunk intervals.",
        "Increase chunk_interval.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        let codes: BTreeSet<&str> = all().iter().map(|entry| entry.code).collect();
        assert_eq!(codes.len(), all().len(), "a code stands twice");
        for entry in all() {
            assert!(
                entry.code.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')),
                "{entry:?}"
            );
            assert!(entry.meaning.ends_with('.') && entry.remedy.ends_with('.'), "{entry:?}");
        }
    }
}
