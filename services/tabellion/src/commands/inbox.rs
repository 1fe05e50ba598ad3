//! `tabellion inbox`: lists and refuses accepted statements that are not in the log yet, via the service's admin
//! listener.

use std::io::{self, Write};

use clap::Subcommand;
use client::Verb;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::entry::Admin;
use super::receipt::entry_named;
use crate::cli::Context;
use crate::console::{Failure, Report, safe};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion inbox list")]
pub enum Inbox {
    /// Accepted statements that are not in the log yet, oldest first
    #[command(before_help = "example:  tabellion inbox list --json")]
    List {
        #[command(flatten)]
        admin: Admin,
    },
    /// Refuse an accepted statement for good; its submitter is told the reason
    #[command(before_help = "example:  tabellion inbox refuse report.json.cose --reason superseded")]
    Refuse {
        /// An entry ID, or a file that holds the statement
        entry: String,
        /// Why, in words
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        admin: Admin,
    },
}

impl Inbox {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List { admin } => list(admin, context),
            Self::Refuse { entry, reason, admin } => refuse(&entry, &reason, admin, context),
        }
    }
}

fn list(admin: Admin, context: &Context) -> Result<(), Failure> {
    let service = admin.connect(context)?;
    let mut inbox = Items { leads: false, items: Vec::new() };
    let mut path = "inbox".to_owned();
    loop {
        let mut page: Json = service.block_on(service.client.json(&path))?;
        inbox.leads = page.get("leads").and_then(Json::as_bool).unwrap_or_default();
        let Some(Json::Array(items)) = page.get_mut("items").map(Json::take) else { break };
        let Some(last) = items.last().and_then(|item| item.get("number")).and_then(Json::as_u64) else {
            break;
        };
        path = format!("inbox?after={last}");
        inbox.items.extend(items);
    }
    if !inbox.leads {
        context.console.note("this process does not lead: it does not know which of them are delayed");
    }
    context.console.result(&inbox)
}

fn refuse(entry: &str, reason: &str, admin: Admin, context: &Context) -> Result<(), Failure> {
    let asked = json!({ "entry_id": entry_named(entry)?.to_string(), "reason": reason });
    let service = admin.connect(context)?;
    let refused = service.block_on(service.client.send_json(Verb::Post, "inbox/refuse", &asked))?;
    context.console.result(&Refused(refused))
}

#[derive(Serialize)]
struct Items {
    leads: bool,
    items: Vec<Json>,
}

impl Report for Items {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.items.iter().try_for_each(|item| {
            let text = |name: &str| safe(item.get(name).and_then(Json::as_str).unwrap_or("-")).into_owned();
            let number = |name: &str| item.get(name).and_then(Json::as_u64);
            let (id, issuer, bytes) = (text("entry_id"), text("issuer"), number("bytes").unwrap_or_default());
            let age = number("age_seconds").map_or_else(|| "-".to_owned(), |age| format!("{age} s"));
            let state = match (number("attempts"), number("next_attempt_seconds")) {
                (Some(attempts), Some(next)) => {
                    format!("{}: {attempts} attempts, next in {next} s: {}", text("state"), text("because"))
                }
                _ => text("state"),
            };
            writeln!(out, "{id}  {bytes:>9} B  {age:>9}  {issuer}  {state}")
        })
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Refused(Json);

impl Report for Refused {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let text = |name: &str| safe(self.0.get(name).and_then(Json::as_str).unwrap_or("-")).into_owned();
        writeln!(out, "refused    {}\noutcome    {}", text("entry_id"), text("outcome"))
    }
}
