//! One step of one resource: dereference, validate, decide, build, apply, status.

pub mod apply;
pub mod build;
pub mod decide;
pub mod dereference;
pub mod life;
pub mod progress;
pub mod quantity;
pub mod reconciler;
pub mod status;
pub mod validate;
