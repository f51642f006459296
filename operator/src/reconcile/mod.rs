//! One step of one resource: dereference, validate, decide, build, apply, status.

pub mod build;
pub mod decide;
pub mod quantity;
pub mod validate;
