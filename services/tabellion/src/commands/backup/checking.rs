//! `backup verify`: checks a file's contents, and its signing keys against the trusted ones, without a database or
//! network.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use archive::{ArchiveError, ArchiveSummary};
use clap::Args;
use data_encoding::HEXLOWER;
use merkle::TreeSize;
use scitt::CoseKey;
use scitt::key::KeyEnd;
use serde::Serialize;
use store::{HeadSignature, LogKey, SignatureKind};
use transparency::ArchiveFacts;
use verifier::TrustedLog;

use crate::commands::backup::writing::print_contents;
use crate::commands::serve::failures::database;
use crate::console::{Exit, Failure, files, members};
use crate::context::Context;
use crate::trust_file::TrustFile;

#[derive(Debug, Args)]
pub struct Verify {
    /// A file from `backup create` or `log export`
    file: PathBuf,
    /// A receipt key of the log: PEM, JWK, COSE_Key or did:key
    #[arg(long, value_name = "FILE", conflicts_with = "trust")]
    key: Option<PathBuf>,
    /// The trust file [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

impl Verify {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let summary = checked(context, &self.file, None)?;
        let signer = match &self.key {
            Some(key) => by_key(&summary, key)?,
            None => by_trust(&summary, &TrustFile::find(context, self.trust.as_deref())?),
        };
        print(context, &summary, signer)?;
        match signer {
            HeadSigner::Trusted => Ok(()),
            HeadSigner::Unknown => Err(Failure::already_printed(Exit::NotVerified)),
            HeadSigner::Other => Err(Failure::already_printed(Exit::VerificationFailed)),
        }
    }
}

/// Reads and checks a whole archive file. The summary includes the root at the size `wanted`.
pub fn checked(context: &Context, file: &Path, wanted: Option<TreeSize>) -> Result<ArchiveSummary, Failure> {
    let open = || File::open(file).map_err(|error| unreadable(file, ArchiveError::Io(error)));
    let origin = archive::origin_of(open()?).map_err(|error| unreadable(file, error))?;
    let facts = ArchiveFacts::of(&origin).map_err(database)?;
    let source = open()?;
    // The number of entries is known at the end of the file only.
    let bar = context.console.bytes_bar(source.metadata()?.len());
    let summary = archive::verify_wanting(bar.wrap_read(source), &facts, wanted, &|_| ());
    bar.finish_and_clear();
    summary.map_err(|error| unreadable(file, error))
}

/// Converts an `Unreadable` error of an archive.
pub fn unreadable(file: &Path, error: ArchiveError) -> Failure {
    let name = file.display().to_string();
    let (exit, code, what) = match &error {
        ArchiveError::Io(why) if why.kind() == io::ErrorKind::NotFound => {
            (Exit::NotFound, "file-not-found", format!("{name} is not there"))
        }
        ArchiveError::Io(_) => (Exit::Failure, "file-unreadable", format!("{name} cannot be read")),
        ArchiveError::NotAnArchive => {
            (Exit::NotVerified, "not-an-archive", format!("{name} is not an archive of a log"))
        }
        ArchiveError::Truncated { .. } | ArchiveError::Damaged { .. } => (
            Exit::VerificationFailed,
            "archive-damaged",
            format!("{name} differs from the archive that was written"),
        ),
        ArchiveError::Contradicts { .. } => {
            (Exit::VerificationFailed, "archive-contradicts", format!("{name} does not hold a log"))
        }
    };
    Failure::new(exit, code, what).fact("because", error.to_string()).why("no part of it is used")
}

/// The trust in the keys that signed the newest head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum HeadSigner {
    /// The keys are trusted for this log.
    Trusted,
    /// The trust file has no keys for this log.
    Unknown,
    /// The keys are not among those trusted for this log and this size.
    Other,
}

fn by_key(summary: &ArchiveSummary, file: &Path) -> Result<HeadSigner, Failure> {
    let key = scitt::key::read_key(&files::read_text(file)?).map_err(|error| {
        Failure::new(Exit::Failure, "key-unusable", format!("{} is not a public key", file.display()))
            .fact("because", error.to_string())
    })?;
    let signed =
        signing_keys(summary, SignatureKind::Receipt).filter_map(|it| CoseKey::parse(&it.public).ok());
    Ok(if signed.map(|it| it.key).any(|it| it == key.key) { HeadSigner::Trusted } else { HeadSigner::Other })
}

fn by_trust(summary: &ArchiveSummary, trust: &TrustFile) -> HeadSigner {
    let mut logs =
        trust.store.logs.iter().filter(|log| log.origin.as_ref() == Some(&summary.origin)).peekable();
    if logs.peek().is_none() {
        return HeadSigner::Unknown;
    }
    if logs.any(|log| signed_by(summary, log)) { HeadSigner::Trusted } else { HeadSigner::Other }
}

/// Returns whether a trusted receipt key signed, and a trusted checkpoint key, if the trust file has any. A key counts
/// only below the size from which on the trust file calls it retired or compromised.
fn signed_by(summary: &ArchiveSummary, log: &TrustedLog) -> bool {
    let has_ended = |end: &KeyEnd| end.size().is_some_and(|end| end <= summary.size.get());
    let receipt = signing_keys(summary, SignatureKind::Receipt)
        .filter_map(|key| CoseKey::parse(&key.public).ok())
        .any(|key| log.keys.iter().any(|trusted| trusted.key == key.key && !has_ended(&trusted.end)));
    let is_trusted = |key: &LogKey| {
        let is_key = |trusted: &String| trusted.as_bytes() == &key.public[..];
        let mut retired = log.retired_checkpoint_keys.iter();
        log.all_checkpoint_keys().any(is_key)
            && !retired.any(|retired| is_key(&retired.key) && has_ended(&retired.end))
    };
    let checkpoint = log.all_checkpoint_keys().next().is_none()
        || signing_keys(summary, SignatureKind::Checkpoint).any(is_trusted);
    receipt && checkpoint
}

/// Returns the keys whose signatures of this kind over the newest head were checked.
fn signing_keys(summary: &ArchiveSummary, kind: SignatureKind) -> impl Iterator<Item = &LogKey> {
    let by = move |key: &&LogKey| {
        let signed = |it: &HeadSignature| it.kind == kind && it.kid == key.kid;
        summary.signatures.iter().any(signed)
    };
    summary.keys.iter().filter(by)
}

fn print(context: &Context, summary: &ArchiveSummary, signer: HeadSigner) -> Result<(), Failure> {
    let ArchiveSummary { origin, batch, made_at, purpose, counts, .. } = summary;
    let (size, root) = (summary.size.get(), summary.root.to_string());
    let sha256 = HEXLOWER.encode(&summary.source.0);
    let json =
        members! { origin, size, root, batch, made_at, purpose, sha256, signer, #[serde(flatten)] counts };
    let signed = match signer {
        HeadSigner::Trusted => "a key that is trusted for this log\nverified (offline)",
        HeadSigner::Unknown => {
            "not checked: nothing here says whose keys those are (--trust, --key)\nnot verified"
        }
        HeadSigner::Other => "FAIL: not by a key that is trusted for this log and this size\nnot verified",
    };
    context.console.print(&json, |out| {
        print_contents(out, summary)?;
        writeln!(out, "whole  every digest, root and signature is right by the keys in the file")?;
        writeln!(out, "signer {signed}")
    })
}
