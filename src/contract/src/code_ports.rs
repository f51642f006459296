//! Codes of adapters, runtime and command line: the second half of the table in [`crate::code`].

use crate::code::CodeEntry;

const fn entry(code: &'static str, meaning: &'static str, remedy: &'static str) -> CodeEntry {
    CodeEntry { code, meaning, remedy }
}

/// Codes that are handed out outside of this crate.
pub const PORT_CODES: &[CodeEntry] = &[
    entry(
        "mssql_native.concurrent_receipt_payload_mismatch",
        "The receipt of this operation exists and names another payload, plan or owner.",
        "Keep everything. Compare the receipt row with the journal; two journals may claim the same run id.",
    ),
    entry(
        "mssql_native.configuration_changed",
        "The run id belongs to another manifest or interval than the one given.",
        "Use the file and interval that the run was started with, or a new run id.",
    ),
    entry(
        "mssql_native.encoder_size_authority_changed",
        "A chunk was encoded to another size than was measured before it was cut.",
        "Do not use this build; report it with the manifest.",
    ),
    entry(
        "mssql_native.operational_evidence_changed",
        "The target holds other evidence for this operation than the journal.",
        "Keep both documents and compare them before anything else.",
    ),
    entry(
        "mssql_native.prepared_content_changed",
        "The prepared table was altered between its verification and the publication.",
        "Nothing was published. Find out who writes to the staging schema, then repeat publish.",
    ),
    entry(
        "mssql_native.prepared_digest_mismatch",
        "The prepared table does not hold the rows of the verified stages.",
        "Nothing was published. Find out who writes to the staging schema.",
    ),
    entry(
        "mssql_native.prepared_owner_mismatch",
        "A table with a name of ours carries another owner's mark, or none.",
        "The table is left alone. Look at it; rename it if it is not a stage.",
    ),
    entry(
        "mssql_native.publication_absence_proved",
        "A publication in doubt turned out not to have happened: no receipt under the publication locks.",
        "The run is settled; start a new run with a new id.",
    ),
    entry(
        "mssql_native.publication_unresolved",
        "The target holds a receipt that the journal knows nothing of.",
        "Keep everything. Two journals may have used one run id; compare journal and receipt.",
    ),
    entry(
        "mssql_native.recovery_identity_invalid",
        "The journal has no run of that id.",
        "Check --run-id and --journal-root.",
    ),
    entry(
        "mssql_native.recovery_journal_unavailable",
        "There is no journal under that root.",
        "Give the --journal-root of the run; check that its volume is mounted.",
    ),
    entry(
        "mssql_native.retained_file_changed",
        "A sealed chunk file is not the file that was sealed.",
        "Check the volume. The run is settled without publication; start a new one.",
    ),
    entry(
        "mssql_native.server_count_mismatch",
        "SQL Server counted another number of rows than were sent or prepared.",
        "The transaction was rolled back. Look for triggers and filters on the table.",
    ),
    entry(
        "mssql_native.sqlclient_writer_not_settled",
        "The session that wrote a stage still holds its lock, so it may still write.",
        "Wait until SQL Server has ended that session (sys.dm_exec_sessions, program name), then run again.",
    ),
    entry(
        "mssql_native.stage_absence_visibility_unproved",
        "A stage is not visible, but the loader cannot see every object of the staging schema.",
        "Grant CONTROL on the staging schema to the loader, then run again.",
    ),
    entry(
        "mssql_native.stage_identity_mismatch",
        "A stage is not the object that was created, or is gone.",
        "Nothing is dropped. Find out who alters the staging schema.",
    ),
    entry(
        "mssql_native.stage_schema_changed",
        "A stage has other columns than it was created with.",
        "Find out who alters the staging schema.",
    ),
    entry(
        "mssql_native.typed_digest_mismatch",
        "The rows inside SQL Server are not the rows that were sealed.",
        "Nothing is published and the stage is kept. Do not retry before the cause is known; report it.",
    ),
    entry(
        "mssql_native.unbounded_metadata_changed",
        "The column __dpone__meta of the prepared table holds a value.",
        "Nothing was published. Find out who writes to the staging schema.",
    ),
    entry(
        "mssql_transaction.commit_outcome_unknown",
        "COMMIT was sent and neither its answer nor the receipt could be read.",
        "Everything is kept. Repeat publish with the same run id: it reads the receipt before anything else.",
    ),
    entry(
        "native_transfer.cancelled",
        "The process was asked to stop (SIGTERM, Ctrl-C) before the end of the source or before the publication.",
        "The message says whether the same run id goes on. Nothing was published by this process.",
    ),
    entry(
        "native_transfer.connection_invalid",
        "A connection key is missing or malformed; the detail names it.",
        "Give host, port, user, password and database; with --connections also transfer.dpone.io.role.",
    ),
    entry(
        "native_transfer.custody_lost",
        "Custody of the target is not held by this run any more.",
        "Nothing was published. Another opener settled the run; inspect the custody row.",
    ),
    entry(
        "native_transfer.deadline_exceeded",
        "limits.deadline passed before the source was read to its end; the extraction was cancelled.",
        "Raise spec.limits.deadline, or look for what makes the source or the target slow.",
    ),
    entry(
        "native_transfer.entropy_unavailable",
        "The operating system gives no random numbers.",
        "Check /dev/urandom in the container.",
    ),
    entry(
        "native_transfer.epoch_floor_invalid",
        "The epoch floor is higher than any journal can have been opened.",
        "Correct --epoch-floor; nothing was changed. An operator takes it from the transfer's status: look for who edited it.",
    ),
    entry(
        "native_transfer.journal_bound_exceeded",
        "A record, or the whole journal, would exceed its bound.",
        "Use a new journal root for further runs.",
    ),
    entry(
        "native_transfer.journal_fenced",
        "A later process has opened this journal.",
        "This process must stop; look at the other one.",
    ),
    entry(
        "native_transfer.journal_locked",
        "Another process writes to this journal root.",
        "Wait for it, or use another --journal-root.",
    ),
    entry(
        "native_transfer.journal_lost",
        "The journal of a run that holds custody is gone: its claim, its volume or its content.",
        "Bring the volume back under the same claim. Nothing is read or published without it.",
    ),
    entry("native_transfer.journal_read_only", "The journal was opened for reading.", "This is a bug; report it."),
    entry(
        "native_transfer.journal_unavailable",
        "The journal cannot be read, written or made durable.",
        "Check free space, permissions and health of the journal volume, then look at the run with inspect.",
    ),
    entry(
        "native_transfer.plan_digest_mismatch",
        "The plan file is not the document whose digest was given.",
        "Nothing was done. Look for who changed the worker pod's annotation, then delete the pod.",
    ),
    entry(
        "native_transfer.qualification_digests_differ",
        "Two reads of the same parts under the same authority gave different rows.",
        "Do not move this table: report it with the server's version and the output of `bench --qualify --output json`.",
    ),
    entry(
        "native_transfer.qualification_drifted",
        "The source changed so often that fewer than three trials count.",
        "Qualify while nobody writes and merges are done, or raise --trials; each trial says what excluded it.",
    ),
    entry(
        "native_transfer.qualification_unsupported",
        "The transfer does not read exact_raw_rows, or the count of trials is not 3 to 100.",
        "Select exact_raw_rows, or correct --trials.",
    ),
    entry(
        "native_transfer.receipt_missing",
        "A worker pod ended without a readable receipt.",
        "Nothing: the journal is asked. Look at the pod's state for the cause, such as OOMKilled or Evicted.",
    ),
    entry(
        "native_transfer.receipt_unwritable",
        "The file of --receipt cannot be written.",
        "Check the path and its permissions. At the start nothing was done; at the end look at the run with inspect.",
    ),
    entry(
        "native_transfer.run_fenced",
        "A later opener of this journal, or of a copy of it, has taken over at the target.",
        "This process must not act; look at the other one.",
    ),
    entry("native_transfer.run_id_invalid", "The run id is not 1 to 256 bytes of printable text.", "Choose another."),
    entry(
        "native_transfer.spool_unavailable",
        "Chunk files cannot be written.",
        "Check free space and permissions of the journal volume.",
    ),
    entry(
        "native_transfer.target_answer_invalid",
        "SQL Server answered in another shape than the statement produces.",
        "Check that the target is SQL Server 2016 SP2 or later and that nothing rewrites statements between.",
    ),
    entry(
        "native_transfer.target_busy",
        "Another session holds a lock for too long, or won a deadlock.",
        "Find it in sys.dm_tran_locks, then run again.",
    ),
    entry(
        "native_transfer.target_ca_invalid",
        "The target's ca.crt holds no usable PEM certificate.",
        "Give the PEM certificate of the authority that signed the server's certificate.",
    ),
    entry(
        "native_transfer.target_catalog_missing",
        "A table or trigger of the state catalog is missing, disabled or not the printed one; the detail names it.",
        "A DBA runs the script of `native-transfer target-catalog print` in the target database.",
    ),
    entry(
        "native_transfer.target_certificate_untrusted",
        "The server's certificate is not signed by the given CA, has expired, or does not carry the host name.",
        "Check ca.crt and host of the target connection. A given CA is the only one trusted.",
    ),
    entry(
        "native_transfer.target_connection_lost",
        "The connection to SQL Server was lost or did not answer in time.",
        "Check server and network, then look at the run with inspect.",
    ),
    entry(
        "native_transfer.target_encryption_refused",
        "The server does not encrypt the connection.",
        "Enable TLS at the server; there is no plaintext mode.",
    ),
    entry(
        "native_transfer.target_grant_missing",
        "The loader lacks a right at the target; the detail names it.",
        "Grant it; see docs/reference/grants.md and `native-transfer target-catalog print`.",
    ),
    entry(
        "native_transfer.target_login_failed",
        "SQL Server refused the login or the database.",
        "Check user, password and database of the target connection.",
    ),
    entry(
        "native_transfer.target_permission_denied",
        "SQL Server refused a statement for lack of a right.",
        "Compare the loader's grants with `native-transfer target-catalog print`.",
    ),
    entry(
        "native_transfer.target_schema_changed",
        "The target table's definition changed between admission and publication.",
        "Nothing was published. Run again when the change is settled.",
    ),
    entry(
        "native_transfer.target_statement_failed",
        "SQL Server refused a statement.",
        "Its error number is in the log at debug level; nothing was changed by it.",
    ),
    entry(
        "native_transfer.target_table_missing",
        "The target table does not exist or is not visible to the loader.",
        "Create it, or grant SELECT on it.",
    ),
    entry(
        "native_transfer.target_unreachable",
        "SQL Server could not be reached, or does not speak TDS on that port.",
        "Check host, port and network.",
    ),
    entry(
        "native_transfer.worker_files_unavailable",
        "The process cannot write temporary files or start threads.",
        "Check TMPDIR and the limits of the container.",
    ),
    entry(
        "native_transfer.worker_panicked",
        "A worker ended unexpectedly.",
        "The run is settled or kept as for any other failure; please report it.",
    ),
];
