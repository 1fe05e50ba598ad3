//! `tabellion register`: signs files if needed, submits them, waits for receipts, verifies them, and stores the
//! results.
//!
//! A statement is written to disk before it is first sent, so a repeated run sends the same bytes and gets the same
//! entry. Files that already have a verified receipt of this log are skipped: a repeated run after a crash completes
//! only the rest. A statement signed earlier is sent only if it agrees with the current flags (`signed_before`).
//! Nothing is stored next to standard input, so only the result is kept. Many files are sent in batches (`batches`), if
//! the service supports them.

mod batches;
mod one_file;
mod signed_before;
mod work;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use indicatif::ProgressBar;
use scitt::{SignedStatement, Signer, SigningKey, transparent};
use serde::Serialize;
use verifier::TrustedLog;

use super::issuer::no_key;
use super::statement::{self, Form, Terms, media_type_of};
use super::verify::input::TAGGED_SIGN1;
use super::verify::now;
use crate::console::files::{self, Access, Existing, is_stream};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::dev_files::{DEV_ISSUER, DEV_KEY};
use crate::keyfile;
use crate::service::{Service, ServiceArgs};
use crate::trust_file::{self, TrustFile};
pub use one_file::StatementRegistration;
use signed_before::{SigningTerms, move_away};
use work::RegistrationWork;

/// Number of concurrent registrations: enough to fill the log's batches, too few to reach its rate limits.
const AT_ONCE: usize = 16;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion register --dev hello.json",
    mut_arg("timeout", |timeout| timeout.hide(true)),
    mut_arg("cacert", |cacert| cacert.hide(true))
)]
pub struct Register {
    /// Signed Statements, or other files to be signed first
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Use the key and trust file in ./tabellion-dev
    #[arg(long, conflicts_with_all = ["key", "iss"])]
    dev: bool,
    /// The issuer's key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The issuer [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// The subject [default: the file's name]
    #[arg(long, value_name = "TEXT")]
    sub: Option<String>,
    /// The media type [default: by file extension]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// The statement's detached payload
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "iss", "sub", "content_type"])]
    payload: Option<PathBuf>,
    /// The trust file; a new log's key is added to it
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// The output file [default: FILE.transparent.cose]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

/// The arguments of a command that registers a document of one kind.
#[derive(Debug, Args)]
pub struct DocumentArgs {
    /// The issuer's key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The issuer [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// The trust file; a new log's key is added to it
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Register {
    /// Registers a document with this subject and content type.
    pub fn document(file: PathBuf, sub: String, content_type: &str, args: DocumentArgs) -> Register {
        Register {
            files: vec![file],
            dev: false,
            key: Some(args.key),
            iss: args.iss,
            sub: Some(sub),
            content_type: Some(content_type.to_owned()),
            payload: None,
            trust: args.trust,
            output: None,
            service: args.service,
        }
    }

    /// Registers statements that are signed already.
    fn signed_files(trust: Option<PathBuf>, service: ServiceArgs) -> Register {
        Register {
            files: Vec::new(),
            dev: false,
            key: None,
            iss: None,
            sub: None,
            content_type: None,
            payload: None,
            trust,
            output: None,
            service,
        }
    }

    pub fn run(self, context: &Context) -> Result<(), Failure> {
        self.refuse_unclear_output()?;
        self.refuse_unclear_payload()?;
        let done = self.register(context)?;
        self.conclude(context, done)
    }

    /// Registers one file, and returns the result that is printed for it.
    pub fn register_one(self, context: &Context) -> Result<RegistrationSummary, Failure> {
        self.refuse_unclear_payload()?;
        let registered = self.register(context)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(RegistrationSummary { registered, failed: 0, many: false })
    }

    /// Registers the files, and returns a result for each.
    fn register(&self, context: &Context) -> Result<Vec<Result<RegistrationResult, Failure>>, Failure> {
        let service = self.service.connect(context)?;
        let trust = self.trusted_log(context, &service)?;
        let issuer = self.issuer()?;
        let bar = progress(context, self.files.len());
        let tell = |result: &Result<RegistrationResult, Failure>| self.tell(context, &bar, result);
        let work = RegistrationWork { flags: self, issuer: &issuer, client: &service.client, trust: &trust };
        let done = service.drive(async {
            match self.files.len() > AT_ONCE {
                true => work.in_batches(&self.files, &tell).await,
                false => work.one_by_one(&self.files, &tell).await,
            }
        });
        bar.finish_and_clear();
        Ok(done)
    }

    fn refuse_unclear_payload(&self) -> Result<(), Failure> {
        let wrong = |what| Err(Failure::new(Exit::Usage, "usage", what).hint("tabellion register --help"));
        match &self.payload {
            Some(_) if self.files.len() > 1 => wrong("--payload is for one statement, and there are more"),
            Some(payload) if is_stream(payload) && is_stream(&self.files[0]) => Err(Failure::new(
                Exit::Usage,
                "stdin-twice",
                "statement and payload cannot both come from standard input",
            )),
            _ => Ok(()),
        }
    }

    fn refuse_unclear_output(&self) -> Result<(), Failure> {
        let wrong = |what| Err(Failure::new(Exit::Usage, "usage", what).hint("tabellion register --help"));
        let stream = self.files.iter().any(|file| is_stream(file));
        match self.output.is_some() {
            true if self.files.len() > 1 => wrong("--output is for one file, and there are more"),
            false if stream => wrong("a statement from standard input needs --output FILE, or --output -"),
            _ => Ok(()),
        }
    }

    /// Returns the statement in the file, or the one signed for it by an earlier run, or signs one now and stores it
    /// before it is sent.
    fn message(&self, file: &Path, issuer: &IssuerIdentity) -> Result<RegistrationMessage, Failure> {
        let bytes = files::read(file)?;
        if is_statement(file, &bytes) {
            let (sent, _) = transparent::strip(&bytes).map_err(|error| malformed(file, &error))?;
            let message = RegistrationMessage::of(sent, file)?;
            self.given(issuer).must_agree_with(&message.statement, file)?;
            return message.with(self.payload.as_deref());
        }
        if self.payload.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "usage",
                format!("{} is not a statement: --payload goes with a detached one", file.display()),
            )
            .hint("tabellion statement sign --detached"));
        }
        let kept = (!is_stream(file)).then(|| files::with_extension(file, "cose"));
        if let Some(kept) = kept.as_deref().filter(|kept| kept.exists()) {
            let statement = statement::read(kept)?;
            if statement.payload() != Some(&bytes) {
                return Err(changed(file, kept));
            }
            self.given_to_sign(issuer).must_agree_with(&statement, kept)?;
            return RegistrationMessage::of(statement.bytes().clone(), kept);
        }
        let statement = self.sign(file, bytes, issuer)?;
        if let Some(kept) = kept {
            files::write(&kept, statement.bytes(), Access::Ordinary, Existing::Keep)?;
        }
        RegistrationMessage::of(statement.bytes().clone(), file)
    }

    /// Returns the terms in the flags. `--dev` does not constrain a statement that is already signed.
    fn given<'a>(&'a self, issuer: &'a IssuerIdentity) -> SigningTerms<'a> {
        let key = issuer.key.as_ref().filter(|_| !self.dev);
        SigningTerms {
            key: key.map(Signer::public_key),
            iss: self.iss.as_deref(),
            sub: self.sub.as_deref(),
            content_type: self.content_type.as_deref(),
        }
    }

    /// Returns the terms for a file that this command signs, or that an earlier run has signed.
    fn given_to_sign<'a>(&'a self, issuer: &'a IssuerIdentity) -> SigningTerms<'a> {
        let dev = issuer.key.as_ref().filter(|_| self.dev);
        let given = self.given(issuer);
        SigningTerms {
            key: given.key.or(dev.map(Signer::public_key)),
            iss: given.iss.or(dev.map(|_| DEV_ISSUER)),
            ..given
        }
    }

    fn sign(
        &self,
        file: &Path,
        payload: Vec<u8>,
        issuer: &IssuerIdentity,
    ) -> Result<SignedStatement, Failure> {
        let key = issuer.key.as_ref().ok_or_else(no_key)?;
        let name = statement::name_of(file);
        let content_type = self.content_type.as_deref().unwrap_or_else(|| media_type_of(file));
        let terms = Terms { iss: &issuer.iss, sub: self.sub.as_deref().unwrap_or(&name), content_type };
        statement::sign(key, payload, &terms, Form::Attached)
    }

    fn issuer(&self) -> Result<IssuerIdentity, Failure> {
        let dev = self.dev.then(|| PathBuf::from(DEV_KEY));
        let Some(path) = dev.as_ref().or(self.key.as_ref()) else {
            return Ok(IssuerIdentity { key: None, iss: String::new() });
        };
        let key = keyfile::read(path)?;
        let own_name = || Signer::public_key(&key).did_key();
        let iss = if self.dev { DEV_ISSUER.into() } else { self.iss.clone().unwrap_or_else(own_name) };
        Ok(IssuerIdentity { key: Some(key), iss })
    }

    /// Returns the trust file with this log only, because the receipts of other logs prove nothing about this one. An
    /// unknown log is pinned, with a note to the user.
    fn trusted_log(&self, context: &Context, service: &Service) -> Result<TrustFile, Failure> {
        let named = if self.dev { Some(Path::new(trust_file::DEV)) } else { self.trust.as_deref() };
        let mut trust = TrustFile::to_change(context, named)?;
        let log = super::trust::published(service, None)?;
        let iss = log.iss.clone();
        if !trust.store.logs.iter().any(|known| known.iss == iss) {
            pin(context, &mut trust, log)?;
        }
        trust.store.logs.retain(|known| known.iss == iss);
        Ok(trust)
    }

    fn tell(&self, context: &Context, bar: &ProgressBar, result: &Result<RegistrationResult, Failure>) {
        bar.inc(1);
        if self.files.len() > 1
            && let Err(failure) = result
        {
            bar.suspend(|| context.console.failure(failure));
        }
    }

    /// Reports the results. The failure of a single file is the command's failure. Of several files, each failure was
    /// printed when it happened, and the first one determines the exit code.
    fn conclude(
        &self,
        context: &Context,
        done: Vec<Result<RegistrationResult, Failure>>,
    ) -> Result<(), Failure> {
        let many = done.len() > 1;
        let (mut registered, mut failures) = (Vec::new(), Vec::new());
        for result in done {
            match result {
                Ok(done) => registered.push(done),
                Err(failure) => failures.push(failure),
            }
        }
        let summary = RegistrationSummary { registered, failed: failures.len(), many };
        if self.output.as_deref().is_some_and(is_stream) {
            summary.registered.iter().for_each(|done| context.console.note(done.place()));
        } else if many || failures.is_empty() {
            context.console.result(&summary)?;
        }
        match failures.into_iter().next() {
            None => Ok(()),
            Some(first) if many => Err(Failure::already_printed(first.exit)),
            Some(only) => Err(only),
        }
    }
}

/// A statement with the bytes to send, which include unprotected certificates, but not receipts.
struct RegistrationMessage {
    statement: SignedStatement,
    bytes: Bytes,
    /// The payload of a detached statement (`--payload`).
    payload: Option<Vec<u8>>,
}

impl RegistrationMessage {
    fn of(bytes: impl Into<Bytes>, source: &Path) -> Result<Self, Failure> {
        let bytes = bytes.into();
        let statement = statement::parse(bytes.clone(), &source.display().to_string())?;
        Ok(Self { statement, bytes, payload: None })
    }

    fn with(self, payload: Option<&Path>) -> Result<Self, Failure> {
        let Some(payload) = payload else { return Ok(self) };
        if !self.statement.is_detached() {
            let what = "the statement holds its payload: --payload goes with a detached one";
            return Err(Failure::new(Exit::Usage, "payload-twice", what));
        }
        Ok(Self { payload: Some(files::read(payload)?), ..self })
    }
}

struct IssuerIdentity {
    key: Option<SigningKey>,
    iss: String,
}

/// Returns whether a file is intended as a statement, well-formed or not: a malformed statement must not become the
/// payload of a new one.
fn is_statement(file: &Path, bytes: &[u8]) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("cose" | "scitt")) || bytes.starts_with(TAGGED_SIGN1)
}

/// Adds an unknown log to the trust file, with a note to the user.
fn pin(context: &Context, trust: &mut TrustFile, log: TrustedLog) -> Result<(), Failure> {
    context.console.note(format!(
        "pinned     {} for the first time, in {}: compare its kid with one from another source",
        safe(log.name()),
        trust.path.display()
    ));
    for key in &log.keys {
        context.console.note(format!("           kid {}", super::trust::kid_of(key)));
    }
    trust.store.put_log(log);
    trust.write()
}

fn malformed(file: &Path, error: &scitt::Malformed) -> Failure {
    statement::malformed(&file.display().to_string(), error)
}

fn changed(file: &Path, kept: &Path) -> Failure {
    Failure::new(
        Exit::Exists,
        "payload-changed",
        format!("{} was changed after it was signed", file.display()),
    )
    .fact("signed as", kept.display().to_string())
    .hint(move_away(kept))
}

/// Creates a progress bar without an estimate: files are answered in batches, so the first answers predict nothing.
fn progress(context: &Context, files: usize) -> ProgressBar {
    match files {
        0 | 1 => ProgressBar::hidden(),
        _ => context.console.files_bar(files),
    }
}

/// A registered file.
#[derive(Debug, Serialize)]
pub struct RegistrationResult {
    file: String,
    /// The entry ID.
    pub entry: String,
    leaf_index: Option<u64>,
    tree_size: Option<u64>,
    location: String,
    wrote: String,
    /// True if this run registered the statement, false if an earlier one did.
    fresh: bool,
    #[serde(skip)]
    took: Duration,
}

/// The result of `register`.
#[derive(Serialize)]
pub struct RegistrationSummary {
    registered: Vec<RegistrationResult>,
    failed: usize,
    #[serde(skip)]
    many: bool,
}

impl Report for RegistrationSummary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.registered.iter().try_for_each(|done| done.human(out))?;
        if !self.many {
            return Ok(());
        }
        let fresh = self.registered.iter().filter(|done| done.fresh).count();
        let earlier = self.registered.len() - fresh;
        writeln!(out, "{fresh} registered, {earlier} by an earlier run, {} failed", self.failed)
    }
}

impl RegistrationResult {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "registered {}\n           {}", safe(&self.place()), self.location)?;
        writeln!(out, "wrote      {}", safe(&self.wrote))
    }

    fn place(&self) -> String {
        let place = match (self.leaf_index, self.tree_size) {
            (Some(leaf), Some(size)) => format!("leaf {leaf} of {size}"),
            _ => "in the log".into(),
        };
        let how =
            if self.fresh { format!("in {} ms", self.took.as_millis()) } else { "by an earlier run".into() };
        let file = if self.file == "-" { "standard input" } else { &self.file };
        format!("{file} as {place} {how}")
    }
}
