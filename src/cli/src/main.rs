//! The `native-transfer` command.

fn main() {}
