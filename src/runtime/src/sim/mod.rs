//! The ports in memory, and what can go wrong between a call and its answer (layer 2 of the reliability practice).
//!
//! ```text
//! faults      which call fails, and how: did it happen, was the caller told, does the process live on
//! store       the journal twin; outlives a process
//! database    the target twin: tables, owner marks, custody, fences, receipts, application locks of sessions
//! target      the target port over the database, every call through the faults
//! source      the source port over a script
//! transfer    what is moved, and what the target must hold before and after
//! process     one process from its start to its end or death; rounds of them; what must always hold
//! ```
//!
//! The tests enumerate: every fault at every call of a small transfer (`exhaustive`), seeded pairs of faults
//! (`compound`), and cases that one fault does not reach (`directed`, `pressure`). The calls are discovered by a run
//! without faults, so a new step is covered the day it is written.

mod compound;
mod database;
mod directed;
mod exhaustive;
mod faults;
mod pressure;
mod process;
mod source;
mod store;
mod target;
mod transfer;
mod world;
