//! Registration throughput of a log, compared with limits of the machine.
//!
//! Absolute rates on a shared machine mean little. Each round therefore measures, one after the other, raw inserts of
//! the same bytes, an HTTP server without work to do, and the real `tabellion` with all checks on: signatures are
//! verified, and each response is durable and contains its receipt. The results are ratios, and the CPU time per
//! registration, which other load on the machine hardly changes.
//!
//! Not here: correctness of the responses (`tests`), growth over millions of entries, faults.

mod cli;
mod cpu;
mod database;
mod echo;
mod http;
mod load;
mod postgres;
mod raw;
mod report;
mod rounds;
mod service;
mod statements;
mod stats;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match &cli.command {
        Some(Command::Echo { port }) => runtime(2)?.block_on(echo::serve(*port)),
        None => {
            // One thread, as the client shares the machine with the measured processes.
            let results = runtime(1)?.block_on(rounds::run(&cli))?;
            match cli.json {
                true => println!("{}", serde_json::to_string_pretty(&report::json(&results))?),
                false => print!("{}", report::text(&results)),
            }
            Ok(())
        }
    }
}

fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}
