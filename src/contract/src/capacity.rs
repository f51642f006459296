//! Whether there is room: decisions over observed space, at admission, before preparation and before publication
//! (contract.md 5.5). Observations are not reservations; a missing one is a refusal.

use crate::code;
use crate::error::Refusal;
use crate::limits::Limits;
use crate::port::target::CapacityObservation;

/// Memory of the process beside the retained chunks, bytes (design.md 6).
pub const PROCESS_BYTES: u64 = 96 << 20;

/// Smallest cap of one decoded source block, bytes (design.md 3.4).
pub const SOURCE_BLOCK_BYTES_MIN: u64 = 32 << 20;

/// The cap of one decoded source block: 32 MiB, or twice the longest row.
pub fn source_block_bytes_max(limits: &Limits) -> u64 {
    SOURCE_BLOCK_BYTES_MIN.max(limits.max_row_bytes.saturating_mul(2))
}

/// Peak resident memory that a run may reach at any table size: (C + 1) * max_bytes + 96 MiB.
pub fn resident_bytes_max(limits: &Limits) -> u64 {
    limits.spool_payload_bound().saturating_add(PROCESS_BYTES)
}

/// Refuses when the local disk has less than the spool bound, 1 MiB and 1 GiB free.
///
/// # Errors
/// `mssql_native.spool_capacity_insufficient`.
pub fn admit_spool(limits: &Limits, free_bytes: u64) -> Result<(), Refusal> {
    require(
        free_bytes >= limits.required_free_spool_bytes(),
        code::SPOOL_CAPACITY_INSUFFICIENT,
        "The work folder has too little free space for the chunks in flight; free some, or lower max_bytes, \
         max_pending or parallelism.",
    )
}

/// Refuses when the target has too little room for what may still be written to it.
///
/// # Errors
/// In this order: `mssql_native.target_capacity_unavailable` (no data volume observed),
/// `target_volume_headroom_insufficient`, `target_log_headroom_insufficient`, `staging_table_limit_exceeded`,
/// `stage_allocation_threshold_exceeded:BYTES`.
pub fn admit_target(limits: &Limits, observed: &CapacityObservation) -> Result<(), Refusal> {
    require(
        !observed.data_volume_headroom_bytes.is_empty(),
        code::TARGET_CAPACITY_UNAVAILABLE,
        "The target does not show its files and volumes to this user; grant VIEW SERVER STATE and VIEW DATABASE STATE.",
    )?;
    let volumes = observed.data_volume_headroom_bytes.iter();
    require(
        volumes.min().is_some_and(|headroom| *headroom >= limits.max_total_encoded_bytes),
        code::TARGET_VOLUME_HEADROOM_INSUFFICIENT,
        "A data volume of the target has less room than max_total_encoded_bytes; free space there or lower the limit.",
    )?;
    require(
        observed.log_headroom_bytes >= limits.max_total_encoded_bytes,
        code::TARGET_LOG_HEADROOM_INSUFFICIENT,
        "The target's log has less room than max_total_encoded_bytes; back up the log, let it grow or lower the limit.",
    )?;
    require(
        observed.stage_tables <= limits.max_staging_tables,
        code::STAGING_TABLE_LIMIT_EXCEEDED,
        "The target database holds more staging tables than max_staging_tables; settle the runs that left them.",
    )?;
    check_allocation(limits, observed.stage_allocated_bytes)
}

/// Refuses when all staging tables of the database together have reached the stop threshold. Checked before each frame
/// and around each import; imports that are already active can still overshoot.
///
/// # Errors
/// `mssql_native.stage_allocation_threshold_exceeded:BYTES`.
pub fn check_allocation(limits: &Limits, stage_allocated_bytes: u64) -> Result<(), Refusal> {
    if stage_allocated_bytes <= limits.stage_allocated_bytes_stop_threshold {
        return Ok(());
    }
    Err(Refusal::with_detail(
        code::STAGE_ALLOCATION_THRESHOLD_EXCEEDED,
        &stage_allocated_bytes.to_string(),
        "The staging tables take more space than stage_allocated_bytes_stop_threshold; raise it or read less at once.",
    ))
}

/// Refuses a chunk that would need more staging tables than allowed; one is reserved for the prepared table.
///
/// # Errors
/// `mssql_native.staging_object_limit_exceeded`.
pub fn check_ordinal(limits: &Limits, ordinal: u64) -> Result<(), Refusal> {
    require(
        ordinal.checked_add(2).is_some_and(|tables| tables <= limits.max_staging_tables),
        code::STAGING_OBJECT_LIMIT_EXCEEDED,
        "The run needs more chunks than max_staging_tables allows; raise it, raise max_rows and max_bytes, or read less.",
    )
}

/// Refuses when the chunks sealed so far exceed the whole run's bound.
///
/// # Errors
/// `mssql_native.total_encoded_bytes_exceeded`.
pub fn check_total(limits: &Limits, encoded_bytes: u64) -> Result<(), Refusal> {
    require(
        encoded_bytes <= limits.max_total_encoded_bytes,
        code::TOTAL_ENCODED_BYTES_EXCEEDED,
        "The run encoded more than max_total_encoded_bytes; raise it or read a smaller window.",
    )
}

fn require(holds: bool, code: &'static str, message: &'static str) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal::new(code, message)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            max_total_encoded_bytes: 1000,
            stage_allocated_bytes_stop_threshold: 5000,
            max_rows: 10,
            max_bytes: 100,
            max_row_bytes: 50,
            max_pending: 2,
            max_staging_tables: 3,
            parallelism: 1,
            encoding_parallelism: Some(4),
            import_parallelism: Some(3),
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut CapacityObservation), expected: Option<&str>) {
        let mut observed = CapacityObservation {
            stage_allocated_bytes: 5000,
            stage_tables: 3,
            data_volume_headroom_bytes: vec![1000, 2000],
            log_headroom_bytes: 1000,
        };
        change(&mut observed);
        let refused = admit_target(&limits(), &observed).err().map(|refusal| refusal.code.to_string());
        assert_eq!(refused.as_deref(), expected);
    }

    #[test]
    fn the_bounds_themselves_pass_and_one_beyond_does_not() {
        check(|_| (), None);
        check(|o| o.data_volume_headroom_bytes.clear(), Some(code::TARGET_CAPACITY_UNAVAILABLE));
        check(|o| o.data_volume_headroom_bytes[0] = 999, Some(code::TARGET_VOLUME_HEADROOM_INSUFFICIENT));
        check(|o| o.log_headroom_bytes = 999, Some(code::TARGET_LOG_HEADROOM_INSUFFICIENT));
        check(|o| o.stage_tables = 4, Some(code::STAGING_TABLE_LIMIT_EXCEEDED));
        check(|o| o.stage_allocated_bytes = 5001, Some("mssql_native.stage_allocation_threshold_exceeded:5001"));
    }

    #[test]
    fn the_spool_needs_room_for_every_retained_chunk() {
        let needed = (4 + 2 + 1) * 100 + (1 << 20) + (1 << 30);
        assert!(admit_spool(&limits(), needed).is_ok());
        assert!(admit_spool(&limits(), needed - 1).is_err());
        assert_eq!(resident_bytes_max(&limits()), 700 + PROCESS_BYTES);
        assert_eq!(source_block_bytes_max(&limits()), SOURCE_BLOCK_BYTES_MIN);
    }

    #[test]
    fn one_table_is_reserved_for_preparation() {
        assert!(check_ordinal(&limits(), 1).is_ok());
        assert!(check_ordinal(&limits(), 2).is_err());
        assert!(check_ordinal(&limits(), u64::MAX).is_err());
        assert!(check_total(&limits(), 1000).is_ok());
        assert!(check_total(&limits(), 1001).is_err());
    }
}
