//! Comparison of a statement that is already signed with the terms in the flags.

use std::path::Path;

use scitt::{PublicKey, SignatureError, SignedStatement};

use crate::console::{Exit, Failure, shell};

/// The terms in the flags or of `--dev`. Absent terms are not compared.
#[derive(Clone, Copy, Default)]
pub(super) struct SigningTerms<'a> {
    pub key: Option<&'a PublicKey>,
    pub iss: Option<&'a str>,
    pub sub: Option<&'a str>,
    pub content_type: Option<&'a str>,
}

impl SigningTerms<'_> {
    /// Refuses a statement signed under other terms (`signed-otherwise`), because it would be registered instead of the
    /// requested one.
    pub(super) fn must_agree_with(&self, statement: &SignedStatement, source: &Path) -> Result<(), Failure> {
        let header = statement.header();
        let content_type = header
            .hash_envelope()
            .and_then(|envelope| envelope.preimage_content_type.as_ref())
            .or(header.content_type())
            .map(ToString::to_string);
        let differences: Vec<(&str, String)> = [
            self.key.filter(|key| !signed_by(statement, key)).map(|_| ("--key", "another key signed".into())),
            difference("--iss", self.iss, header.iss()),
            difference("--sub", self.sub, header.sub()),
            difference("--content-type", self.content_type, content_type.as_deref()),
        ]
        .into_iter()
        .flatten()
        .collect();
        if differences.is_empty() { Ok(()) } else { Err(signed_otherwise(source, differences)) }
    }
}

/// Returns whether the key signed the statement. The signature of a detached statement is left to the service, because
/// its payload is not available.
fn signed_by(statement: &SignedStatement, key: &PublicKey) -> bool {
    matches!(statement.verify_with(key, None), Ok(()) | Err(SignatureError::PayloadMissing))
}

fn difference(
    flag: &'static str,
    given: Option<&str>,
    signed: Option<&str>,
) -> Option<(&'static str, String)> {
    let given = given.filter(|given| signed != Some(given))?;
    let signed = signed.map_or("none".to_owned(), |signed| format!("{signed:?}"));
    Some((flag, format!("{given:?} is asked for, {signed} is signed")))
}

/// Returns the command that makes way for a new statement.
pub fn move_away(signed: &Path) -> String {
    let mut old = signed.as_os_str().to_owned();
    old.push(".old");
    format!("mv {} {}", shell::path(signed), shell::path(Path::new(&old)))
}

fn signed_otherwise(source: &Path, differences: Vec<(&str, String)>) -> Failure {
    let name = source.display();
    let failure = Failure::new(
        Exit::Exists,
        "signed-otherwise",
        format!("{name} is signed already, under other terms than those given"),
    )
    .hint(move_away(source));
    differences.into_iter().fold(failure, |failure, (flag, what)| failure.fact(flag, what))
}
