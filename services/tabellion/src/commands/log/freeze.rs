//! `log freeze`: ends a log.
//!
//! It ends for ever with a statement of its operator, which is the last entry; or it ends in one database because it
//! moves to another (`--to-move`), through the process that uses the database or in the database itself.

use clap::Args;
use client::Verb;
use data_encoding::BASE64URL_NOPAD;
use display::counted;
use registration::OPERATOR_ACTION_CONTENT_TYPE;
use registration::operator::Action;
use serde_json::json;
use store::{SequencerStore, StoreError};
use tokio::time::{Duration, Instant, sleep};
use transparency::{Config, Frozen, LogPolicy, storage};

use crate::commands::entry::Admin;
use crate::commands::operator::{self, Signer, Signing};
use crate::commands::serve::config;
use crate::commands::serve::failures::database;
use crate::console::{Exit, Failure, safe};
use crate::context::Context;
use crate::runtime;
use crate::service::nonsense;
use crate::settings::KeeperFlags;

/// Maximum time for a service elsewhere to sign the last head.
const SIGNING: Duration = Duration::from_secs(10);
/// Interval of the checks during [`SIGNING`].
const POLL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub struct Freeze {
    /// Confirm that the log ends; this cannot be undone
    #[arg(long, requires = "reason", conflicts_with = "to_move")]
    for_ever: bool,
    /// The reason as text, in the last entry
    #[arg(long, value_name = "TEXT", requires = "for_ever")]
    reason: Option<String>,
    /// End the log in this database only, to import its export elsewhere
    #[arg(long, conflicts_with_all = ["key", "write"])]
    to_move: bool,
    #[command(flatten)]
    signing: Signing,
    #[command(flatten)]
    admin: Admin,
    #[command(flatten)]
    flags: KeeperFlags,
}

impl Freeze {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        if self.for_ever {
            return self.by_statement(context);
        }
        if !self.to_move {
            return Err(Failure::new(Exit::Usage, "usage", "a frozen log never takes another entry")
                .why("reads, proofs and `tabellion log export` continue")
                .hint(
                    "--for-ever --reason TEXT --key FILE ends the log; --to-move ends it in this database",
                ));
        }
        let config = config::resolve(&context.log_settings(self.flags.typed())?)?;
        let runtime = runtime::multi_threaded()?;
        let frozen = match runtime.block_on(in_the_database(&config)) {
            Ok(frozen) => frozen,
            // A running service uses the SQLite file exclusively, so it freezes the log.
            Err(StoreError::InUse(_)) => by_the_service(self.admin, context, &config)?,
            Err(error) => return Err(database(error)),
        };
        print(context, &frozen)
    }
}

impl Freeze {
    /// Freezes the log with the operator's statement, which a running service registers.
    fn by_statement(self, context: &Context) -> Result<(), Failure> {
        let signer = self.signing.signer()?;
        let payload = Action::Freeze { reason: self.reason.unwrap_or_default() }.payload();
        let key = match signer {
            Signer::Write(proposals) => {
                return proposals.write(context, OPERATOR_ACTION_CONTENT_TYPE, payload);
            }
            Signer::Key(key) => key,
        };
        let service = self.admin.connect(context)?;
        let log: LogPolicy = service.block_on(service.client.json("operator"))?;
        let policy = operator::policy_in(&log.policy)?;
        let statement = operator::sign(&policy, OPERATOR_ACTION_CONTENT_TYPE, payload, None, &key)?;
        let asked = json!({ "statement": BASE64URL_NOPAD.encode(statement.bytes()) });
        let frozen = service.block_on(service.client.send_json(Verb::Post, "freeze", &asked))?;
        print(context, &serde_json::from_value(frozen).map_err(nonsense)?)
    }
}

/// Freezes the log through the service, which checks that its log has the configured origin.
fn by_the_service(admin: Admin, context: &Context, config: &Config) -> Result<Frozen, Failure> {
    let service = admin.connect(context)?;
    let asked = json!({ "origin": config.origin });
    let frozen = service.block_on(service.client.send_json(Verb::Post, "freeze", &asked))?;
    let frozen: Frozen = serde_json::from_value(frozen).map_err(nonsense)?;
    match frozen.origin == config.origin {
        true => Ok(frozen),
        false => Err(Failure::new(Exit::Failure, "another-log", "the service serves another log")
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

/// Waits up to [`SIGNING`] for the last head's signature, if another process leads.
async fn signed(
    store: &dyn SequencerStore,
    config: &Config,
    mut frozen: Frozen,
) -> Result<Frozen, StoreError> {
    let somebody_leads = store.lease(&config.origin).await?.is_none();
    let deadline = Instant::now() + SIGNING;
    while somebody_leads && frozen.signed < frozen.size && Instant::now() < deadline {
        sleep(POLL).await;
        frozen = Frozen::of(store, &config.origin).await?;
    }
    Ok(frozen)
}

fn print(context: &Context, frozen: &Frozen) -> Result<(), Failure> {
    let Frozen { origin, size, root, epoch, signed, waiting, .. } = frozen;
    context.console.print(frozen, |out| {
        writeln!(out, "frozen  {}\nsize    {size}\nroot    {root}\nepoch   {epoch}", safe(origin))?;
        if signed < size {
            writeln!(out, "signed  {signed}: start the service once, and it signs the last head")?;
        }
        if *waiting > 0 {
            writeln!(
                out,
                "waiting {} not registered; `tabellion log export` includes them",
                counted(*waiting, "accepted statement", "accepted statements")
            )?;
        }
        writeln!(out, "next    tabellion log export, or nothing: reads and proofs continue")
    })
}
