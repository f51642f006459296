//! The product's reading half against an independent opinion.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod oracle;
