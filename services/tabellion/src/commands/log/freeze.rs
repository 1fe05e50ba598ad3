//! `log freeze`: the end of a log, for ever. Asked of the process that has the database, or done in the database itself.

use std::io::{self, Write};

use clap::Args;
use client::Verb;
use serde::Serialize;
use serde_json::json;
use store::{LogStore, StoreError};
use tokio::time::{Duration, Instant, sleep};
use transparency::{Config, Frozen, storage};

use crate::cli::Context;
use crate::commands::entry::Admin;
use crate::commands::serve::config;
use crate::commands::serve::failures::database;
use crate::console::{Exit, Failure, Report, safe};
use crate::settings::KeeperFlags;

/// How long a service that runs elsewhere is given to sign the last head.
const SIGNING: Duration = Duration::from_secs(10);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct Freeze {
    /// That it is meant: nothing ever takes this back
    #[arg(long)]
    for_ever: bool,
    #[command(flatten)]
    admin: Admin,
    #[command(flatten)]
    flags: KeeperFlags,
}

impl Freeze {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        if !self.for_ever {
            return Err(Failure::new(Exit::Usage, "usage", "a frozen log never takes another entry")
                .why("reads, proofs and `tabellion log export` go on; say --for-ever if that is meant"));
        }
        let config = config::resolve(&context.log_settings(self.flags.typed())?)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let frozen = match runtime.block_on(in_the_database(&config)) {
            Ok(frozen) => frozen,
            // A running service has the SQLite file: it ends the log itself.
            Err(StoreError::InUse(_)) => by_the_service(self.admin, context, &config)?,
            Err(error) => return Err(database(error)),
        };
        context.console.result(&Told(frozen))
    }
}

/// Of the service at the admin URL, which says whether it is this log that it has.
fn by_the_service(admin: Admin, context: &Context, config: &Config) -> Result<Frozen, Failure> {
    let service = admin.connect(context)?;
    let asked = json!({ "origin": config.origin });
    let told = service.block_on(service.client.tell(Verb::Post, "freeze", &asked))?;
    let frozen: Frozen = serde_json::from_value(told).map_err(|error| nonsense(&error))?;
    match frozen.origin == config.origin {
        true => Ok(frozen),
        false => Err(Failure::new(Exit::Failure, "another-log", "the service speaks of another log")
            .fact("configured", &config.origin)
            .fact("answered", frozen.origin)),
    }
}

async fn in_the_database(config: &Config) -> Result<Frozen, StoreError> {
    let store = storage::open_existing(&config.database, &config.origin).await?;
    let holder = format!("log freeze: process {}", std::process::id());
    let frozen = Frozen::freeze(&*store, &config.origin, &holder).await?;
    signed(&*store, config, frozen).await
}

/// Another process may lead, and signs what it had committed.
async fn signed(store: &dyn LogStore, config: &Config, mut frozen: Frozen) -> Result<Frozen, StoreError> {
    let somebody_leads = store.lease(&config.origin).await?.is_none();
    let deadline = Instant::now() + SIGNING;
    while somebody_leads && frozen.signed < frozen.size && Instant::now() < deadline {
        sleep(LOOK).await;
        frozen = Frozen::of(store, &config.origin).await?;
    }
    Ok(frozen)
}

fn nonsense(error: &serde_json::Error) -> Failure {
    Failure::new(Exit::Failure, "nonsense", "the service's answer cannot be read")
        .fact("because", error.to_string())
}

#[derive(Serialize)]
#[serde(transparent)]
struct Told(Frozen);

impl Report for Told {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let Frozen { origin, size, root, epoch, signed, waiting, .. } = &self.0;
        writeln!(out, "frozen  {}\nsize    {size}\nroot    {root}\nepoch   {epoch}", safe(origin))?;
        if signed < size {
            writeln!(out, "signed  {signed}: start the service once, and it signs the last head")?;
        }
        if *waiting > 0 {
            writeln!(
                out,
                "waiting {waiting} accepted statements got no place; `tabellion log export` takes them along"
            )?;
        }
        writeln!(out, "next    tabellion log export, or leave it: reads and proofs go on")
    }
}
