//! The raw-row snapshot contract: what is frozen before one SELECT over a replacing engine, what its proven end
//! establishes, and how recovery checks both without the source (spec raw-snapshot-design, contract.md 2).
//!
//! ```text
//! server facts --freeze--> profile --+--> marker (source_query_id)
//! parts, mutations --> physical profile before, after --+
//! rows (_part, _part_offset) --> coverage --------------+--> EOF descriptor --> extension of the completion record
//! ```
//!
//! Nothing here names a host, a user, a statement or a row value in what is stored: documents carry digests only. The
//! preimages that do ([`freeze::Preimages`]) stay in memory.

pub mod bounds;
pub mod coverage;
pub mod engine;
pub mod eof;
pub mod extension;
pub mod facts;
pub mod freeze;
pub mod gate;
pub mod marker;
pub mod offsets;
pub mod partition;
pub mod parts;
pub mod profile;
pub mod query;
pub mod selector;
pub mod settings;

/// Most rows of one catalog read, parts of one inventory and partition ids of one window.
pub const CATALOG_ROWS_MAX: usize = 8192;

/// Most canonical bytes of one catalog read.
pub const CATALOG_BYTES_MAX: usize = 8 * 1024 * 1024;
