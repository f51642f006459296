//! Words and decisions of native-transfer: plan, types, canonical bytes, digests, state machines, error codes and ports.
//!
//! Nothing here opens a file, a socket or a clock, draws a random number or knows an async runtime. Every decision is a
//! function from facts to a verdict, so the live run, the replay of a journal and the tests all go through the same code.
//!
//! Reading order: [`error`] (stable codes and fate), [`block`] (columns as they come from the source), then the modules
//! named after the documents they hold.

pub mod attempt;
pub mod block;
pub mod canon;
pub mod capacity;
pub mod civil;
pub mod code;
pub mod code_ports;
pub mod completion;
pub mod custody;
pub mod digest;
pub mod encode;
pub mod error;
pub mod evidence;
pub mod identity;
pub mod layout;
pub mod limits;
pub mod lineage;
pub mod manifest;
pub mod mapping;
pub mod names;
pub mod plan_document;
pub mod port;
pub mod qualification;
pub mod raw;
pub mod recovery;
pub mod source_evidence;
pub mod source_type;
pub mod sql_type;
pub mod target_digest;
pub mod target_layout;
pub mod transaction;
pub mod transfer;
pub mod window;
pub mod worker;
