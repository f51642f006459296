//! The manifest as the API server keeps it: typed and described, but with every unknown key preserved.
//!
//! A wrong JSON type is refused by the API server; everything else is left to `contract::manifest`, so that a refusal has
//! the code and text of the command line's and an unknown key is named instead of being pruned in silence. The bounds
//! are generous: they exist because the API server estimates the cost of rules from them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One process of a `dpone.batch.v1` manifest, kept as it was stored.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(transparent)]
pub struct Manifest(pub Map<String, Value>);

/// Longest text that the API server takes, characters; what is too long for its meaning is refused by the operator.
const TEXT_CHARS_MAX: u32 = 4096;

/// Most keys of an object with named keys.
const KEYS_MAX: u32 = 64;

/// Most columns with a type of their own. SQL Server has 1,024 columns in an ordinary table.
const COLUMNS_MAX: u32 = 1024;

impl JsonSchema for Manifest {
    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let process = object(
            "One process of a dpone.batch.v1 manifest. Keys that this route does not know are kept and named in the condition Accepted.",
            &[
                ("name", text("Name of the process.")),
                ("description", anything("For people; no effect.")),
                ("source", source()),
                ("sink", sink()),
                ("quality", anything("Quality policies; refused where set, because they belong to another route.")),
            ],
        );
        // An object is a schema.
        Schema::try_from(process).unwrap_or_default()
    }
}

fn source() -> Value {
    let native_transfer = object(
        "The native route.",
        &[
            (
                "source_snapshot",
                object(
                    "How rows are read.",
                    &[
                        ("mode", text("query_visible, or exact_raw_rows: every stored row version, without FINAL.")),
                        ("replica_scope", text("For exact_raw_rows: single_server or connected_replica.")),
                    ],
                ),
            ),
            (
                "wire",
                object(
                    "The form of the rows.",
                    &[("mode", text("typed_binary.")), ("binary_format", text("mssql_native."))],
                ),
            ),
            ("execution", execution()),
        ],
    );
    let options = object(
        "Options of the source.",
        &[
            ("query_seconds", integer("Longest time of the one query, seconds, 1 to 86400; 21600 where absent.")),
            ("native_transfer", native_transfer),
        ],
    );
    object(
        "What is read.",
        &[
            ("type", text("clickhouse.")),
            ("table", table("database", "The table that is read; schema is its database.")),
            ("options", options),
        ],
    )
}

fn execution() -> Value {
    let chunking = object(
        "How the stream is cut.",
        &[
            ("mode", text("bounded_stream.")),
            ("parallelism", integer("Workers of both stages, 1 to 64; 1 where absent.")),
            ("checkpointing", text("resumable.")),
        ],
    );
    let native_chunks = object(
        "Resource limits of the transfer.",
        &[
            ("max_total_encoded_bytes", integer("Native bytes of all rows at most. Required.")),
            (
                "stage_allocated_bytes_stop_threshold",
                integer("Reserved bytes of all staging tables at which the transfer stops. Required."),
            ),
            ("max_rows", integer("Rows of a chunk, 1 to 1000000; 65536 where absent.")),
            ("max_bytes", integer("Native bytes of a chunk, up to 1 GiB; 16 MiB where absent.")),
            ("max_row_bytes", integer("Native bytes of a row, at most max_bytes; 1 MiB where absent.")),
            ("max_pending", integer("Chunks that wait between encoding and import, 1 to 64; 2 where absent.")),
            ("max_staging_tables", integer("Staging tables, the prepared one included; 1024 where absent.")),
            ("encoding_parallelism", integer("Encoders, 1 to 64; parallelism where absent.")),
            ("import_parallelism", integer("Importers, 1 to 64; parallelism where absent.")),
        ],
    );
    object(
        "How the route is run.",
        &[
            ("import_backend", text("mssql_sqlclient, or bcp.")),
            ("verification_backend", text("target_local, or python_readback.")),
            ("layout_version", integer("Layout of stages, 1 or 2; 1 where absent.")),
            ("chunking", chunking),
            ("native_chunks", native_chunks),
        ],
    )
}

fn sink() -> Value {
    let target_type = object(
        "A column of the target.",
        &[(
            "target_type",
            object("Its type.", &[("mssql", text("A SQL Server type as the catalog spells it, such as float(53)."))]),
        )],
    );
    let columns = json!({
        "type": "object",
        "description": "Types of columns that shall not follow from the source's type, by column.",
        "additionalProperties": target_type,
        "maxProperties": COLUMNS_MAX,
    });
    let options = object(
        "Options of the sink.",
        &[
            ("physical_design", object("Shape of the target.", &[("columns", columns)])),
            (
                "lineage",
                object(
                    "Framework columns.",
                    &[("preset", text("off, minimal, standard, bulk_standard or debug; off where absent."))],
                ),
            ),
            ("state_schema", text("Schema of the catalog tables in the target; dpone where absent.")),
            ("staging_schema", text("Schema of the staging tables; state_schema where absent.")),
            (
                "full_refresh",
                object(
                    "How the whole table is replaced.",
                    &[("clear", text("truncate, or delete; truncate where absent."))],
                ),
            ),
        ],
    );
    object(
        "Where the rows go.",
        &[
            ("type", text("mssql.")),
            ("table", table("schema", "The table that is written.")),
            ("options", options),
            ("strategy", strategy()),
        ],
    )
}

fn strategy() -> Value {
    let window = object(
        "The window that is replaced; needs spec.interval.",
        &[
            ("column", text("Time column that the window is cut by.")),
            ("anchor", text("data_interval_end.")),
            ("lookback", text("Length of the window, a fixed ISO 8601 duration such as P1D.")),
            ("chunk_interval", text("A fixed ISO 8601 duration that divides the window.")),
            ("timezone", text("UTC.")),
        ],
    );
    object(
        "What is replaced.",
        &[
            ("mode", text("full_refresh, or partition_replace with a window.")),
            ("atomicity", text("target_atomic, with a window.")),
            ("window", window),
        ],
    )
}

fn table(schema: &str, description: &str) -> Value {
    object(description, &[("schema", text(&format!("The {schema}."))), ("name", text("The table."))])
}

fn object(description: &str, properties: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "maxProperties": KEYS_MAX,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description, "maxLength": TEXT_CHARS_MAX})
}

fn integer(description: &str) -> Value {
    json!({"type": "integer", "description": description})
}

fn anything(description: &str) -> Value {
    json!({"description": description, "x-kubernetes-preserve-unknown-fields": true})
}
