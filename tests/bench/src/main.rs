//! How fast a log registers, beside what the machine could do at most.
//!
//! Rates of a shared machine say little by themselves. So each round measures, one after the other, raw
//! inserts of the same bytes, an HTTP server that does nothing, and the real `tabellion` with everything
//! on: signatures checked, each answer durable and with its receipt. What counts are the ratios, and the
//! CPU time of a registration, which neighbours hardly move.
//!
//! Not here: whether the answers are right (`tests`), growth over millions of entries, faults.

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
            // One thread: the client shares the machine with what it measures.
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
