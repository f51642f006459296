//! One step of one resource: dereference, validate, decide, build, apply, status.

pub mod build;
pub mod decide;
pub mod life;
pub mod quantity;
pub mod status;
pub mod validate;
