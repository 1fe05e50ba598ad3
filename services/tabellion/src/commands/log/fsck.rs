//! `log fsck`: checks the stored log against its signatures.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use display::counted;
use merkle::TreeSize;
use sequencer::Halt;
use sequencer::pin::Pin;
use serde::Serialize;
use store::fsck::{BadState, DeepCheck, Fsck, FsckFacts, FsckReport, FsckState, FsckStep};
use store::{FsckStore, LogReader, StoreError};
use transparency::fsck::RowRate;
use transparency::fsck::heads::{HeadCheckError, HeadFindings, check_heads};
use transparency::{Config, LogFacts, storage};

use crate::commands::serve::failures::{database, unreadable_pin};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;

/// Interval at which a check with `--resume` saves its progress.
const KEPT_EVERY: Duration = Duration::from_secs(1);

/// How a deep check goes.
#[derive(Debug, Args)]
pub struct DeepCheckOptions {
    /// Resume from this file if it exists; progress is written to it
    #[arg(long, value_name = "FILE", requires = "deep")]
    resume: Option<PathBuf>,
    /// Maximum number of entries per second
    #[arg(long, value_name = "ENTRIES", default_value_t = 0, hide_default_value = true, requires = "deep")]
    rate: u32,
}

/// Checks the log and prints the findings.
pub async fn check(
    context: &Context,
    config: &Config,
    deep: bool,
    options: &DeepCheckOptions,
) -> Result<(), Failure> {
    // The pin is read before the database, because a running service advances it: the database must contain the pinned
    // head.
    let pin = storage::pin(config).map_err(database)?.read().await.map_err(unreadable_pin)?;
    let store = storage::open_read_only(&config.database).await.map_err(database)?;
    let facts = LogFacts::of(&config.origin).map_err(database)?;
    let mut checked = match deep {
        true => {
            let mut checked = walk(context, &*store, &facts, options).await?;
            checked.add_heads(check_index_heads(&*store).await?);
            checked
        }
        false => {
            let report = Fsck::new(&*store, &facts).quick().await.map_err(database)?;
            let findings = report.findings.iter().map(ToString::to_string).collect();
            FsckResult::of(&report, findings, deep)
        }
    };
    if let Some(pin) = pin {
        checked.add(behind(&*store, &pin).await.map_err(database)?);
    }
    context.console.result(&checked)?;
    if let Some(file) = &options.resume {
        complete(file)?;
    }
    if checked.clean { Ok(()) } else { Err(Failure::already_printed(Exit::LogMisbehaviour)) }
}

async fn walk(
    context: &Context,
    store: &dyn FsckStore,
    facts: &dyn FsckFacts,
    options: &DeepCheckOptions,
) -> Result<FsckResult, Failure> {
    let mut walk = begun(store, facts, options.resume.as_deref()).await?;
    let bar = context.console.entries_bar();
    let mut pace = RowRate::of(options.rate);
    let mut written: Option<Instant> = None;
    while let FsckStep::Checked(rows) = walk.step().await.map_err(database)? {
        let progress = walk.progress();
        bar.set_length(progress.of);
        bar.set_position(progress.entries);
        if written.is_none_or(|written| written.elapsed() > KEPT_EVERY) {
            keep(&walk, options.resume.as_deref())?;
            written = Some(Instant::now());
        }
        pace.spent(rows).await;
    }
    bar.finish_and_clear();
    Ok(FsckResult::of(walk.report(), walk.findings(), true))
}

/// Compares the heads of the search index on the log with the index, which is computed in a temporary folder.
async fn check_index_heads(store: &dyn LogReader) -> Result<HeadFindings, Failure> {
    let folder = tempfile::tempdir()?;
    check_heads(store, folder.path()).await.map_err(|error| match error {
        HeadCheckError::Store(error) => database(error),
        HeadCheckError::Folder(why) => {
            Failure::new(Exit::Failure, "fsck-folder", "the search index cannot be computed again")
                .fact("because", why.to_string())
                .why("the computed index is written to the folder for temporary files (`TMPDIR`)")
        }
    })
}

/// Resumes the walk from a progress file (`--resume`), or begins a new one.
async fn begun<'a>(
    store: &'a dyn FsckStore,
    facts: &'a dyn FsckFacts,
    file: Option<&Path>,
) -> Result<DeepCheck<'a>, Failure> {
    let Some(file) = file.filter(|file| file.exists()) else {
        return DeepCheck::begin(store, facts).await.map_err(database);
    };
    let state: FsckState = serde_json::from_str(&files::read_text(file)?)
        .map_err(|error| unusable(&BadState::Unreadable(error.to_string())))?;
    DeepCheck::resume(store, facts, &state).await.map_err(database)?.map_err(|bad| unusable(&bad))
}

fn keep(walk: &DeepCheck<'_>, file: Option<&Path>) -> Result<(), Failure> {
    let Some((file, state)) = file.zip(walk.state()) else { return Ok(()) };
    let text = serde_json::to_string(&state).unwrap_or_default();
    files::write(file, text.as_bytes(), Access::Ordinary, Existing::Replace)
}

/// Deletes the progress file of a completed check.
fn complete(file: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The failure for unusable progress, `fsck-state`. A log without the rows that were already checked was rolled back,
/// which is [`Exit::LogMisbehaviour`].
fn unusable(bad: &BadState) -> Failure {
    let exit = match bad {
        BadState::AnotherHistory { .. } => Exit::LogMisbehaviour,
        _ => Exit::Failure,
    };
    Failure::new(exit, "fsck-state", "the check cannot continue from its saved state")
        .fact("because", bad.to_string())
        .why("move the file away to check from the first entry")
}

/// Checks that the database contains the head in the pin.
async fn behind(store: &dyn LogReader, pin: &Pin) -> Result<Option<Halt>, StoreError> {
    let head = store.head().await?.size();
    if head < pin.size {
        return Ok(Some(Halt::DatabaseBehind { database: head, signed: pin.size }));
    }
    let stored = store.head_of_size(pin.size).await?.map(|head| head.root);
    let disagrees = pin.size != TreeSize::EMPTY && stored != Some(pin.root);
    Ok(disagrees.then_some(Halt::DatabaseDisagrees { size: pin.size, signed: pin.root, database: stored }))
}

#[derive(Serialize)]
struct FsckResult {
    clean: bool,
    deep: bool,
    size: u64,
    root: String,
    entries: u64,
    heads: u64,
    signatures: u64,
    index_heads: u64,
    findings: Vec<String>,
    /// Runs of the search index that could not be compared with a head.
    uncompared: Vec<String>,
    omitted: u64,
}

impl FsckResult {
    fn add(&mut self, halt: Option<Halt>) {
        self.clean &= halt.is_none();
        self.findings.extend(halt.map(|halt| format!("pin: {halt}")));
    }

    fn add_heads(&mut self, heads: HeadFindings) {
        self.clean &= heads.findings.is_empty();
        self.index_heads = heads.heads;
        self.findings.extend(heads.findings);
        self.uncompared = heads.uncompared;
    }

    fn of(report: &FsckReport, findings: Vec<String>, deep: bool) -> Self {
        Self {
            clean: findings.is_empty(),
            deep,
            size: report.size.get(),
            root: report.root.to_string(),
            entries: report.entries,
            heads: report.heads,
            signatures: report.signatures,
            index_heads: 0,
            uncompared: Vec::new(),
            findings,
            omitted: report.omitted,
        }
    }
}

impl Report for FsckResult {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.findings.iter().try_for_each(|finding| writeln!(out, "FAIL  {}", safe(finding)))?;
        if self.omitted > 0 {
            writeln!(out, "      and {} more", self.omitted)?;
        }
        self.uncompared.iter().try_for_each(|run| writeln!(out, "SKIP  {}", safe(run)))?;
        let mut counts = [
            counted(self.entries, "statement", "statements"),
            counted(self.heads, "head", "heads"),
            counted(self.signatures, "signature", "signatures"),
        ]
        .join(", ");
        if self.index_heads > 0 {
            let heads = counted(self.index_heads, "head", "heads");
            counts.push_str(&format!(", {heads} of the search index"));
        }
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
