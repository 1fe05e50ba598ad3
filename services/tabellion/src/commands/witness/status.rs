//! `tabellion witness status`: prints the progress of a log's witnesses, as the log reports it.
//!
//! The log's report is not verified. `tabellion monitor` asks the witnesses themselves.

use std::io::{self, Write};

use clap::Args;
use display::counted;
use serde::{Deserialize, Serialize};

use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::service::ServiceArgs;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion witness status --url http://127.0.0.1:7390")]
pub struct Status {
    #[command(flatten)]
    service: ServiceArgs,
}

impl Status {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let service = self.service.connect(context)?;
        let shown: WitnessListing = service.block_on(service.client.json("v1/witnesses"))?;
        context.console.result(&shown)?;
        // The result contains the reasons.
        if shown.quorum_met { Ok(()) } else { Err(Failure::already_printed(Exit::Stale)) }
    }
}

/// The answer of `GET /v1/witnesses`.
#[derive(Debug, Serialize, Deserialize)]
struct WitnessListing {
    quorum: Option<String>,
    quorum_met: bool,
    newest_size: u64,
    served_size: Option<u64>,
    interval_seconds: u64,
    witnesses: Vec<WitnessStatus>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WitnessStatus {
    name: String,
    key: String,
    url: Option<String>,
    cosigned_size: Option<u64>,
    cosigned_at: Option<String>,
    behind: u64,
    fresh: bool,
    trouble: Option<WitnessTrouble>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WitnessTrouble {
    code: String,
    times: u32,
    at: Option<String>,
}

impl Report for WitnessListing {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = self.witnesses.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
        for one in &self.witnesses {
            let mark = if one.fresh { "ok" } else { "--" };
            writeln!(out, "{mark}  {:width$}  {}", safe(&one.name), safe(&one.words()))?;
        }
        let served = self.served_size.map_or_else(|| "nothing".to_owned(), |size| format!("size {size}"));
        writeln!(out, "served   {served} of {} signed", self.newest_size)?;
        match (&self.quorum, self.quorum_met) {
            (None, _) => writeln!(out, "quorum   none is asked for"),
            (Some(quorum), true) => writeln!(out, "quorum   {} is met", safe(quorum)),
            (Some(quorum), false) => writeln!(out, "quorum   {} is not met", safe(quorum)),
        }
    }
}

impl WitnessStatus {
    fn words(&self) -> String {
        let seen = match (self.cosigned_size, &self.cosigned_at) {
            (Some(size), Some(at)) => format!("size {size} at {at}, {} behind", self.behind),
            _ => "has cosigned nothing".to_owned(),
        };
        match &self.trouble {
            Some(trouble) => format!("{seen}; {} {}", trouble.code, counted(trouble.times, "time", "times")),
            None => seen,
        }
    }
}
