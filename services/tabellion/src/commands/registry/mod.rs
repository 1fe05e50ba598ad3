//! `tabellion registry`: the Agent Identity Registry of AgentROA, a signed file.

mod add;
mod epoch;
mod publish;
mod serve;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use display::counted;
use durable::{FileAccess, Lock, LockError};
use jose::json::JsonError;
use roa::envelope::SchemaVersion;
use roa::registry::{
    DeltaList, Registry as VerifiedRegistry, RegistryDocument, RegistryError, RevocationDelta,
    RevocationEntry, RevokedSubject,
};
use roa::signed::{Signatures, Signed};
use roa::text::{AttestationId, EnvelopeId, Text};
use scitt::{PublicKey, Signer, SigningKey};
use serde::Serialize;

use super::agentroa::{now, usage};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::keyfile;

/// The longest time that an edit of a registry waits for another one.
const OTHER_EDIT: Duration = Duration::from_secs(30);

/// The name of the operator's key in the signatures of a registry.
const OPERATOR: &str = "operator";

const REVOKE: &str = "example:  tabellion registry revoke r.json --key op.pem --revoked-key stolen.pem";

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion registry show --registry r.json --registry-key op.pem")]
pub enum Registry {
    /// Make an empty registry
    #[command(before_help = "example:  tabellion registry init registry.json --id acme --key operator.pem")]
    Init(Init),
    /// Add a key, an agent, a server, a policy or a classification
    #[command(subcommand)]
    Add(add::Add),
    /// Revoke an envelope, an attestation or a key
    #[command(before_help = REVOKE)]
    Revoke(Revoke),
    /// Begin the next epoch, which may leave out old revocations
    #[command(before_help = "example:  tabellion registry epoch registry.json --key operator.pem")]
    Epoch(epoch::Epoch),
    /// Register the current version on a log
    #[command(
        before_help = "example:  tabellion registry publish registry.json --key k.pem --url https://log"
    )]
    Publish(publish::Publish),
    /// Serve the registry and its revocation deltas over HTTP
    #[command(before_help = "example:  tabellion registry serve r.json --registry-key op.pem")]
    Serve(serve::Serve),
    /// Verify a registry and print what it lists
    #[command(before_help = "example:  tabellion registry show --registry r.json --registry-key op.pem")]
    Show(Show),
}

impl Registry {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Init(init) => init.run(context),
            Self::Add(add) => add.run(context),
            Self::Revoke(revoke) => revoke.run(context),
            Self::Epoch(epoch) => epoch.run(context),
            Self::Publish(publish) => publish.run(context),
            Self::Serve(serve) => serve.run(context),
            Self::Show(show) => show.run(context),
        }
    }
}

#[derive(Debug, Args)]
pub struct Init {
    /// Where to write it
    file: PathBuf,
    /// The name of the registry
    #[arg(long)]
    id: Text,
    /// The operator's Ed25519 key, which signs every version
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// For how many seconds a version counts as current
    #[arg(long, default_value_t = 3600, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    ttl: u32,
}

impl Init {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let document = RegistryDocument {
            schema_version: SchemaVersion::V1,
            registry_id: self.id,
            epoch: 1,
            sequence: 0,
            issued_at: now(),
            ttl_seconds: self.ttl,
            keys: Vec::new(),
            agents: Vec::new(),
            servers: Vec::new(),
            policies: Vec::new(),
            classifications: Vec::new(),
            revocations: Vec::new(),
            signatures: Signatures::default(),
        };
        let key = keyfile::read(&self.key)?;
        write(context, &self.file, &document, &key, Existing::Keep)
    }
}

#[derive(Debug, Args)]
pub struct Revoke {
    /// The registry; its next version replaces it
    file: PathBuf,
    /// The operator's key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    deltas: DeltaFile,
}

/// The file of deltas that a revocation is appended to.
#[derive(Debug, Args)]
pub struct DeltaFile {
    /// Also append the delta to this list, for gateways that have the version before
    #[arg(long, value_name = "FILE")]
    deltas: Option<PathBuf>,
}

/// The object of a revocation.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Subject {
    /// A root envelope
    #[arg(long, value_name = "ID")]
    envelope: Option<EnvelopeId>,
    /// An attestation
    #[arg(long, value_name = "ID")]
    attestation: Option<AttestationId>,
    /// A signing key: a key file or a did:key
    #[arg(long, value_name = "KEY")]
    revoked_key: Option<String>,
}

impl Revoke {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let Subject { envelope, attestation, revoked_key } = self.subject;
        let key = revoked_key.map(|key| keyfile::read_public(&key)).transpose()?;
        let thumbprint =
            key.map(|key| key.jwk_thumbprint().parse()).transpose().map_err(|error| usage(&error))?;
        let subject = envelope
            .map(RevokedSubject::Envelope)
            .or(attestation.map(RevokedSubject::Attestation))
            .or(thumbprint.map(RevokedSubject::Key));
        let mut edit = RegistryEdit::open(&self.file, &self.key)?;
        subject.into_iter().for_each(|subject| edit.revoke(subject));
        edit.write_revocation(context, &self.deltas)
    }
}

/// A registry and the keys of its operators.
#[derive(Debug, Args)]
pub struct RegistryArgs {
    /// The registry
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// A key of its operator: a file or a did:key; may be given more than once
    #[arg(long, value_name = "KEY", required = true)]
    registry_key: Vec<String>,
}

impl RegistryArgs {
    /// Reads the registry and verifies its signatures.
    pub fn open(&self) -> Result<VerifiedRegistry, Failure> {
        let operators = operator_keys(&self.registry_key)?;
        VerifiedRegistry::open(&read(&self.registry)?, &operators)
            .map_err(|error| refused(&self.registry, &error))
    }
}

#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    registry: RegistryArgs,
}

impl Show {
    fn run(self, context: &Context) -> Result<(), Failure> {
        context.console.result(&RegistrySummary::of(self.registry.open()?.document()))
    }
}

/// A registry that is edited: each write is the next version. Until then, other edits of the file wait: the version of one
/// that had read the same file would lack this one's changes.
pub struct RegistryEdit {
    _lock: Option<Lock>,
    file: PathBuf,
    key: SigningKey,
    document: RegistryDocument,
}

impl RegistryEdit {
    /// Reads a registry, which the operator must have signed.
    pub fn open(file: &Path, key: &Path) -> Result<RegistryEdit, Failure> {
        let key = keyfile::read(key)?;
        let lock = lock(file)?;
        let signed = read(file)?;
        if VerifiedRegistry::open(&signed, &[key.public_key().clone()]).is_err() {
            let what = format!("{} is not signed with this key", file.display());
            return Err(Failure::new(Exit::VerificationFailed, "registry-signature", what)
                .why("the next version must be signed by the operator of the one before it"));
        }
        let mut document = signed.document().clone();
        document.sequence += 1;
        document.issued_at = now();
        Ok(RegistryEdit { _lock: lock, file: file.to_owned(), key, document })
    }

    /// Adds a revocation.
    pub fn revoke(&mut self, subject: RevokedSubject) {
        let (sequence, revoked_at) = (self.document.sequence, self.document.issued_at);
        self.document.revocations.push(RevocationEntry { sequence, revoked_at, subject });
    }

    /// Signs the next version, and replaces the file; then appends the delta to the list, if there is one. A list that
    /// lacks a delta, after a crash between the two, makes its readers read the whole registry.
    pub fn write_revocation(self, context: &Context, deltas: &DeltaFile) -> Result<(), Failure> {
        let Some(file) = &deltas.deltas else { return self.write(context) };
        let mut list = read_deltas(file)?;
        list.push(self.delta()?).map_err(|error| {
            Failure::new(
                Exit::Failure,
                "not-deltas",
                format!("the delta does not go into {}", file.display()),
            )
            .fact("because", error.to_string())
        })?;
        self.write(context)?;
        files::write(file, &list.canonical(), Access::Ordinary, Existing::Replace)?;
        context.console.note(format!("wrote      {}", file.display()));
        Ok(())
    }

    /// Signs the revocations of the next version as a delta to the one before it.
    fn delta(&self) -> Result<Signed<RevocationDelta>, Failure> {
        let document = &self.document;
        let is_new = |entry: &&RevocationEntry| entry.sequence == document.sequence;
        let delta = RevocationDelta {
            schema_version: SchemaVersion::V1,
            registry_id: document.registry_id.clone(),
            epoch: document.epoch,
            previous_sequence: document.sequence - 1,
            sequence: document.sequence,
            issued_at: document.issued_at,
            revocations: document.revocations.iter().filter(is_new).cloned().collect(),
            signatures: Signatures::default(),
        };
        let signers: [(&str, &dyn Signer); 1] = [(OPERATOR, &self.key)];
        Signed::sign(&delta, &signers).map_err(keyfile::cannot_sign)
    }

    /// Signs the next version, and replaces the file.
    pub fn write(&self, context: &Context) -> Result<(), Failure> {
        write(context, &self.file, &self.document, &self.key, Existing::Replace)
    }
}

/// Takes the lock `FILE.lock`. `None` if there is no such registry to edit, or it is standard input.
fn lock(file: &Path) -> Result<Option<Lock>, Failure> {
    if files::is_stream(file) || !file.exists() {
        return Ok(None);
    }
    let lock = files::with_extension(file, "lock");
    let taken = Lock::wait(&lock, FileAccess::Public, OTHER_EDIT);
    taken.map(Some).map_err(|error| match error {
        LockError::Taken => Failure::new(Exit::TryAgain, "try-again", "another process edits the registry")
            .fact("registry", file.display().to_string()),
        LockError::Io(error) => files::unwritable(&lock, &error),
    })
}

fn read(file: &Path) -> Result<Signed<RegistryDocument>, Failure> {
    Signed::parse(&files::read(file)?).map_err(|error| not_a_registry(file, &error))
}

/// Returns the failure for a file that is not a registry.
pub fn not_a_registry(file: &Path, error: &JsonError) -> Failure {
    let what = format!("{} is not a registry", file.display());
    misshapen(Failure::new(Exit::Failure, "not-a-registry", what), error)
}

/// Reads a list of deltas. A file that does not exist yet is an empty list.
fn read_deltas(file: &Path) -> Result<DeltaList, Failure> {
    if !file.exists() {
        return Ok(DeltaList::default());
    }
    DeltaList::parse(&files::read(file)?).map_err(|error| not_deltas(file, &error))
}

/// Returns the failure for a file that is not a list of deltas.
fn not_deltas(file: &Path, error: &JsonError) -> Failure {
    let what = format!("{} is not a list of revocation deltas", file.display());
    misshapen(Failure::new(Exit::Failure, "not-deltas", what), error)
}

fn misshapen(failure: Failure, error: &JsonError) -> Failure {
    failure.fact("where", error.pointer.clone()).fact("found", error.to_string())
}

/// Returns the failure for a registry, or deltas, that the operators did not sign or that are no later version.
pub fn refused(file: &Path, error: &RegistryError) -> Failure {
    let code = match error {
        RegistryError::Signature => "registry-signature",
        _ => "registry-version",
    };
    Failure::new(Exit::VerificationFailed, code, format!("{}: {error}", file.display()))
}

/// Reads the keys of a registry's operators.
pub fn operator_keys(keys: &[String]) -> Result<Vec<PublicKey>, Failure> {
    keys.iter().map(|key| keyfile::read_public(key)).collect()
}

fn write(
    context: &Context,
    file: &Path,
    document: &RegistryDocument,
    key: &SigningKey,
    existing: Existing,
) -> Result<(), Failure> {
    let signers: [(&str, &dyn Signer); 1] = [(OPERATOR, key)];
    let signed = Signed::<RegistryDocument>::sign(document, &signers).map_err(keyfile::cannot_sign)?;
    files::write(file, signed.canonical(), Access::Ordinary, existing)?;
    context.console.note(format!("wrote      {}", file.display()));
    context.console.result(&RegistrySummary::of(document))
}

/// The contents of a registry in short.
#[derive(Serialize)]
struct RegistrySummary {
    registry_id: String,
    epoch: u64,
    sequence: u64,
    issued_at: String,
    keys: Vec<String>,
    agents: usize,
    servers: usize,
    policies: Vec<String>,
    revocations: usize,
}

impl RegistrySummary {
    fn of(document: &RegistryDocument) -> RegistrySummary {
        let role = |role| serde_json::to_value(role).ok().and_then(|role| role.as_str().map(str::to_owned));
        let key =
            |key: &roa::registry::KeyEntry| format!("{} {}", role(key.role).unwrap_or_default(), key.signer);
        RegistrySummary {
            registry_id: document.registry_id.to_string(),
            epoch: document.epoch,
            sequence: document.sequence,
            issued_at: document.issued_at.into(),
            keys: document.keys.iter().map(key).collect(),
            agents: document.agents.len(),
            servers: document.servers.len(),
            policies: document.policies.iter().map(|policy| policy.policy_id.to_string()).collect(),
            revocations: document.revocations.len(),
        }
    }
}

impl Report for RegistrySummary {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "registry   {}", safe(&self.registry_id))?;
        writeln!(out, "version    {}.{} of {}", self.epoch, self.sequence, safe(&self.issued_at))?;
        for key in &self.keys {
            writeln!(out, "key        {}", safe(key))?;
        }
        for policy in &self.policies {
            writeln!(out, "policy     {}", safe(policy))?;
        }
        let Self { agents, servers, revocations, .. } = self;
        let counts = [
            counted(*agents, "agent", "agents"),
            counted(*servers, "server", "servers"),
            counted(*revocations, "revocation", "revocations"),
        ];
        writeln!(out, "entries    {}", counts.join(", "))
    }
}
