//! Integration tests of the whole road, one binary.

mod direction;
mod error_pages;
