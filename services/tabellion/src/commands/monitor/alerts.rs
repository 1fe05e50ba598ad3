//! `tabellion monitor alerts`: lists active alarms, and with `--all` past ones.

use std::io::{self, Write};

use clap::Args;
use monitor::keeper::Standing;
use serde::Serialize;

use super::show;
use super::watched::Kept;
use crate::cli::Context;
use crate::console::{Failure, Report};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion monitor alerts --config monitor.toml")]
pub struct Alerts {
    /// Also those that are over
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    kept: Kept,
}

impl Alerts {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let folder = self.kept.folder(context)?;
        let alarms = monitor::Alarms::read(&folder).map_err(|why| show::unreadable(&why))?;
        let over = if self.all { alarms.over().to_vec() } else { Vec::new() };
        context.console.result(&Listed {
            state_dir: folder.display().to_string(),
            alarms: over.into_iter().chain(alarms.standing().iter().cloned()).collect(),
        })?;
        match alarms.exit() {
            monitor::Exit::Success => Ok(()),
            ending => Err(Failure::told(show::exit(ending))),
        }
    }
}

#[derive(Serialize)]
struct Listed {
    state_dir: String,
    alarms: Vec<Standing>,
}

impl Report for Listed {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.alarms.is_empty() {
            return writeln!(out, "no alarm stands");
        }
        self.alarms.iter().try_for_each(|standing| show::standing(out, standing))
    }
}
