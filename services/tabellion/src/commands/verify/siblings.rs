//! The files next to a file to verify, as `register` and `statement sign` name them: for the payload `FILE` the statement
//! `FILE.transparent.cose` or `FILE.cose`, and for a statement its `FILE.receipt` and payload.
//!
//! A file that is named in the arguments is used instead. Each file that is found is noted, so that a reader knows what was
//! verified.

use std::path::{Path, PathBuf};

use bundle::starts_like_a_bundle;
use scitt::SignedStatement;
use search_evidence::starts_like_an_answer;
use verifier::index::IndexAccusationFile;

use super::VerificationFiles;
use super::input::TAGGED_SIGN1;
use crate::console::{Failure, files};
use crate::context::Context;

/// The endings of statements next to their payload, the one with receipts first.
const STATEMENTS: [&str; 2] = ["transparent.cose", "cose"];

/// Reads the statement of `evidence`, and adds what is next to it. Returns the bytes of the statement, or those of the
/// named file if it is something else.
pub fn complete(context: &Context, evidence: &mut VerificationFiles) -> Result<Vec<u8>, Failure> {
    let named = files::read(&evidence.statement)?;
    let bytes = match statement_of(&evidence.statement, &named) {
        Some(statement) => {
            found(context, &statement);
            let payload = std::mem::replace(&mut evidence.statement, statement);
            evidence.payload.get_or_insert(payload);
            files::read(&evidence.statement)?
        }
        None => named,
    };
    let Ok(statement) = SignedStatement::parse(bytes.clone()) else { return Ok(bytes) };
    let Some(name) = name_of_payload(&evidence.statement) else { return Ok(bytes) };
    if statement.receipts().is_empty() && evidence.receipts.is_empty() && evidence.proof.is_none() {
        evidence.receipts.extend(existing(context, files::with_extension(&name, "receipt")));
    }
    let lacks_payload = statement.is_detached() || statement.header().hash_envelope().is_some();
    if lacks_payload && evidence.payload.is_none() {
        evidence.payload = existing(context, name);
    }
    Ok(bytes)
}

/// Returns the statement next to a payload. A file that is itself evidence is not a payload.
fn statement_of(file: &Path, bytes: &[u8]) -> Option<PathBuf> {
    if is_evidence(bytes) || files::is_stream(file) {
        return None;
    }
    STATEMENTS
        .into_iter()
        .map(|ending| files::with_extension(file, ending))
        .find(|statement| statement.is_file())
}

fn is_evidence(bytes: &[u8]) -> bool {
    bytes.starts_with(TAGGED_SIGN1)
        || starts_like_a_bundle(bytes)
        || starts_like_an_answer(bytes)
        || IndexAccusationFile::is_start_of(bytes)
}

/// Returns the name of a statement's file without its ending.
fn name_of_payload(statement: &Path) -> Option<PathBuf> {
    let name = statement.to_str().filter(|_| !files::is_stream(statement))?;
    STATEMENTS.into_iter().find_map(|ending| name.strip_suffix(&format!(".{ending}"))).map(PathBuf::from)
}

fn existing(context: &Context, file: PathBuf) -> Option<PathBuf> {
    let file = Some(file).filter(|file| file.is_file())?;
    found(context, &file);
    Some(file)
}

fn found(context: &Context, file: &Path) {
    context.console.note(format!("found      {}", file.display()));
}
