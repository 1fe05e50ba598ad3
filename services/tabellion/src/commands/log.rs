//! `tabellion log`: check the log's storage, and vouch for a head by hand.

use std::io::{self, Write};

use clap::Subcommand;
use client::Verb;
use merkle::{RootHash, TreeSize};
use sequencer::pin::{AdoptError, Pin, PinError, adopt};
use sequencer::{Halt, PinFile};
use serde::Serialize;
use serde_json::json;
use store::fsck::{Fsck, Progress, Report as FsckReport};
use store::{LogStore, StoreError};
use transparency::{Config, LogMeaning, storage};

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
        flags: KeeperFlags,
    },
    /// Read the entries again for searches; the running service goes on serving meanwhile
    #[command(before_help = "example:  tabellion log reindex")]
    Reindex {
        #[command(flatten)]
        admin: Admin,
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
            Self::Fsck { deep, flags } => {
                let config = config::resolve(&context.settings(flags.typed())?)?;
                runtime.block_on(fsck(context, &config, deep))
            }
            Self::Reindex { admin } => {
                let service = admin.connect(context)?;
                service.block_on(service.client.tell(Verb::Post, "reindex", &json!({})))?;
                context.console.note("the entries are read again: answers say up to which one");
                Ok(())
            }
            Self::Adopt { size, root, flags } => {
                let config = config::resolve(&context.settings(flags.typed())?)?;
                runtime.block_on(adopted(context, &config, TreeSize::new(size), root))
            }
        }
    }
}

async fn fsck(context: &Context, config: &Config, deep: bool) -> Result<(), Failure> {
    // Before the database: it must hold what the pin says, and a running service moves the pin on.
    let pin = PinFile::in_directory(&config.state_dir).read().map_err(unreadable_pin)?;
    let store = storage::open_read_only(&config.database).await.map_err(database)?;
    let meaning = LogMeaning::of(&*store, &config.origin).await.map_err(database)?;
    let bar = context.console.entries_bar();
    let show = |progress: Progress| {
        bar.set_length(progress.of);
        bar.set_position(progress.entries);
    };
    let check = Fsck::new(&*store, &meaning).reporting(&show);
    let report = if deep { check.deep().await } else { check.quick().await };
    bar.finish_and_clear();
    let mut report = report.map_err(database)?;
    transparency::excuse_erasures(&*store, &mut report).await.map_err(database)?;
    let mut report = Checked::of(&report, deep);
    if let Some(pin) = pin {
        report.add(behind(&*store, &pin).await.map_err(database)?);
    }
    context.console.result(&report)?;
    if report.clean { Ok(()) } else { Err(Failure::told(Exit::LogMisbehaviour)) }
}

/// What the pin has seen signed and the database does not hold.
async fn behind(store: &dyn LogStore, pin: &Pin) -> Result<Option<Halt>, StoreError> {
    let head = store.head().await?.size();
    if head < pin.size {
        return Ok(Some(Halt::DatabaseBehind { database: head, signed: pin.size }));
    }
    let stored = store.head_of_size(pin.size).await?.map(|head| head.root);
    let disagrees = pin.size != TreeSize::EMPTY && stored != Some(pin.root);
    Ok(disagrees.then_some(Halt::DatabaseDisagrees { size: pin.size, signed: pin.root, database: stored }))
}

fn unreadable_pin(error: PinError) -> Failure {
    Failure::new(Exit::Failure, "pin-unusable", "the pin cannot be read").fact("because", error.to_string())
}

async fn adopted(context: &Context, config: &Config, size: TreeSize, root: RootHash) -> Result<(), Failure> {
    let store = storage::open(&config.database).await.map_err(database)?;
    store.open(&config.origin).await.map_err(database)?;
    std::fs::create_dir_all(&config.state_dir)?;
    let file = PinFile::in_directory(&config.state_dir);
    let pin = adopt(&*store, &file, &config.origin, size, root).await.map_err(not_adopted)?;
    context.console.result(&Adopted {
        size: pin.size.get(),
        root: pin.root.to_string(),
        pin: file.path().display().to_string(),
    })
}

fn not_adopted(error: AdoptError) -> Failure {
    let exit = match &error {
        AdoptError::NoSuchHead(_) => Exit::NotFound,
        AdoptError::OtherRoot { .. } | AdoptError::Pin(PinError::Ahead(_) | PinError::Disagrees(_)) => {
            Exit::LogMisbehaviour
        }
        _ => Exit::Failure,
    };
    Failure::new(exit, "not-adopted", error.to_string())
        .why("what was signed once is never unsigned: the database must hold it")
}

#[derive(Serialize)]
struct Checked {
    clean: bool,
    deep: bool,
    size: u64,
    root: String,
    entries: u64,
    heads: u64,
    signatures: u64,
    findings: Vec<String>,
    omitted: u64,
}

impl Checked {
    fn add(&mut self, halt: Option<Halt>) {
        self.clean &= halt.is_none();
        self.findings.extend(halt.map(|halt| format!("pin: {halt}")));
    }

    fn of(report: &FsckReport, deep: bool) -> Self {
        Self {
            clean: report.is_clean(),
            deep,
            size: report.size.get(),
            root: report.root.to_string(),
            entries: report.entries,
            heads: report.heads,
            signatures: report.signatures,
            findings: report.findings.iter().map(ToString::to_string).collect(),
            omitted: report.omitted,
        }
    }
}

impl Report for Checked {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.findings.iter().try_for_each(|finding| writeln!(out, "FAIL  {}", safe(finding)))?;
        if self.omitted > 0 {
            writeln!(out, "      and {} more", self.omitted)?;
        }
        let counts =
            format!("{} statements, {} heads, {} signatures", self.entries, self.heads, self.signatures);
        let scope = if self.deep { "all of it" } else { "the newest part; --deep checks all" };
        writeln!(out, "size  {}\nroot  {}\nread  {counts} ({scope})", self.size, self.root)?;
        writeln!(
            out,
            "{}",
            if self.clean {
                "clean"
            } else {
                "the log is damaged: stop it, keep a copy, find out who changed it"
            }
        )
    }
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
