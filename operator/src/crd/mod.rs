//! The custom resource: spec, status, conditions, and the definition that the API server gets.

pub mod condition;
pub mod manifest;
pub mod spec;
pub mod status;

pub use spec::{NativeTransfer, NativeTransferSpec};
pub use status::NativeTransferStatus;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The definition of `NativeTransfer`.
pub fn native_transfer() -> CustomResourceDefinition {
    NativeTransfer::crd()
}

/// Every definition as YAML, the bytes of `crds/`.
///
/// # Errors
/// When a definition cannot be written as YAML, which is a bug.
pub fn yaml() -> Result<String, serde_norway::Error> {
    serde_norway::to_string(&native_transfer())
}
