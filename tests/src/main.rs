//! The `testkit` command.

fn main() {}
