//! `tabellion register`: sign where needed, send, wait, verify, and keep what came back.
//!
//! The statement is on disk before it is first sent, so a rerun sends the same bytes and gets the same entry. What has a
//! verified receipt beside it already is left alone: running again after a crash does only what is missing.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use client::{Client, Registered};
use futures::stream::{self, StreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use scitt::{SignedStatement, SigningKey, transparent};
use serde::Serialize;

use super::issuer::no_key;
use super::statement::{self, Form, Terms, beside, media_type_of};
use super::verify::now;
use crate::cli::Context;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::keyfile;
use crate::service::{Service, ServiceArgs};
use crate::trust_file::{self, TrustFile};

/// Registrations under way at once: enough to fill the log's batches, too few to trip its doors.
const AT_ONCE: usize = 16;
/// Where `serve --dev` keeps the key of the issuer it trusts, and that issuer's name.
pub const DEV_KEY: &str = "tabellion-dev/issuer.key";
pub const DEV_ISSUER: &str = "https://dev.issuer.example";

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion register --dev hello.json")]
pub struct Register {
    /// Signed Statements as they are, or other files to be signed first
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Use the key, issuer and trust file that `serve --dev` made in ./tabellion-dev
    #[arg(long, conflicts_with_all = ["key", "iss"])]
    dev: bool,
    /// The issuer's key, for files to be signed
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Who says it: a URL or DID; the key's did:key unless given
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// What they are about; each file's name unless given
    #[arg(long, value_name = "TEXT")]
    sub: Option<String>,
    /// Their media type; by each file's ending unless given
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Whom to believe; a log met for the first time is pinned here
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Register {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let service = self.service.connect(context)?;
        let trust = self.trusted_log(context, &service)?;
        let issuer = self.issuer()?;
        let bar = progress(context, self.files.len());
        let jobs = self.files.iter().map(|file| self.one(file, &issuer, &service.client, &trust));
        let done = service.drive(
            stream::iter(jobs)
                .buffered(AT_ONCE)
                .inspect(|result| self.tell(context, &bar, result))
                .collect::<Vec<_>>(),
        );
        bar.finish_and_clear();
        conclude(context, done)
    }

    async fn one(
        &self,
        file: &Path,
        issuer: &Issuer,
        client: &Client,
        trust: &TrustFile,
    ) -> Result<Done, Failure> {
        let started = Instant::now();
        let statement = self.statement(file, issuer)?;
        let receipt_file = beside(file, "receipt");
        let (registered, fresh) = match kept(&receipt_file, &statement, trust) {
            Some(verdict) => (verdict, false),
            None => {
                let Registered { receipt, verdict, .. } =
                    client.register(&statement, &trust.store, now()).await?;
                files::write(&receipt_file, &receipt, Access::Ordinary, Existing::Replace)?;
                (verdict, true)
            }
        };
        let transparent_file = beside(file, "transparent.cose");
        let receipt = files::read(&receipt_file)?;
        let whole = transparent::attach(statement.bytes(), &[receipt])
            .map_err(|error| Failure::new(Exit::Failure, "malformed", error.to_string()))?;
        files::write(&transparent_file, &whole, Access::Ordinary, Existing::Replace)?;
        let position = registered.receipts.first().and_then(|receipt| receipt.position);
        Ok(Done {
            file: file.display().to_string(),
            entry: statement.digest().to_string(),
            leaf_index: position.map(|position| position.leaf_index.get()),
            tree_size: position.map(|position| position.tree_size.get()),
            location: format!("{}entries/{}", client.base(), statement.digest()),
            wrote: transparent_file.display().to_string(),
            fresh,
            took: started.elapsed(),
        })
    }

    /// The statement in the file, the one signed for it before, or one signed now and kept before it is sent.
    fn statement(&self, file: &Path, issuer: &Issuer) -> Result<SignedStatement, Failure> {
        let bytes = files::read(file)?;
        if let Ok(statement) = SignedStatement::parse(bytes.clone()) {
            return Ok(statement);
        }
        let kept = beside(file, "cose");
        if kept.exists() {
            let statement = statement::read(&kept)?;
            return if statement.payload() == Some(&bytes) {
                Ok(statement)
            } else {
                Err(changed(file, &kept))
            };
        }
        let statement = self.sign(file, bytes, issuer)?;
        files::write(&kept, statement.bytes(), Access::Ordinary, Existing::Keep)?;
        Ok(statement)
    }

    fn sign(&self, file: &Path, payload: Vec<u8>, issuer: &Issuer) -> Result<SignedStatement, Failure> {
        let key = issuer.key.as_ref().ok_or_else(no_key)?;
        let name = file.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy().into_owned());
        let content_type = self.content_type.as_deref().unwrap_or_else(|| media_type_of(file));
        let terms = Terms { iss: &issuer.iss, sub: self.sub.as_deref().unwrap_or(&name), content_type };
        statement::sign(key, payload, &terms, Form::Attached)
    }

    fn issuer(&self) -> Result<Issuer, Failure> {
        let dev = self.dev.then(|| PathBuf::from(DEV_KEY));
        let Some(path) = dev.as_ref().or(self.key.as_ref()) else {
            return Ok(Issuer { key: None, iss: String::new() });
        };
        let key = keyfile::read(path)?;
        let own_name = || scitt::Signer::public_key(&key).did_key();
        let iss = if self.dev { DEV_ISSUER.into() } else { self.iss.clone().unwrap_or_else(own_name) };
        Ok(Issuer { key: Some(key), iss })
    }

    /// The trust file, with this log in it: one met for the first time is pinned, and that is said.
    fn trusted_log(&self, context: &Context, service: &Service) -> Result<TrustFile, Failure> {
        let named = if self.dev { Some(Path::new(trust_file::DEV)) } else { self.trust.as_deref() };
        let mut trust = TrustFile::to_change(context, named)?;
        let log = super::trust::published(service, None)?;
        if trust.store.logs.iter().any(|known| known.iss == log.iss) {
            return Ok(trust);
        }
        context.console.note(format!(
            "pinned     {} for the first time, in {}: compare its kid with one from another source",
            safe(log.name()),
            trust.path.display()
        ));
        for key in &log.keys {
            context.console.note(format!("           kid {}", super::trust::kid_of(key)));
        }
        trust.store.put_log(log);
        trust.write()?;
        Ok(trust)
    }

    fn tell(&self, context: &Context, bar: &ProgressBar, result: &Result<Done, Failure>) {
        bar.inc(1);
        if self.files.len() > 1
            && let Err(failure) = result
        {
            bar.suspend(|| context.console.failure(failure));
        }
    }
}

struct Issuer {
    key: Option<SigningKey>,
    iss: String,
}

/// The verdict on the receipt that an earlier run left, if it still holds.
fn kept(receipt: &Path, statement: &SignedStatement, trust: &TrustFile) -> Option<verifier::Verdict> {
    let bytes = receipt.exists().then(|| files::read(receipt).ok()).flatten()?;
    let verdict = verifier::verify_receipt(statement, &bytes, &trust.store, now());
    verdict.is_verified().then_some(verdict)
}

fn changed(file: &Path, kept: &Path) -> Failure {
    Failure::new(
        Exit::Exists,
        "payload-changed",
        format!("{} was changed after it was signed", file.display()),
    )
    .fact("signed as", kept.display().to_string())
    .hint(format!("mv {} {}.old", kept.display(), kept.display()))
}

fn progress(context: &Context, files: usize) -> ProgressBar {
    if files < 2 || !context.console.draws_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}  {per_sec}  {eta} left");
    ProgressBar::new(files as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn conclude(context: &Context, done: Vec<Result<Done, Failure>>) -> Result<(), Failure> {
    let single = done.len() == 1;
    let (mut registered, mut failures) = (Vec::new(), Vec::new());
    for result in done {
        match result {
            Ok(done) => registered.push(done),
            Err(failure) => failures.push(failure),
        }
    }
    let failed = failures.len();
    if !registered.is_empty() {
        context.console.result(&Summary { registered, failed })?;
    }
    match failures.into_iter().next() {
        None => Ok(()),
        Some(only) if single => Err(only),
        Some(first) => Err(Failure::told(first.exit)),
    }
}

#[derive(Debug, Serialize)]
struct Done {
    file: String,
    entry: String,
    leaf_index: Option<u64>,
    tree_size: Option<u64>,
    location: String,
    wrote: String,
    /// Registered by this run, not an earlier one.
    fresh: bool,
    #[serde(skip)]
    took: Duration,
}

#[derive(Serialize)]
struct Summary {
    registered: Vec<Done>,
    failed: usize,
}

impl Report for Summary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.registered.iter().try_for_each(|done| done.human(out))?;
        match self.failed {
            0 => Ok(()),
            failed => writeln!(out, "{} registered, {failed} failed", self.registered.len()),
        }
    }
}

impl Done {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let place = match (self.leaf_index, self.tree_size) {
            (Some(leaf), Some(size)) => format!("leaf {leaf} of {size}"),
            _ => "in the log".into(),
        };
        let how =
            if self.fresh { format!("in {} ms", self.took.as_millis()) } else { "by an earlier run".into() };
        writeln!(out, "registered {} as {place} {how}\n           {}", safe(&self.file), self.location)?;
        writeln!(out, "wrote      {}", safe(&self.wrote))
    }
}
