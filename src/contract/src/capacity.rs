//! Whether there is room: decisions over observed space (contract.md 5.5). Observations are not reservations.

use crate::error::Refusal;
use crate::limits::Limits;
use crate::port::target::CapacityObservation;

/// Decides over the target's space before extraction, preparation and publication.
///
/// # Errors
/// `mssql_native.stage_allocation_threshold_exceeded`, `mssql_native.staging_table_limit_exceeded`,
/// `mssql_native.target_volume_headroom_insufficient`, `mssql_native.target_log_headroom_insufficient`, and
/// `mssql_native.target_capacity_unavailable` when no volume was observed.
pub fn admit_target(limits: &Limits, seen: &CapacityObservation) -> Result<(), Refusal> {
    if seen.stage_allocated_bytes > limits.stage_allocated_bytes_stop_threshold {
        return Err(Refusal::new(
            "mssql_native.stage_allocation_threshold_exceeded",
            "stages of the database take more space than stage_allocated_bytes_stop_threshold: raise it or settle other runs",
        ));
    }
    if seen.stage_tables > limits.max_staging_tables {
        return Err(Refusal::new(
            "mssql_native.staging_table_limit_exceeded",
            "the database holds more stages than max_staging_tables: settle the runs that left them, or raise it",
        ));
    }
    if seen.data_volume_headroom_bytes.is_empty() {
        return Err(Refusal::new(
            "mssql_native.target_capacity_unavailable",
            "no data volume of the target can be observed: grant VIEW SERVER STATE to the loader",
        ));
    }
    if seen.data_volume_headroom_bytes.iter().any(|bytes| *bytes < limits.max_total_encoded_bytes) {
        return Err(Refusal::new(
            "mssql_native.target_volume_headroom_insufficient",
            "a data volume of the target has less room than max_total_encoded_bytes: free or add space, or lower the limit",
        ));
    }
    if seen.log_headroom_bytes < limits.max_total_encoded_bytes {
        return Err(Refusal::new(
            "mssql_native.target_log_headroom_insufficient",
            "the transaction log of the target has less room than max_total_encoded_bytes: back it up, free or add space",
        ));
    }
    Ok(())
}

/// Decides over the local spool's space before extraction.
///
/// # Errors
/// `mssql_native.spool_capacity_insufficient`.
pub fn admit_spool(limits: &Limits, free_bytes: u64) -> Result<(), Refusal> {
    if free_bytes >= limits.required_free_spool_bytes() {
        return Ok(());
    }
    Err(Refusal::new(
        "mssql_native.spool_capacity_insufficient",
        "the journal volume has less free space than the chunk files can take plus 1 GiB: free space or lower the limits",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Json;

    fn limits() -> Limits {
        let chunks = Json::object([
            ("max_total_encoded_bytes", Json::from(100)),
            ("stage_allocated_bytes_stop_threshold", Json::from(1000)),
            ("max_staging_tables", Json::from(3)),
        ]);
        Limits::parse(Some(&chunks), None).unwrap()
    }

    fn seen() -> CapacityObservation {
        CapacityObservation {
            stage_allocated_bytes: 1000,
            stage_tables: 3,
            data_volume_headroom_bytes: vec![100, 500],
            log_headroom_bytes: 100,
        }
    }

    #[test]
    fn every_bound_refuses_with_its_code_and_admits_at_its_edge() {
        type Change = fn(&mut CapacityObservation);
        let cases: [(Change, Option<&str>); 6] = [
            (|_| {}, None),
            (|c| c.stage_allocated_bytes += 1, Some("mssql_native.stage_allocation_threshold_exceeded")),
            (|c| c.stage_tables += 1, Some("mssql_native.staging_table_limit_exceeded")),
            (|c| c.data_volume_headroom_bytes[0] -= 1, Some("mssql_native.target_volume_headroom_insufficient")),
            (|c| c.data_volume_headroom_bytes.clear(), Some("mssql_native.target_capacity_unavailable")),
            (|c| c.log_headroom_bytes -= 1, Some("mssql_native.target_log_headroom_insufficient")),
        ];
        for (change, code) in cases {
            let mut observation = seen();
            change(&mut observation);
            let verdict = admit_target(&limits(), &observation).err().map(|r| r.code.as_str().to_string());
            assert_eq!(verdict.as_deref(), code);
        }
        let needed = limits().required_free_spool_bytes();
        assert!(admit_spool(&limits(), needed).is_ok());
        assert!(admit_spool(&limits(), needed - 1).is_err());
    }
}
