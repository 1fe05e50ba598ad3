//! `log fsck`: what is stored against what was signed.

use std::io::{self, Write};

use merkle::TreeSize;
use sequencer::pin::{Pin, PinError};
use sequencer::{Halt, PinFile};
use serde::Serialize;
use store::fsck::{Fsck, Progress, Report as FsckReport};
use store::{LogStore, StoreError};
use transparency::{Config, LogMeaning, storage};

use crate::cli::Context;
use crate::commands::serve::failures::database;
use crate::console::{Exit, Failure, Report, safe};

pub async fn check(context: &Context, config: &Config, deep: bool) -> Result<(), Failure> {
    // Before the database: it must hold what the pin says, and a running service moves the pin on.
    let pin = PinFile::in_directory(&config.state_dir).read().map_err(unreadable_pin)?;
    let store = storage::open_read_only(&config.database).await.map_err(database)?;
    let meaning = LogMeaning::of(&*store, &config.origin).await.map_err(database)?;
    let bar = context.console.entries_bar();
    let show = |progress: Progress| {
        bar.set_length(progress.of);
        bar.set_position(progress.entries);
    };
    let fsck = Fsck::new(&*store, &meaning).reporting(&show);
    let report = if deep { fsck.deep().await } else { fsck.quick().await };
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
