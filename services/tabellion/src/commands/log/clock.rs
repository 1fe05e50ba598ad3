//! `log clock`: corrects the time of a log whose newest head has a time in the future, because a clock was ahead.
//!
//! The operator states the true time. It is compared with this host's clock here, and with the clocks of the service,
//! the database and the witnesses by the service. The signed statement becomes an entry, whose batch may have an
//! earlier time than the one before it.

use std::path::PathBuf;

use clap::Args;
use client::Verb;
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use merkle::TreeSize;
use registration::clock_correction::{self, ClockCorrection};
use serde_json::json;
use transparency::{LogTime, StatementPosition};

use crate::commands::entry::Admin;
use crate::commands::operator;
use crate::commands::verify::now;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::keyfile;
use crate::service::nonsense;
use crate::show::time;

/// Maximum difference in seconds between the stated time and this host's clock.
const TYPING: u64 = 300;

#[derive(Debug, Args)]
pub struct Clock {
    /// The true time by a clock that you trust, such as 2026-11-22T21:55:00Z
    #[arg(long, value_name = "TIME")]
    true_time: Timestamp,
    /// The reason as text, permanently on the log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// A key of the log's operator
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    admin: Admin,
}

impl Clock {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let here = now();
        check_true_time(self.true_time, here)?;
        let key = keyfile::read(&self.key)?;
        // The service waits up to 30 seconds until it leads.
        let service = self.admin.connect(context)?;
        let log: LogTime = service.block_on(service.client.json("clock"))?;
        if log.committed_at <= here {
            return Err(Failure::new(Exit::Usage, "not-ahead", "the log's time is not ahead")
                .fact("newest head", time(log.committed_at))
                .fact("this host", time(here)));
        }
        let policy = operator::policy_in(&log.policy)?;
        let contents = policy.contents();
        let correction = ClockCorrection {
            size: TreeSize::new(log.size),
            committed_at: log.committed_at,
            time: here,
            reason: self.reason,
        };
        let of_log = (contents.iss.as_str(), contents.origin.as_str());
        let signed = clock_correction::sign(&correction, of_log, &contents.operators, &key);
        let statement = signed.map_err(operator::not_signed)?;
        let asked = json!({ "statement": BASE64URL_NOPAD.encode(statement.bytes()) });
        let answer = service.block_on(service.client.send_json(Verb::Post, "clock", &asked))?;
        let StatementPosition { entry_id, index } = serde_json::from_value(answer).map_err(nonsense)?;
        let (origin, size, was, time) = (log.origin, log.size, time(log.committed_at), time(here));
        context.console.print(&members! { origin, size, was, time, entry_id, index }, |out| {
            writeln!(out, "log        {}", safe(&origin))?;
            writeln!(out, "was ahead  {was} at size {size}\ntrue time  {time}")?;
            writeln!(out, "statement  {} at index {index}", safe(&entry_id))
        })
    }
}

/// Compares the stated time with this host's clock, which may be the wrong one; they may differ by [`TYPING`].
fn check_true_time(stated: Timestamp, here: u64) -> Result<(), Failure> {
    let differs = i64::try_from(here).unwrap_or(i64::MAX).abs_diff(stated.as_second());
    if differs <= TYPING {
        return Ok(());
    }
    Err(Failure::new(Exit::Usage, "clock-differs", "the clock of this host differs from the time given")
        .fact("true time", stated.to_string())
        .fact("this host", time(here))
        .why("set the clocks right first, then state the time again"))
}
