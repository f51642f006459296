//! Execution over ports: driver, pipeline, settlement.
