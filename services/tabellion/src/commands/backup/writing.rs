//! `backup create` and `log export`: from a database to a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use archive::{ArchiveHeader, ArchivePurpose, ArchiveSummary, ArchiveWriteError, PartialFile};
use data_encoding::HEXLOWER;
use display::counted;
use store::LogWriter;
use transparency::{ArchiveFacts, Config, storage};

use crate::commands::serve::failures::database;
use crate::commands::verify::now;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;

/// Size of the write buffer in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes the configured log to a file.
pub fn write(
    context: &Context,
    config: &Config,
    file: &Path,
    purpose: ArchivePurpose,
) -> Result<(), Failure> {
    let runtime = runtime::multi_threaded()?;
    let partial = PartialFile::create(file).map_err(|error| unwritable(file, &error))?;
    let summary = runtime.block_on(written(context, config, &partial, purpose))?;
    partial.keep().map_err(|error| unwritable(file, &error))?;
    let (file, ArchiveSummary { origin, counts, .. }) = (file.display().to_string(), &summary);
    let (size, root) = (summary.size.get(), summary.root.to_string());
    let sha256 = HEXLOWER.encode(&summary.source.0);
    context.console.print(&members! { file, origin, size, root, sha256, #[serde(flatten)] counts }, |out| {
        writeln!(out, "wrote  {}", safe(&file))?;
        print_contents(out, &summary)
    })
}

async fn written(
    context: &Context,
    config: &Config,
    partial: &PartialFile,
    purpose: ArchivePurpose,
) -> Result<ArchiveSummary, Failure> {
    let store = storage::open_read_only(&config.database).await.map_err(database)?;
    let head = opened(&*store, &config.origin).await?;
    let facts = ArchiveFacts::of(&config.origin).map_err(database)?;
    let bar = context.console.entries_bar();
    bar.set_length(head);
    let out = BufWriter::with_capacity(BUFFER_BYTES, partial.file());
    let header = ArchiveHeader { origin: config.origin.clone(), purpose, made_at: now() };
    let summary = archive::write(&*store, &facts, header, out, &|entries| bar.set_position(entries)).await;
    bar.finish_and_clear();
    summary.map_err(not_written)
}

/// Checks that the database contains the configured log, and returns its size.
async fn opened(store: &dyn LogWriter, origin: &str) -> Result<u64, Failure> {
    // The head is read first, because `open` would create a log in an empty database.
    store.head().await.map_err(database)?;
    Ok(store.open(origin).await.map_err(database)?.size().get())
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    let name = file.display().to_string();
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Exists, "exists", format!("{name} exists already"))
                .why("an archive is never written over")
        }
        _ => Failure::new(Exit::Failure, "file-unwritable", format!("{name} cannot be written"))
            .fact("because", error.to_string()),
    }
}

fn not_written(error: ArchiveWriteError) -> Failure {
    let detail = error.to_string();
    match error {
        ArchiveWriteError::Store(error) => database(error),
        ArchiveWriteError::Io(_) => {
            Failure::new(Exit::Failure, "file-unwritable", "the archive cannot be written")
                .fact("because", detail)
        }
        ArchiveWriteError::NotFrozen => Failure::new(
            Exit::Failure,
            "not-frozen",
            "only a frozen log is exported",
        )
        .fact("because", detail)
        .why(
            "a log that continues in two databases is forked; `tabellion backup create` copies a running log",
        )
        .hint("tabellion log freeze --help"),
        ArchiveWriteError::NotSigned { .. } => {
            Failure::new(Exit::TryAgain, "not-signed", "the last head has no signature yet")
                .fact("because", detail)
                .why("the service signs it when it starts, and takes nothing more")
        }
        ArchiveWriteError::Empty => Failure::new(Exit::NotFound, "nothing-signed", detail),
        ArchiveWriteError::Damaged(_) => {
            Failure::new(Exit::LogMisbehaviour, "database-damaged", "the log contradicts itself")
                .fact("because", detail)
                .hint("tabellion log fsck --deep")
        }
    }
}

/// Prints the log's origin, size and root, and the numbers of objects in the archive.
pub fn print_contents(out: &mut dyn Write, summary: &ArchiveSummary) -> io::Result<()> {
    let ArchiveSummary { origin, size, root, counts, .. } = summary;
    writeln!(out, "log    {}\nsize   {size}\nroot   {root}", safe(origin))?;
    writeln!(
        out,
        "holds  {} ({} erased), {}, {}, {}, {}, {}, {} waiting",
        counted(counts.entries, "entry", "entries"),
        counts.erased,
        counted(counts.heads, "head", "heads"),
        counted(counts.signatures, "signature", "signatures"),
        counted(counts.cosignatures, "cosignature", "cosignatures"),
        counted(counts.holds, "hold", "holds"),
        counted(counts.reports, "report", "reports"),
        counts.waiting
    )
}
