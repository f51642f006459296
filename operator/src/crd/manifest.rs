//! The manifest as the API server keeps it: typed and described, but with every unknown key preserved.
//!
//! A wrong JSON type is refused by the API server; everything else is left to `contract::manifest`, so that a refusal has
//! the code and text of the command line's and an unknown key is named instead of being pruned in silence.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One process of a `dpone.batch.v1` manifest, kept as it was stored.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(transparent)]
pub struct Manifest(pub Map<String, Value>);

impl JsonSchema for Manifest {
    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}
