//! Resource limits of one transfer and the bounds that follow from them (contract.md 5.5).

use crate::canon::{Json, Object};
use crate::code;
use crate::error::Refusal;

/// Free disk space kept beyond the spool: room for receipts and for the machine.
const SPOOL_RESERVE_BYTES: u64 = (1 << 20) + (1 << 30);

/// Limits as authored, defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Native bytes of all chunks together.
    pub max_total_encoded_bytes: u64,
    /// Reserved bytes of all staging tables at which the transfer stops.
    pub stage_allocated_bytes_stop_threshold: u64,
    /// Rows of a chunk, 1 to 1,000,000.
    pub max_rows: u64,
    /// Native bytes of a chunk, up to 1 GiB.
    pub max_bytes: u64,
    /// Native bytes of a row, at most those of a chunk.
    pub max_row_bytes: u64,
    /// Chunks that may wait between encoding and import, 1 to 64.
    pub max_pending: u64,
    /// Staging tables, one of which is the prepared table.
    pub max_staging_tables: u64,
    /// Workers of both stages unless overridden, 1 to 64.
    pub parallelism: u64,
    /// Encoders, 1 to 64.
    pub encoding_parallelism: Option<u64>,
    /// Importers, 1 to 64.
    pub import_parallelism: Option<u64>,
}

/// Name, default and largest value of every limit, in the order in which they are checked.
const RULES: [(&str, Option<u64>, u64); 10] = [
    ("max_total_encoded_bytes", None, u64::MAX),
    ("stage_allocated_bytes_stop_threshold", None, u64::MAX),
    ("max_rows", Some(65_536), 1_000_000),
    ("max_bytes", Some(16 << 20), 1 << 30),
    ("max_row_bytes", Some(1 << 20), u64::MAX),
    ("max_pending", Some(2), 64),
    ("max_staging_tables", Some(1024), u64::MAX),
    ("parallelism", Some(1), 64),
    ("encoding_parallelism", None, 64),
    ("import_parallelism", None, 64),
];

/// The two limits without a default.
const REQUIRED: [&str; 2] = ["max_total_encoded_bytes", "stage_allocated_bytes_stop_threshold"];

/// The two limits that may be left out but not be null.
const OPTIONAL: [&str; 2] = ["encoding_parallelism", "import_parallelism"];

impl Limits {
    /// Reads `execution.native_chunks` and `execution.chunking.parallelism`.
    ///
    /// # Errors
    /// `mssql_native.native_chunks_invalid` (not an object, or another key), `mssql_native.capacity_limits_required`,
    /// `mssql_native.invalid_limit:NAME`, `mssql_native.max_row_bytes_exceeds_chunk`.
    pub fn parse(native_chunks: Option<&Json>, parallelism: Option<&Json>) -> Result<Limits, Refusal> {
        let known = |key: &str| key != "parallelism" && RULES.iter().any(|(name, ..)| *name == key);
        let closed = native_chunks.and_then(Json::as_object).filter(|chunks| chunks.keys().all(|key| known(key)));
        let chunks = closed.ok_or_else(|| {
            Refusal::new(
                code::NATIVE_CHUNKS_INVALID,
                "execution.native_chunks must be an object of the documented limits and nothing else",
            )
        })?;
        if !REQUIRED.iter().all(|name| chunks.contains_key(*name)) {
            return Err(Refusal::new(
                code::CAPACITY_LIMITS_REQUIRED,
                "set native_chunks.max_total_encoded_bytes and native_chunks.stage_allocated_bytes_stop_threshold",
            ));
        }
        if let Some(name) = OPTIONAL.iter().find(|name| chunks.get(**name).is_some_and(Json::is_null)) {
            return Err(invalid(name));
        }
        let mut values = [None; RULES.len()];
        for (value, (name, default, max)) in values.iter_mut().zip(RULES) {
            let authored = if name == "parallelism" { parallelism } else { chunks.get(name) };
            *value = match authored {
                None => default,
                Some(authored) => {
                    Some(authored.as_u64().filter(|v| (1..=max).contains(v)).ok_or_else(|| invalid(name))?)
                }
            };
        }
        let at = |index: usize| values[index].unwrap_or_default();
        let limits = Limits {
            max_total_encoded_bytes: at(0),
            stage_allocated_bytes_stop_threshold: at(1),
            max_rows: at(2),
            max_bytes: at(3),
            max_row_bytes: at(4),
            max_pending: at(5),
            max_staging_tables: at(6),
            parallelism: at(7),
            encoding_parallelism: values[8],
            import_parallelism: values[9],
        };
        if limits.max_row_bytes > limits.max_bytes {
            return Err(Refusal::new(
                code::MAX_ROW_BYTES_EXCEEDS_CHUNK,
                "native_chunks.max_row_bytes must not exceed native_chunks.max_bytes",
            ));
        }
        Ok(limits)
    }

    /// Encoders: E.
    pub fn encoders(&self) -> u64 {
        self.encoding_parallelism.unwrap_or(self.parallelism)
    }

    /// Importers: I. It bounds import and verification tasks, not every target session.
    pub fn importers(&self) -> u64 {
        self.import_parallelism.unwrap_or(self.parallelism)
    }

    /// Chunks that may exist at once between frame and verified stage: C = max(E, I) + max_pending.
    pub fn retained_work_capacity(&self) -> u64 {
        self.encoders().max(self.importers()) + self.max_pending
    }

    /// Native bytes on the local disk at once, at most: (C + 1) * max_bytes.
    pub fn spool_payload_bound(&self) -> u64 {
        (self.retained_work_capacity() + 1) * self.max_bytes
    }

    /// Free local disk space demanded before anything starts: the bound, 1 MiB and 1 GiB.
    pub fn required_free_spool_bytes(&self) -> u64 {
        self.spool_payload_bound() + SPOOL_RESERVE_BYTES
    }

    /// The durable record: eight keys, and the two resolved counts only where they differ from `parallelism`.
    pub fn document(&self) -> Json {
        let mut record: Object = [
            ("max_total_encoded_bytes", self.max_total_encoded_bytes),
            ("stage_allocated_bytes_stop_threshold", self.stage_allocated_bytes_stop_threshold),
            ("max_rows", self.max_rows),
            ("max_bytes", self.max_bytes),
            ("max_row_bytes", self.max_row_bytes),
            ("max_pending", self.max_pending),
            ("max_staging_tables", self.max_staging_tables),
            ("parallelism", self.parallelism),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Json::from(value)))
        .collect();
        if self.stages_differ() {
            record.insert("encoding_parallelism".to_owned(), Json::from(self.encoders()));
            record.insert("import_parallelism".to_owned(), Json::from(self.importers()));
        }
        Json::Object(record)
    }

    /// Whether the two stages have other worker counts than `parallelism`.
    pub fn stages_differ(&self) -> bool {
        (self.encoders(), self.importers()) != (self.parallelism, self.parallelism)
    }
}

fn invalid(name: &str) -> Refusal {
    Refusal::with_detail(
        code::INVALID_LIMIT,
        name,
        "a limit is a whole number within its documented range, not a text, a fraction or a truth value",
    )
}
