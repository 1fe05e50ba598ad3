//! The cases of `vectors/bundle`, from `vectors/sources/bundle`: the bundle of a session, and edits of it or of its
//! reader's trust.

use serde::Deserialize;
use serde_json::Value;
use testkit::vectors::{ByteEdit, DocumentEdit, read, root};
use verifier::TrustStore;

use crate::log::{TestLog, trust, witness_policy};

/// The possible outcomes; `malformed` if the bundle cannot be read. Each has a source.
pub const OUTCOMES: [&str; 4] = ["verified", "failed", "not-verified", "malformed"];

/// A bundle, a reader and the answer.
pub struct Case {
    pub name: String,
    pub why: String,
    /// One of [`OUTCOMES`].
    pub outcome: &'static str,
    /// The code of the reason; none if verified or malformed.
    pub reason: Option<String>,
    pub bundle: String,
    pub trust: TrustStore,
    pub witness_policy: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    case: Vec<CaseSource>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseSource {
    name: String,
    why: String,
    reason: Option<String>,
    /// Edits of the bundle.
    #[serde(default)]
    edit: Vec<DocumentEdit>,
    /// Edits of its text, after those of the bundle.
    #[serde(default)]
    text: Vec<ByteEdit>,
    /// Edits of the trust file.
    #[serde(default)]
    trust: Vec<DocumentEdit>,
}

/// Returns all cases.
pub fn all() -> Vec<Case> {
    let bundle: Value = serde_json::from_slice(&TestLog::new().bundle().to_bytes()).unwrap();
    let cases = OUTCOMES.into_iter().flat_map(|outcome| {
        let source: Source = read(&root().join("sources/bundle").join(format!("{outcome}.toml")));
        source.case.into_iter().map(move |case| (outcome, case))
    });
    cases.map(|(outcome, case)| made(outcome, case, bundle.clone())).collect()
}

fn made(outcome: &'static str, case: CaseSource, mut bundle: Value) -> Case {
    edit(&case.edit, &mut bundle);
    let text = jose::jcs::canonical(&bundle);
    let text = case.text.iter().fold(text, |text, edit| edit.apply(text));
    let mut trusted: Value = toml::from_str(&trust().to_toml()).unwrap();
    edit(&case.trust, &mut trusted);
    Case {
        name: case.name,
        why: case.why,
        outcome,
        reason: case.reason,
        bundle: String::from_utf8(text).unwrap(),
        trust: TrustStore::from_toml(&toml::to_string(&trusted).unwrap()).unwrap(),
        witness_policy: witness_policy(),
    }
}

fn edit(edits: &[DocumentEdit], document: &mut Value) {
    edits.iter().for_each(|edit| edit.apply(document, &|name| panic!("{name}: there is no such statement")));
}
