//! What verifiers are given: a file of another kind holds nothing to verify (exit 4), and one of the right kind in which
//! something is wrong fails (exit 3).
//!
//! The kind is told by how a file begins, so that one that was cut off or changed further on is still damaged evidence.

use std::path::Path;

use scitt::{Receipt, SignedStatement};

use crate::commands::statement::{self, beside};
use crate::console::{Exit, Failure, files};

/// How every tagged COSE_Sign1 begins: tag 18, array of four.
pub const TAGGED_SIGN1: &[u8] = &[0xd2, 0x84];
/// What stands before the first signature of a signed note (C2SP signed-note).
const NOTE_SIGNATURE: &[u8] = "\n\n\u{2014} ".as_bytes();
/// How every tlog-proof begins.
const TLOG_PROOF: &[u8] = b"c2sp.org/tlog-proof@";

/// Reads a statement that a command is about to verify.
pub fn statement(file: &Path) -> Result<SignedStatement, Failure> {
    SignedStatement::parse(statement_bytes(file)?).map_err(|error| {
        statement::malformed(&file.display().to_string(), &error).ending_with(Exit::VerificationFailed)
    })
}

/// Reads a file that begins as a statement does.
pub fn statement_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = files::read(file)?;
    if !bytes.starts_with(TAGGED_SIGN1) {
        return Err(no_statement(file));
    }
    if Receipt::parse(bytes.clone()).is_ok() {
        return Err(nothing("no-statement", format!("{} is a receipt, and no statement", file.display()))
            .hint(format!("tabellion receipt verify {} --statement FILE", file.display())));
    }
    Ok(bytes)
}

/// Reads a file that begins as a receipt does.
pub fn receipt_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    read(file, "no-receipt", "receipt", |bytes| bytes.starts_with(TAGGED_SIGN1))
}

/// Reads a signed note.
pub fn checkpoint_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let is_note = |bytes: &[u8]| bytes.windows(NOTE_SIGNATURE.len()).any(|at| at == NOTE_SIGNATURE);
    read(file, "no-checkpoint", "checkpoint", is_note)
}

/// Reads a file that begins as a tlog-proof does.
pub fn tlog_proof_bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    read(file, "no-tlog-proof", "tlog-proof", |bytes| bytes.starts_with(TLOG_PROOF))
}

fn read(file: &Path, code: &str, kind: &str, is_one: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, Failure> {
    let bytes = files::read(file)?;
    match is_one(&bytes) {
        true => Ok(bytes),
        false => Err(nothing(code, format!("{} holds no {kind}", name(file)))),
    }
}

/// The file may be the payload of a statement that lies beside it, as `register` and `statement sign` leave it.
fn no_statement(file: &Path) -> Failure {
    let failure = nothing("no-statement", format!("{} holds no statement", name(file)));
    let siblings = ["transparent.cose", "cose"].map(|ending| beside(file, ending));
    match siblings.iter().find(|sibling| sibling.exists()) {
        Some(sibling) => failure.fact("beside it", sibling.display().to_string()).hint(format!(
            "tabellion verify {} --payload {}",
            sibling.display(),
            file.display()
        )),
        None => failure,
    }
}

fn nothing(code: &str, what: String) -> Failure {
    Failure::new(Exit::NotVerified, code, what)
}

fn name(file: &Path) -> String {
    if files::is_stream(file) { "standard input".into() } else { file.display().to_string() }
}
