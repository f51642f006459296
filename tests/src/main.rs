//! The `testkit` command: test servers for tests and for people.

mod clickhouse;
mod sqlserver;
mod stdin;
mod zookeeper;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use testkit::cluster;
use testkit::image;

/// Test servers and tools of native-transfer. Nothing here ships.
#[derive(Debug, Parser)]
#[command(name = "testkit", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A ClickHouse server, native protocol and HTTP, in front of the real engine.
    Clickhouse(clickhouse::Arguments),
    /// A TDS 7.4 server with T-SQL, transactions, locks and bulk load, to be spoken to by any client of SQL Server.
    Sqlserver(sqlserver::Arguments),
    /// A ZooKeeper for replicated tables of `testkit clickhouse`.
    Zookeeper(zookeeper::Arguments),
    /// A single-node Kubernetes with kubelet, containerd, services, DNS and volumes.
    Cluster(cluster::Arguments),
    /// The product's image, built without Docker.
    Image(image::command::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Clickhouse(arguments) => clickhouse::run(arguments),
        Command::Sqlserver(arguments) => sqlserver::run(arguments),
        Command::Zookeeper(arguments) => zookeeper::run(&arguments),
        Command::Cluster(arguments) => cluster::run(arguments),
        Command::Image(arguments) => image::command::run(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testkit: {error}");
            ExitCode::FAILURE
        }
    }
}
