//! What is asked of the source, what admission found, and what the end of the stream proved: the words of the port.

pub use contract::port::source::{
    FrozenWindow, GuardSettings, RawProfileDocument, ReplicaScope, SourceAdmission, SourceColumn, SourceEof,
    SourceMode, SourceRequest,
};
