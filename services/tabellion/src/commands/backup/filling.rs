//! `backup restore` and `log import`: from a file to an empty database.
//!
//! The checks precede every change: first the whole file, then its log and keys, then the pin (the newest signed head),
//! and only then the database.

use std::fs::File;
use std::path::Path;

use archive::{ArchivePurpose, ArchiveSummary, FillError};
use display::counted;
use merkle::TreeSize;
use sequencer::Halt;
use sequencer::pin::Pin;
use store::fsck::Fsck;
use store::{FsckStore, Head};
use transparency::{
    ArchiveFacts, Config, ForeignArchive, LogFacts, is_ours, keep_frozen, restore_holds, storage,
};

use super::checking::{checked, unreadable};
use super::writing::print_contents;
use crate::commands::serve::failures::{database, unreadable_pin};
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;

/// Fills the configured database from a file.
pub fn fill(context: &Context, config: &Config, file: &Path, purpose: ArchivePurpose) -> Result<(), Failure> {
    let runtime = runtime::multi_threaded()?;
    let pins = runtime.block_on(async { storage::pin(config) }).map_err(database)?;
    let pin = runtime.block_on(pins.read()).map_err(unreadable_pin)?;
    let summary = checked(context, file, pin.as_ref().map(|pin| pin.size))?;
    for_this(&summary, purpose)?;
    is_ours(config, &summary).map_err(not_ours)?;
    let pinned = pin.as_ref().map(|pin| holds_what_was_signed(&summary, pin)).transpose()?.is_some();
    let head = runtime.block_on(filled(context, config, file, &summary))?;
    print(context, &summary, &head, pinned, &pins.place())
}

/// Checks the archive's purpose: a backup cannot be imported as a moved log, nor an export restored as a backup.
fn for_this(summary: &ArchiveSummary, purpose: ArchivePurpose) -> Result<(), Failure> {
    let failure = |what: &str, hint: &str| {
        Err(Failure::new(Exit::Failure, "archive-of-another-kind", what).hint(hint.to_owned()))
    };
    match (summary.purpose, purpose) {
        (ArchivePurpose::Backup, ArchivePurpose::Export) => failure(
            "this is a backup of a log, not the export of a frozen one",
            "tabellion backup restore --help",
        ),
        (ArchivePurpose::Export, ArchivePurpose::Backup) => {
            failure("this is the export of a frozen log, not a backup", "tabellion log import --help")
        }
        _ => Ok(()),
    }
}

fn not_ours(error: ForeignArchive) -> Failure {
    let code = match &error {
        ForeignArchive::OtherLog(_) => "archive-of-another-log",
        ForeignArchive::OtherKey(..) => "archive-of-another-key",
        ForeignArchive::Key(why) => {
            return Failure::new(Exit::Failure, "key-unusable", "the log's keys cannot be read")
                .fact("because", why.to_string());
        }
    };
    Failure::new(Exit::VerificationFailed, code, "this is not the log that is configured here")
        .fact("because", error.to_string())
        .why("a log is known by its origin and its keys; nothing was touched")
}

/// Checks that the file contains the pinned head; otherwise the log would fork when it continues.
fn holds_what_was_signed(summary: &ArchiveSummary, pin: &Pin) -> Result<(), Failure> {
    let (size, signed) = (pin.size, pin.root);
    let halt = if pin.origin != summary.origin {
        Halt::OtherLog {
            path: "the state directory".into(),
            pinned: pin.origin.clone(),
            origin: summary.origin.clone(),
        }
    } else if size > summary.size {
        Halt::DatabaseBehind { database: summary.size, signed: size }
    } else if size != TreeSize::EMPTY && summary.wanted_root != Some(signed) {
        Halt::DatabaseDisagrees { size, signed, database: summary.wanted_root }
    } else {
        return Ok(());
    };
    // The message is the same as at the service's start, but names the backup.
    let detail = halt.to_string().replacen("the database", "the backup", 1);
    let (exit, code) = match halt {
        Halt::DatabaseBehind { .. } => (Exit::LogMisbehaviour, "backup-behind"),
        Halt::DatabaseDisagrees { .. } => (Exit::LogMisbehaviour, "backup-disagrees"),
        _ => (Exit::Failure, "pin-of-another-log"),
    };
    Err(Failure::new(exit, code, detail).why(
        "going on from here would sign another history than the one that was signed: \
         bring a newer backup, or restore it as a copy with a state directory of its own; nothing was touched",
    ))
}

async fn filled(
    context: &Context,
    config: &Config,
    file: &Path,
    summary: &ArchiveSummary,
) -> Result<Head, Failure> {
    let store = storage::open(&config.database, config.migrate).await.map_err(database)?;
    let lease = store.lease("tabellion restore").await.map_err(database)?;
    if lease.is_none() {
        return Err(Failure::new(
            Exit::Failure,
            "database-in-use",
            "another process leads the log in this database",
        ));
    }
    let facts = ArchiveFacts::of(&summary.origin).map_err(database)?;
    let bar = context.console.entries_bar();
    bar.set_length(summary.size.get());
    let show = |entries| bar.set_position(entries);
    let archive = File::open(file)?;
    let done = archive::fill(&*store, archive, (summary, &facts), &show).await;
    bar.finish_and_clear();
    let done = done.map_err(|error| not_filled(file, error))?;
    if done.already_present > 0 {
        let before = counted(done.already_present, "entry", "entries");
        context.console.note(format!("went on after {before} of an earlier attempt"));
    }
    restore_holds(&*store).await.map_err(database)?;
    checked_again(&*store, summary).await?;
    let head = archive::finish(&*store, summary).await.map_err(database)?;
    keep_frozen(&*store).await.map_err(database)?;
    Ok(head)
}

fn not_filled(file: &Path, error: FillError) -> Failure {
    let detail = error.to_string();
    match error {
        FillError::Store(error) => database(error),
        FillError::Archive(error) => unreadable(file, error),
        FillError::Changed | FillError::ErasedAndHeld(_) => {
            Failure::new(Exit::VerificationFailed, "archive-contradicts", detail)
        }
    }
}

/// Checks everything in the database again, as `log fsck --deep` does, before the log is opened for use.
async fn checked_again(store: &dyn FsckStore, summary: &ArchiveSummary) -> Result<(), Failure> {
    let facts = LogFacts::of(&summary.origin).map_err(database)?;
    let report = Fsck::new(store, &facts).deep().await.map_err(database)?;
    if report.is_clean() && (report.size, report.root) == (summary.size, summary.root) {
        return Ok(());
    }
    let failure = Failure::new(
        Exit::LogMisbehaviour,
        "not-as-written",
        "the database does not have the content that was written to it",
    );
    Err(report
        .findings
        .iter()
        .take(8)
        .fold(failure, |failure, finding| failure.fact("finding", finding.to_string()))
        .why("it stays closed: drop it, check the disk, and begin again"))
}

/// Prints the result; `pinned` if the log may continue from here, because there is a pin.
fn print(
    context: &Context,
    summary: &ArchiveSummary,
    head: &Head,
    pinned: bool,
    pin: &str,
) -> Result<(), Failure> {
    let ArchiveSummary { origin, counts, .. } = summary;
    let (size, root, epoch) = (head.size().get(), head.root().to_string(), head.epoch);
    let json = members! { origin, size, root, epoch, pinned, pin, #[serde(flatten)] counts };
    context.console.print(&json, |out| {
        print_contents(out, summary)?;
        writeln!(out, "clean  all of it was read back and checked")?;
        match pinned {
            true => writeln!(out, "next   tabellion serve: the pin allows the log to continue from here"),
            false => writeln!(
                out,
                "next   tabellion serve reads, and signs nothing: there is no pin at {}\n       \
                 to go on, bring the pin, or `tabellion log adopt` the newest head that you know was signed",
                safe(pin)
            ),
        }
    })
}
