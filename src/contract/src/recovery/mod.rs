//! Recovery: the plan saved before row I/O and the operator's view of a journal (contract.md 9).

pub mod classify;
pub mod document;
pub mod plan;
