//! `tabellion audit`: repeats the decision about every entry from the log alone, and compares the results.

mod report;
mod session;
mod threads;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use audit::limits::MAX_AUDIT_STATE_BYTES;
use audit::{Audit as Walk, AuditError, AuditSource, AuditState, AuditStateError, SourceError, StoreSource};
use clap::{Args, Subcommand};
use monitor::remote_audit_source::RemoteAuditSource;
use transparency::storage;

use super::serve::config;
use super::serve::failures;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::runtime;
use crate::service::ServiceArgs;
use crate::settings::{self, KeeperFlags};
use crate::trust_file::TrustFile;

use report::Audited;
use threads::Threads;

/// Interval at which an audit with `--resume` saves its progress.
const KEPT_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion audit --config /etc/tabellion/tabellion.toml",
    args_conflicts_with_subcommands = true,
    mut_arg("url", |url| url.help("Audit this service over HTTP instead of the database"))
)]
pub struct Audit {
    #[command(subcommand)]
    subject: Option<Subject>,
    /// Resume from this file if it exists; progress is written to it
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    flags: KeeperFlags,
}

/// An audit of something else than the log's admissions.
#[derive(Debug, Subcommand)]
enum Subject {
    /// Show a gateway session in clear, each text proven against the log
    Session(session::Session),
}

impl Audit {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        if let Some(Subject::Session(command)) = self.subject {
            return command.run(context);
        }
        let state = self.resume.as_deref().map_or_else(|| Ok(AuditState::default()), kept)?;
        let kept = self.resume.as_deref();
        if self.service.url.is_some() {
            let trust = self.trust(context)?;
            let service = self.service.connect(context)?;
            let session = AuditSession { context, kept, unanswered: by_service };
            return service
                .drive(session.audit(&RemoteAuditSource::new(&service.client, &trust.store), state));
        }
        let database = config::database_of(&context.log_settings(self.flags.typed())?)?;
        let runtime = runtime::multi_threaded()?;
        runtime.block_on(async {
            let store = storage::open_read_only(&database).await.map_err(failures::database)?;
            let source = StoreSource::new(&*store);
            let session = AuditSession { context, kept, unanswered: by_database };
            session.audit(&source, state).await
        })
    }
}

impl Audit {
    /// Returns the trust file, with which a service's head is verified; `--trust` is a setting.
    fn trust(&self, context: &Context) -> Result<TrustFile, Failure> {
        let named = context.log_settings(self.flags.typed())?.path("trust");
        let named = named.map_err(|mistake| settings::refuse(vec![mistake]))?;
        TrustFile::find(context, named.as_deref())
    }
}

/// An audit with its output and its progress file.
struct AuditSession<'a> {
    context: &'a Context,
    kept: Option<&'a Path>,
    /// Converts an error of the audited source.
    unanswered: fn(SourceError) -> Failure,
}

impl AuditSession<'_> {
    async fn audit(&self, source: &dyn AuditSource, state: AuditState) -> Result<(), Failure> {
        let (threads, mut begun_with) = (Threads::all(), None);
        let begun = Walk::begin(source, state).await.map_err(|error| self.failed(error))?;
        let mut walk = begun.with_workers(&threads);
        let bar = self.context.console.entries_bar();
        let mut written = Instant::now();
        while walk.step().await.map_err(self.unanswered)? {
            let progress = walk.progress();
            bar.set_length(progress.of);
            bar.set_position(progress.entries);
            if written.elapsed() > KEPT_EVERY && walk.agrees_with_heads() {
                if begun_with.is_none() {
                    begun_with = self.kept.map(kept).transpose()?;
                }
                self.keep(walk.state())?;
                written = Instant::now();
            }
        }
        walk.settle().await.map_err(self.unanswered)?;
        bar.finish_and_clear();
        match (walk.agrees_with_heads(), begun_with) {
            (true, _) => self.keep(walk.state())?,
            // Leaves that do not give the root may be one wrong answer: they are read again.
            (false, Some(begun_with)) => self.keep(&begun_with)?,
            (false, None) => {}
        }
        let audited = Audited::of(walk.report());
        self.context.console.result(&audited)?;
        match audited.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }

    fn failed(&self, error: AuditError) -> Failure {
        match error {
            AuditError::Source(error) => (self.unanswered)(error),
            AuditError::State(error) => unusable(error),
        }
    }

    fn keep(&self, state: &AuditState) -> Result<(), Failure> {
        let Some(path) = self.kept else { return Ok(()) };
        let json = state.to_json().map_err(|why| {
            Failure::new(Exit::Failure, "audit-state", "the progress of the audit cannot be saved")
                .fact("because", why.to_string())
                .hint("without --resume, the audit saves nothing")
        })?;
        files::write(path, json.as_bytes(), Access::Ordinary, Existing::Replace)
    }
}

/// Reads the progress from a file; starts anew if there is none.
fn kept(path: &Path) -> Result<AuditState, Failure> {
    match path.exists() {
        false => Ok(AuditState::default()),
        true => {
            AuditState::from_json(&files::read_text_within(path, MAX_AUDIT_STATE_BYTES)?).map_err(unusable)
        }
    }
}

/// Converts an error of a service that is audited over HTTP.
fn by_service(error: SourceError) -> Failure {
    match error {
        SourceError::Unavailable(why) => {
            Failure::new(Exit::TryAgain, "unreachable", "the audited service does not answer")
                .fact("because", why)
                .hint("tabellion help unreachable")
        }
        SourceError::Refused(why) => {
            Failure::new(Exit::Failure, "nonsense", "the audited service's answer cannot be used")
                .fact("because", why)
        }
        other => by_database(other),
    }
}

fn by_database(error: SourceError) -> Failure {
    failures::database(match error {
        SourceError::Unavailable(why) => store::StoreError::Unavailable(why),
        SourceError::Refused(why) => store::StoreError::Refused(why),
        SourceError::Damaged(why) => store::StoreError::Damaged(why),
        closed @ SourceError::Closed(_) => {
            return Failure::new(Exit::Refused, "closed", closed.to_string())
                .hint("name a token with --token-file");
        }
        SourceError::Untrusted(why) => {
            return Failure::new(
                Exit::NotVerified,
                "no-trust-anchors",
                "nothing vouches for this log's head",
            )
            .fact("because", why)
            .hint("tabellion trust add log --help");
        }
    })
}

/// The failure for unusable progress, `audit-state`. A log without the entries that were already audited was rolled
/// back, which is [`Exit::LogMisbehaviour`].
fn unusable(error: AuditStateError) -> Failure {
    let exit = match error {
        AuditStateError::Ahead { .. }
        | AuditStateError::AnotherHistory { .. }
        | AuditStateError::Policy { .. } => Exit::LogMisbehaviour,
        _ => Exit::Failure,
    };
    Failure::new(exit, "audit-state", "the audit cannot continue from its saved state")
        .fact("because", error.to_string())
        .why("move the file away to audit from the first entry")
}
