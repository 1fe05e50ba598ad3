//! `tabellion log`: checks, migrates, freezes, exports and imports the log's storage, corrects its time, and adopts a
//! head by hand.

mod clock;
mod freeze;
pub mod fsck;

use std::io::{self, Write};
use std::path::PathBuf;

use archive::ArchivePurpose;
use clap::Subcommand;
use client::Verb;
use merkle::{RootHash, TreeSize};
use sequencer::pin::{AdoptError, PinError, adopt};
use serde::Serialize;
use serde_json::json;
use transparency::{Config, storage};

use super::backup::{filling, writing};
use super::entry::Admin;
use super::serve::config;
use super::serve::failures::database;
use crate::cli::Context;
use crate::console::{Exit, Failure, Report, safe};
use crate::settings::KeeperFlags;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion log fsck --deep --config /etc/tabellion/tabellion.toml")]
pub enum Log {
    /// Compare what is stored with what was signed; a running service is not disturbed
    #[command(before_help = "example:  tabellion log fsck --deep --config /etc/tabellion/tabellion.toml")]
    Fsck {
        /// Everything: each statement, each tile, the root of every head, every signature
        #[arg(long)]
        deep: bool,
        #[command(flatten)]
        going: fsck::Going,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Make the tables of a PostgreSQL database, or bring them up to date
    #[command(before_help = "example:  tabellion log migrate --db postgres://log_owner@db.example/log")]
    Migrate {
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Read the entries again for searches; the running service goes on serving meanwhile
    #[command(before_help = "example:  tabellion log reindex")]
    Reindex {
        #[command(flatten)]
        admin: Admin,
    },
    /// End the log: it is read and proven as before, and takes no more entries
    #[command(before_help = "example:  tabellion log freeze --for-ever --reason closed --key operator.pem")]
    Freeze(freeze::Freeze),
    /// Let a log continue whose time is in the future, because a clock was ahead
    #[command(
        before_help = "example:  tabellion log clock --true-time 2026-11-22T21:55:00Z --reason ntp-failed --key operator.pem"
    )]
    Clock(clock::Clock),
    /// Write a frozen log into a file, to go on in another database
    #[command(
        before_help = "example:  tabellion log export log.export --config /etc/tabellion/tabellion.toml"
    )]
    Export {
        /// The file to write; one that is there is left as it is
        file: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Go on with an exported log in an empty database: same entries, roots, receipts and keys
    #[command(before_help = "example:  tabellion log import log.export --db postgres://db.example/log")]
    Import {
        /// What `log export` wrote
        file: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Take a head as the newest one that was signed, for a log that moved without its pin
    #[command(
        before_help = "example:  tabellion log adopt --size 4 --root 62da1efc41c62c94a7e3ce1bdb0cb4a0e5d1dc5e6fbd3e5bb0e0b2fc6b1b6a51"
    )]
    Adopt {
        /// The head's size, from a receipt or checkpoint you trust
        #[arg(long)]
        size: u64,
        /// The head's root, in hexadecimal
        #[arg(long)]
        root: RootHash,
        #[command(flatten)]
        flags: KeeperFlags,
    },
}

impl Log {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match self {
            Self::Fsck { deep, going, flags } => {
                let config = config::resolve(&context.log_settings(flags.typed())?)?;
                runtime.block_on(fsck::check(context, &config, deep, &going))
            }
            Self::Migrate { flags } => {
                let to = config::database_of(&context.log_settings(flags.typed())?)?;
                runtime.block_on(storage::migrate(&to)).map_err(database)?;
                context.console.note("the database's tables are those of this program");
                Ok(())
            }
            Self::Clock(clock) => clock.run(context),
            Self::Freeze(freeze) => freeze.run(context),
            Self::Export { file, flags } => {
                let config = config::resolve(&context.log_settings(flags.typed())?)?;
                writing::write(context, &config, &file, ArchivePurpose::Export)
            }
            Self::Import { file, flags } => {
                let config = config::resolve(&context.log_settings(flags.typed())?)?;
                filling::fill(context, &config, &file, ArchivePurpose::Export)
            }
            Self::Reindex { admin } => {
                let service = admin.connect(context)?;
                service.block_on(service.client.send_json(Verb::Post, "reindex", &json!({})))?;
                context.console.note("the entries are read again: answers say up to which one");
                Ok(())
            }
            Self::Adopt { size, root, flags } => {
                let config = config::resolve(&context.log_settings(flags.typed())?)?;
                runtime.block_on(adopted(context, &config, TreeSize::new(size), root))
            }
        }
    }
}

async fn adopted(context: &Context, config: &Config, size: TreeSize, root: RootHash) -> Result<(), Failure> {
    let store = storage::open_existing(&config.database, &config.origin).await.map_err(database)?;
    std::fs::create_dir_all(&config.state_dir)?;
    let pins = storage::pin(config).map_err(database)?;
    let holder = format!("log adopt: process {}", std::process::id());
    let pin = adopt(&*store, &*pins, &config.origin, &holder, size, root).await.map_err(not_adopted)?;
    context.console.result(&Adopted { size: pin.size.get(), root: pin.root.to_string(), pin: pins.place() })
}

fn not_adopted(error: AdoptError) -> Failure {
    let exit = match &error {
        AdoptError::NoSuchHead(_) => Exit::NotFound,
        AdoptError::OtherRoot { .. }
        | AdoptError::NotNewest { .. }
        | AdoptError::Pin(PinError::Ahead(_) | PinError::Disagrees(_)) => Exit::LogMisbehaviour,
        _ => Exit::Failure,
    };
    Failure::new(exit, "not-adopted", error.to_string())
        .why("what was signed once is never unsigned: the database must hold it")
}

#[derive(Serialize)]
struct Adopted {
    size: u64,
    root: String,
    pin: String,
}

impl Report for Adopted {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "adopted    size {} with root {}\nwrote      {}", self.size, self.root, safe(&self.pin))
    }
}
