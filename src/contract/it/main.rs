//! Integration tests of the contract: properties of any input, and the golden vectors, one module per file family.
//!
//! `NT_VECTORS` names the folder (default: `tests/vectors` of the workspace). Any folder of the same form passes; an
//! unknown group fails; a group whose work is not due yet is printed as skipped and never counted as passed.

#![allow(
    unreachable_pub,
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of a test binary: they fail by panicking, as tests do, and pub means shared between modules"
)]

mod manifest;
mod properties;
mod robust;
mod vectors;
mod worker;
