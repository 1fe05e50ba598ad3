//! Input files of verifiers: a file of another kind contains nothing to verify (exit code 4), while damaged evidence of
//! the right kind fails (exit code 3).
//!
//! The kind is determined by the beginning of a file, so that a truncated or modified file still counts as damaged
//! evidence.

use std::path::Path;

use bundle::{EvidenceBundle, MalformedBundle, starts_like_a_bundle};
use scitt::{Receipt, SignedStatement};

use crate::commands::statement;
use crate::console::{Exit, Failure, files, shell};

/// The first bytes of a tagged COSE_Sign1: tag 18, array of four.
pub const TAGGED_SIGN1: &[u8] = &[0xd2, 0x84];
/// The separator before the signatures of a signed note (C2SP signed-note).
const NOTE_SIGNATURE: &[u8] = "\n\n\u{2014} ".as_bytes();
/// The first bytes of a tlog-proof.
const TLOG_PROOF: &[u8] = b"c2sp.org/tlog-proof@";

/// Reads and parses a statement to verify.
pub fn statement(file: &Path) -> Result<SignedStatement, Failure> {
    parsed(file, statement_bytes(file)?)
}

/// Parses the bytes of a statement to verify, which were read from `file`.
pub fn parsed(file: &Path, bytes: Vec<u8>) -> Result<SignedStatement, Failure> {
    SignedStatement::parse(bytes).map_err(|error| {
        statement::malformed(&file.display().to_string(), &error).ending_with(Exit::VerificationFailed)
    })
}

/// Reads a file that begins like a statement.
pub fn statement_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    checked_statement(file, files::read(file)?)
}

/// Returns the bytes, which were read from `file`, if they begin like a statement.
pub fn checked_statement(file: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if !bytes.starts_with(TAGGED_SIGN1) {
        let failure = nothing("no-statement", format!("{} holds no statement", name(file)));
        return Err(match is_note(&bytes) {
            true => failure.hint(format!("tabellion checkpoint verify {}", shell::path(file))),
            false => failure,
        });
    }
    if Receipt::parse(bytes.clone()).is_ok() {
        return Err(nothing("no-statement", format!("{} is a receipt, and no statement", file.display()))
            .hint(format!("tabellion receipt verify {} --statement FILE", shell::path(file))));
    }
    Ok(bytes)
}

/// Reads a file that begins like a receipt.
pub fn receipt_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    read(file, "no-receipt", "receipt", |bytes| bytes.starts_with(TAGGED_SIGN1))
}

/// Reads a file that contains a signed note.
pub fn checkpoint_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    read(file, "no-checkpoint", "checkpoint", is_note)
}

/// Returns whether a file contains a signed note.
fn is_note(bytes: &[u8]) -> bool {
    bytes.windows(NOTE_SIGNATURE.len()).any(|at| at == NOTE_SIGNATURE)
}

/// Reads a file that begins like a tlog-proof.
pub fn tlog_proof_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    read(file, "no-tlog-proof", "tlog-proof", |bytes| bytes.starts_with(TLOG_PROOF))
}

/// Reads and parses an evidence bundle.
pub fn bundle(file: &Path) -> Result<EvidenceBundle, Failure> {
    let bytes = read(file, "no-bundle", "evidence bundle", starts_like_a_bundle)?;
    parsed_bundle(file, &bytes)
}

/// Parses the bytes of a bundle, which were read from `file`. A version that this program does not know cannot be
/// verified; everything else is damage.
pub fn parsed_bundle(file: &Path, bytes: &[u8]) -> Result<EvidenceBundle, Failure> {
    EvidenceBundle::parse(bytes).map_err(|error| {
        let exit = match error {
            MalformedBundle::Version(_) => Exit::NotVerified,
            _ => Exit::VerificationFailed,
        };
        Failure::new(
            exit,
            "malformed-bundle",
            format!("{} is not an evidence bundle of this version", name(file)),
        )
        .fact("found", error.to_string())
    })
}

/// Returns the exit code for a JSON file that cannot be parsed: damage if it begins with the character of its kind.
pub fn damaged_json(bytes: &[u8], begin: u8) -> Exit {
    match bytes.trim_ascii_start().first() {
        Some(first) if *first == begin => Exit::VerificationFailed,
        _ => Exit::NotVerified,
    }
}

fn read(file: &Path, code: &str, kind: &str, is_one: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, Failure> {
    let bytes = files::read(file)?;
    match is_one(&bytes) {
        true => Ok(bytes),
        false => Err(nothing(code, format!("{} holds no {kind}", name(file)))),
    }
}

fn nothing(code: &str, what: String) -> Failure {
    Failure::new(Exit::NotVerified, code, what)
}

fn name(file: &Path) -> String {
    if files::is_stream(file) { "standard input".into() } else { file.display().to_string() }
}
