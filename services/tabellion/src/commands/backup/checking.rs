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
            HeadSigner::Ended => Err(Failure::already_printed(Exit::VerificationFailed)),
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

/// The trust in the keys that signed the newest head, as in the verification of a receipt: a key that is not known decides
/// nothing, and one that had ended is wrong. The better one is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum HeadSigner {
    /// The keys are trusted for this log.
    Trusted,
    /// The keys are known for this log, and the log had replaced one of them at this size, or it was compromised.
    Ended,
    /// The trusted keys of this log, if there are any, are others.
    Unknown,
}

fn by_key(summary: &ArchiveSummary, file: &Path) -> Result<HeadSigner, Failure> {
    let key = scitt::key::read_key(&files::read_text(file)?).map_err(|error| {
        Failure::new(Exit::Failure, "key-unusable", format!("{} is not a public key", file.display()))
            .fact("because", error.to_string())
    })?;
    let signed =
        signing_keys(summary, SignatureKind::Receipt).filter_map(|it| CoseKey::parse(&it.public).ok());
    let is_trusted = signed.map(|it| it.key).any(|it| it == key.key);
    Ok(if is_trusted { HeadSigner::Trusted } else { HeadSigner::Unknown })
}

fn by_trust(summary: &ArchiveSummary, trust: &TrustFile) -> HeadSigner {
    let logs = trust.store.logs.iter().filter(|log| log.origin.as_ref() == Some(&summary.origin));
    logs.map(|log| by_keys_of(summary, log)).min().unwrap_or(HeadSigner::Unknown)
}

/// Returns the trust in a receipt key that signed, and in a checkpoint key, if the trust file has any.
fn by_keys_of(summary: &ArchiveSummary, log: &TrustedLog) -> HeadSigner {
    match (by_receipt_key(summary, log), by_checkpoint_key(summary, log)) {
        (HeadSigner::Ended, _) | (_, HeadSigner::Ended) => HeadSigner::Ended,
        (HeadSigner::Trusted, HeadSigner::Trusted) => HeadSigner::Trusted,
        _ => HeadSigner::Unknown,
    }
}

fn by_receipt_key(summary: &ArchiveSummary, log: &TrustedLog) -> HeadSigner {
    let signed =
        signing_keys(summary, SignatureKind::Receipt).filter_map(|key| CoseKey::parse(&key.public).ok());
    by_known(signed.flat_map(move |key| {
        let known = log.keys.iter().filter(move |trusted| trusted.key == key.key);
        known.map(move |trusted| has_ended(&trusted.end, summary))
    }))
}

fn by_checkpoint_key(summary: &ArchiveSummary, log: &TrustedLog) -> HeadSigner {
    if log.all_checkpoint_keys().next().is_none() {
        return HeadSigner::Trusted;
    }
    let is_key = |trusted: &str, key: &LogKey| trusted.as_bytes() == &key.public[..];
    let is_known = |key: &&LogKey| log.all_checkpoint_keys().any(|trusted| is_key(trusted, key));
    let known = signing_keys(summary, SignatureKind::Checkpoint).filter(is_known);
    by_known(known.map(|key| {
        let mut retired = log.retired_checkpoint_keys.iter().filter(|retired| is_key(&retired.key, key));
        retired.any(|retired| has_ended(&retired.end, summary))
    }))
}

/// Returns the trust in known keys that signed, each with whether it had ended: one that had not suffices.
fn by_known(ended: impl Iterator<Item = bool>) -> HeadSigner {
    let signers = ended.map(|ended| if ended { HeadSigner::Ended } else { HeadSigner::Trusted });
    signers.min().unwrap_or(HeadSigner::Unknown)
}

/// Returns true if the trust file calls a key retired or compromised from this size, or a smaller one, on.
fn has_ended(end: &KeyEnd, summary: &ArchiveSummary) -> bool {
    end.size().is_some_and(|end| end <= summary.size.get())
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
            "not checked: neither --key nor the trust file has the keys of this log that signed it\n\
             not verified"
        }
        HeadSigner::Ended => {
            "FAIL: by a key that the log had replaced at this size, or that was compromised\nnot verified"
        }
    };
    context.console.print(&json, |out| {
        print_contents(out, summary)?;
        writeln!(out, "whole  every digest, root and signature is right by the keys in the file")?;
        writeln!(out, "signer {signed}")
    })
}
