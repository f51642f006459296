//! The `native-transfer` command: composition root, no logic of its own.

#![recursion_limit = "256"]

mod arguments;
mod bench;
mod connections;
mod endpoint;
mod logging;
mod manifest;
mod output;
mod progress;
mod receipt_file;
mod run;
mod world;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, CatalogCommand, Command};
use contract::worker::Phase;

fn main() -> ExitCode {
    logging::start();
    // Why exit 2 by clap itself: usage errors are the only ones with that code (design.md 4).
    let arguments = Arguments::parse();
    let code = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Admit(arguments) => run::phase(&arguments, Phase::Admit),
        Command::Extract(arguments) => run::phase(&arguments, Phase::Extract),
        Command::Publish(arguments) => run::phase(&arguments, Phase::Publish),
        Command::Plan(arguments) => manifest::plan(&arguments),
        Command::Inspect(arguments) => run::inspect(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::TargetCatalog(CatalogCommand::Print(arguments)) => {
            let staging = arguments.staging_schema.as_deref().unwrap_or(&arguments.state_schema);
            output::print(&sink_sqlserver::catalog_script(&arguments.state_schema, staging, &arguments.loader))
        }
    };
    ExitCode::from(code)
}
