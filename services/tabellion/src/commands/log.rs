//! `tabellion log`: checks, migrates, freezes, exports and imports the log's storage, corrects its time, and adopts a
//! head by hand. `log browse` reads a log over its public interface.

#[cfg(feature = "browse")]
mod browse;
mod clock;
mod freeze;
pub mod fsck;

use std::path::PathBuf;

use archive::ArchivePurpose;
use clap::Subcommand;
use client::Verb;
use merkle::{RootHash, TreeSize};
use sequencer::pin::{AdoptError, PinError, adopt};
use serde_json::json;
use transparency::{Config, storage};

use super::backup::{filling, writing};
use super::entry::Admin;
use super::serve::config;
use super::serve::failures::database;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;
use crate::settings::KeeperFlags;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion log fsck --deep --config /etc/tabellion/tabellion.toml")]
pub enum Log {
    /// Browse the entries of a log on the terminal, each with its verified proof
    #[cfg(feature = "browse")]
    Browse(browse::Browse),
    /// Check the stored log against the signed heads, also while the service runs
    #[command(before_help = "example:  tabellion log fsck --deep --config /etc/tabellion/tabellion.toml")]
    Fsck {
        /// Check all statements, tiles, heads and signatures
        #[arg(long)]
        deep: bool,
        #[command(flatten)]
        options: fsck::DeepCheckOptions,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Create or update the tables of a PostgreSQL database
    #[command(before_help = "example:  tabellion log migrate --db postgres://log_owner@db.example/log")]
    Migrate {
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Rebuild the search index while the service runs
    #[command(before_help = "example:  tabellion log reindex")]
    Reindex {
        #[command(flatten)]
        admin: Admin,
    },
    /// End the log: no more entries, reads and proofs continue
    #[command(before_help = "example:  tabellion log freeze --for-ever --reason closed --key operator.pem")]
    Freeze(freeze::Freeze),
    /// Correct the time of a log whose newest entry is in the future
    #[command(
        before_help = "example:  tabellion log clock --true-time 2026-11-22T21:55:00Z --reason ntp-failed --key operator.pem"
    )]
    Clock(clock::Clock),
    /// Write a frozen log to a file, to continue it in another database
    #[command(
        before_help = "example:  tabellion log export log.export --config /etc/tabellion/tabellion.toml"
    )]
    Export {
        /// The file to write; an existing file is not overwritten
        file: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Continue an exported log in an empty database, with the same entries and keys
    #[command(before_help = "example:  tabellion log import log.export --db postgres://db.example/log")]
    Import {
        /// A file from `log export`
        file: PathBuf,
        #[command(flatten)]
        flags: KeeperFlags,
    },
    /// Declare a tree head the newest signed one, for a log that lost its pin
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
        let runtime = runtime::multi_threaded()?;
        match self {
            #[cfg(feature = "browse")]
            Self::Browse(browse) => browse.run(context),
            Self::Fsck { deep, options, flags } => {
                let config = config::resolve(&context.log_settings(flags.typed())?)?;
                runtime.block_on(fsck::check(context, &config, deep, &options))
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
    let (size, root, pin) = (pin.size.get(), pin.root.to_string(), pins.place());
    context.console.print(&members! { size, root, pin }, |out| {
        writeln!(out, "adopted    size {size} with root {root}\nwrote      {}", safe(&pin))
    })
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
        .why("a signed tree head cannot be withdrawn: the database must have its tree")
}
