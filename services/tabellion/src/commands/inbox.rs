//! `tabellion inbox`: lists and refuses accepted statements that are not in the log yet, via the service's admin
//! listener.

use clap::Subcommand;
use client::Verb;
use display::counted;
use serde_json::{Value as Json, json};

use super::entry::Admin;
use super::receipt::entry_named;
use crate::console::{Cell, Column, Failure, Table, members};
use crate::context::Context;
use crate::show::text;

/// The columns of the list.
const COLUMNS: &[Column] = &[
    Column::text("entry", 0),
    Column::number("size", 11),
    Column::number("age", 9),
    Column::text("issuer", 0),
    Column::text("state", 0),
];

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion inbox list")]
pub enum Inbox {
    /// Accepted statements that are not in the log yet, oldest first
    #[command(before_help = "example:  tabellion inbox list --json")]
    List {
        #[command(flatten)]
        admin: Admin,
    },
    /// Refuse an accepted statement permanently; its submitter receives the reason
    #[command(before_help = "example:  tabellion inbox refuse report.json.cose --reason superseded")]
    Refuse {
        /// An entry ID, or a file that holds the statement
        entry: String,
        /// The reason as text
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
    let mut all = Vec::new();
    let mut path = "inbox".to_owned();
    let leads = loop {
        let mut page: Json = service.block_on(service.client.json(&path))?;
        let leads = page.get("leads").and_then(Json::as_bool).unwrap_or_default();
        let Some(Json::Array(items)) = page.get_mut("items").map(Json::take) else { break leads };
        let Some(last) = items.last().and_then(|item| item.get("number")).and_then(Json::as_u64) else {
            break leads;
        };
        path = format!("inbox?after={last}");
        all.extend(items);
    };
    if !leads {
        context.console.note("this process does not lead: it does not know which of them are delayed");
    }
    let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
    let table = Table::of(&context.console, COLUMNS);
    context.console.print(&members! { leads, items: &all }, |out| table.write(out, &rows))
}

fn row(item: &Json) -> Vec<Cell> {
    let number = |name: &str| item.get(name).and_then(Json::as_u64);
    let bytes = number("bytes").unwrap_or_default();
    let age = number("age_seconds").map_or_else(|| "-".to_owned(), |age| format!("{age} s"));
    let mut state = text(item, "state");
    if let (Some(attempts), Some(next)) = (number("attempts"), number("next_attempt_seconds")) {
        let attempts = counted(attempts, "attempt", "attempts");
        state = format!("{state}: {attempts}, next in {next} s: {}", text(item, "because"));
    }
    vec![
        Cell::id(&text(item, "entry_id")),
        Cell::text(&format!("{bytes} B")),
        Cell::text(&age),
        Cell::text(&text(item, "issuer")),
        Cell::text(&state),
    ]
}

fn refuse(entry: &str, reason: &str, admin: Admin, context: &Context) -> Result<(), Failure> {
    let asked = json!({ "entry_id": entry_named(entry)?.to_string(), "reason": reason });
    let service = admin.connect(context)?;
    let refused = service.block_on(service.client.send_json(Verb::Post, "inbox/refuse", &asked))?;
    context.console.print(&refused, |out| {
        writeln!(out, "refused    {}\noutcome    {}", text(&refused, "entry_id"), text(&refused, "outcome"))
    })
}
