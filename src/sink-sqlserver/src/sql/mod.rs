//! The T-SQL that we send, as pure functions from requests to text.
//!
//! Every statement is valid on SQL Server 2016 SP2 and later. Identifiers go through [`ident::bracket`], texts through
//! [`ident::literal`]; digests and integers are rendered by us, so no statement carries foreign text unescaped.

pub(crate) mod catalog;
pub(crate) mod claim;
pub(crate) mod digest;
pub(crate) mod ident;
pub(crate) mod observe;
pub(crate) mod prepare;
pub(crate) mod publish;
pub(crate) mod stage;

#[cfg(test)]
mod tests;
