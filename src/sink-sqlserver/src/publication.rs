//! The publication transaction on one session, its COMMIT, and the receipt that is believed instead of the answer.

use contract::error::{Code, Fate, PortError};
use contract::port::target::{PublishRequest, Receipt, ReceiptProbe};

use crate::error::{SessionError, refuse};
use crate::observation::{fingerprint, observe_table};
use crate::probe;
use crate::session::{Cell, Row, Session};
use crate::sql::{digest, prepare, publish};
use crate::target::{SqlServerTarget, digests, field};

/// Publishes once. See [`contract::port::target::Target::publish`] for what each failure says.
pub(crate) async fn publish(target: &SqlServerTarget, request: &PublishRequest) -> Result<Receipt, PortError> {
    let mut session = target.session("publish").await?;
    match before_commit(target, &mut session, request).await {
        Ok(Some(receipt)) => {
            roll_back(target, &mut session).await;
            session.close().await;
            exact(request, receipt)
        }
        Ok(None) => {
            let answer = session.query(publish::COMMIT, target.options().timeouts.commit).await;
            drop(session);
            after_commit(target, request, answer.err()).await
        }
        Err(error) => {
            // Why NotDone: no COMMIT was sent; the server rolls back what this session did, at the latest when it ends.
            roll_back(target, &mut session).await;
            session.close().await;
            Err(PortError { fate: Fate::NotDone, ..error })
        }
    }
}

async fn roll_back(target: &SqlServerTarget, session: &mut Session) {
    // Why ignored: under XACT_ABORT most errors have rolled back already, and a dead session rolls back by itself.
    let _ = session.query(publish::ROLLBACK, target.options().timeouts.statement).await;
}

/// Everything up to COMMIT. `Some` = the receipt of this operation was there already, nothing was changed.
async fn before_commit(
    target: &SqlServerTarget,
    session: &mut Session,
    request: &PublishRequest,
) -> Result<Option<Receipt>, PortError> {
    let timeouts = target.options().timeouts;
    let changing = SessionError::changing;
    let receipts = session.rows(&publish::begin(request), timeouts.bulk).await.map_err(changing)?;
    if let Some(row) = receipts.first() {
        return receipt(row).map(Some).map_err(changing);
    }
    session.query(&publish::hold_prepared(request), timeouts.bulk).await.map_err(changing)?;
    verify_prepared(session, request, timeouts.bulk).await?;
    let object = target_object(target, session, request).await?;
    let moved = session.row(&publish::mutate(request), timeouts.bulk).await.map_err(changing)?;
    let (replaced, inserted, total, loaded_at) = mutation(&moved).map_err(changing)?;
    if inserted != request.prepared.expected_rows || total != inserted {
        return Err(refuse(
            "mssql_native.server_count_mismatch",
            "the target does not hold the prepared rows after the insert: look for triggers or filters on the target table",
        ));
    }
    let after = fingerprint(session, object, timeouts.statement).await.map_err(changing)?;
    if after != request.target_fingerprint {
        return Err(schema_changed());
    }
    let facts = publish::MutationFacts {
        replaced_rows: replaced,
        inserted_rows: inserted,
        loaded_at,
        before: request.target_fingerprint,
        after,
    };
    session.query(&publish::receipt(request, &facts), timeouts.statement).await.map_err(changing)?;
    Ok(None)
}

/// The prepared rows are still those that were digested after the fill; the table stays locked until COMMIT.
async fn verify_prepared(
    session: &mut Session,
    request: &PublishRequest,
    deadline: std::time::Duration,
) -> Result<(), PortError> {
    let prepared = &request.prepared;
    let (text, fields) = prepare::digest(&prepared.stage, &prepared.business_columns, prepared.expected_rows)?;
    debug_assert!(fields == digest::SINGLE_FIELDS || fields == digest::DOUBLE_FIELDS);
    let row = session.row(&text, deadline).await.map_err(SessionError::changing)?;
    let (_, full) = digests(&row, fields).map_err(SessionError::changing)?;
    if full == request.prepared_full {
        return Ok(());
    }
    Err(refuse(
        "mssql_native.prepared_content_changed",
        "the prepared table was altered after its verification: nothing was published; find out who writes to the staging schema",
    ))
}

/// The target is the object that admission saw, unchanged; returns its object id.
async fn target_object(
    target: &SqlServerTarget,
    session: &mut Session,
    request: &PublishRequest,
) -> Result<i32, PortError> {
    let seen = observe_table(session, &request.request.table, target.options().timeouts.statement)
        .await
        .map_err(SessionError::changing)?;
    match seen {
        Some(table) if table.fingerprint == request.target_fingerprint => Ok(table.object_id),
        _ => Err(schema_changed()),
    }
}

fn schema_changed() -> PortError {
    refuse(
        "native_transfer.target_schema_changed",
        "the target table's definition changed since admission: nothing was published; run again after the change is settled",
    )
}

/// After COMMIT was sent: the receipt decides, read by the other library on a fresh session.
async fn after_commit(
    target: &SqlServerTarget,
    request: &PublishRequest,
    answer: Option<SessionError>,
) -> Result<Receipt, PortError> {
    let probe = probe::receipt(target.options(), &request.request, &request.operation, request.lock_timeout_ms).await;
    match (probe, answer) {
        (Ok(ReceiptProbe::Present(receipt)), _) => exact(request, receipt),
        // Why NotDone: read under both publication locks, so the committing transaction is over and left no receipt.
        (Ok(ReceiptProbe::AbsentUnderLock), Some(error)) => {
            Err(PortError { fate: Fate::NotDone, ..error.changing() })
        }
        (Ok(ReceiptProbe::AbsentUnderLock), None) => Err(unknown(
            "COMMIT was acknowledged but its receipt is not there: nothing is dropped; ask the DBA whether the database was restored",
        )),
        (Err(error), _) => Err(unknown(
            "COMMIT was sent and its receipt could not be read: everything is kept; run publish again to read the receipt",
        )
        .caused_by(error)),
    }
}

fn unknown(message: &'static str) -> PortError {
    PortError {
        code: Code::new("mssql_transaction.commit_outcome_unknown"),
        message: message.into(),
        fate: Fate::Unknown,
        source: None,
    }
}

/// A receipt counts only if it is exactly that of this operation, owner, payload and plan.
fn exact(request: &PublishRequest, receipt: Receipt) -> Result<Receipt, PortError> {
    let same = receipt.receipt_id == request.receipt.receipt_id
        && receipt.owner_digest == request.operation.owner_digest
        && receipt.operation_epoch == request.operation_epoch
        && receipt.payload_manifest_sha256 == request.receipt.payload_manifest_sha256
        && receipt.mutation_plan_sha256 == request.receipt.mutation_plan_sha256
        && receipt.inserted_rows == request.receipt.rows;
    if same {
        return Ok(receipt);
    }
    Err(PortError::unknown(
        "mssql_native.concurrent_receipt_payload_mismatch",
        "the receipt of this operation names another payload: keep everything and compare receipt and journal",
    ))
}

fn mutation(row: &Row) -> Result<(u64, u64, u64, String), SessionError> {
    Ok((field(row, 0)?.count()?, field(row, 1)?.count()?, field(row, 2)?.count()?, field(row, 3)?.text()?.to_string()))
}

/// A receipt row in the column order of [`publish::receipt_query`].
pub(crate) fn receipt(row: &Row) -> Result<Receipt, SessionError> {
    Ok(Receipt {
        receipt_id: field(row, 0)?.text()?.to_string(),
        owner_digest: field(row, 1)?.digest()?,
        operation_epoch: field(row, 2)?.int()?,
        payload_manifest_sha256: field(row, 3)?.digest()?,
        mutation_plan_sha256: field(row, 4)?.digest()?,
        inserted_rows: field(row, 5)?.count()?,
        replaced_rows: match field(row, 6)? {
            Cell::Null => None,
            cell => Some(cell.count()?),
        },
        committed_at: format!("{}Z", field(row, 7)?.text()?),
    })
}
