//! `native-transfer-operator run | crd`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Operator of NativeTransfer resources.
#[derive(Debug, Parser)]
#[command(name = "native-transfer-operator", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Print the CustomResourceDefinitions as YAML, the same bytes as the files of `crds/`.
    Crd,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Crd => match operator::crd::yaml() {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("native-transfer-operator: {error}");
                ExitCode::FAILURE
            }
        },
    }
}
