//! Integration tests of the whole road, one binary.

mod direction;
