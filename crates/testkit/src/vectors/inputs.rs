//! Cases of inputs, whose outcome the test computes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::document::DocumentEdit;
use super::files::{VectorFamily, compare, entries, insert, read, root, rules, split, stem};
use super::statement::NamedStatements;

/// `<kind>.toml` of a family whose vectors are an input and an outcome.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindSource {
    /// Members of the input that a case takes over.
    #[serde(default)]
    input: toml::Table,
    case: Vec<toml::Table>,
}

/// One case without its input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputCase {
    name: String,
    reading: Option<String>,
    why: String,
    /// `accept`, or the reason of the refusal.
    expected: Option<String>,
    /// Edits of the whole input.
    #[serde(default)]
    edit: Vec<DocumentEdit>,
}

const INPUT_CASE_MEMBERS: [&str; 5] = ["name", "reading", "why", "expected", "edit"];

/// Asserts that the vectors of a family are, byte for byte, the inputs that its sources describe with their outcomes.
///
/// `outcome` returns what comes of an input of a kind, or the reason why nothing does; it must be the `expected` one.
/// With `WRITE_VECTORS` set, the vectors are written first.
///
/// # Panics
/// Panics if a vector differs, if one has no source, if an outcome is not the expected one, or if a source has a
/// mistake.
pub fn assert_inputs_match_sources(family: &str, outcome: impl Fn(&str, &Value) -> Result<Value, String>) {
    assert_kinds_match_sources(family, |kind, expected, mut vector| {
        let outcome = outcome(kind, &vector);
        let reached = outcome.as_ref().map_or_else(String::as_str, |_| "accept");
        assert_eq!(Some(reached), expected, "{vector:#}");
        vector["expected"] = match outcome {
            Ok(result) => json!({ "accept": result }),
            Err(reason) => json!({ "refuse": reason }),
        };
        vector
    });
}

/// Asserts that the vectors of a family are, byte for byte, the inputs that its sources describe, completed.
///
/// `complete` returns the vector of an input of a kind whose source expects this outcome. With `WRITE_VECTORS` set, the
/// vectors are written first.
///
/// # Panics
/// Panics if a vector differs, if one has no source, or if a source has a mistake.
pub fn assert_kinds_match_sources(family: &str, complete: impl Fn(&str, Option<&str>, Value) -> Value) {
    for kind in kinds(family) {
        assert_kind_matches_source(family, &kind, |expected, vector| complete(&kind, expected, vector));
    }
}

/// Asserts that the vectors of one kind are, byte for byte, the inputs that its source describes, completed.
///
/// `complete` returns the vector of an input whose source expects this outcome. With `WRITE_VECTORS` set, the vectors
/// are written first.
///
/// # Panics
/// Panics if a vector differs, if one has no source, or if a source has a mistake.
pub fn assert_kind_matches_source(family: &str, kind: &str, complete: impl Fn(Option<&str>, Value) -> Value) {
    let sources = root().join("sources").join(family);
    let shared = VectorFamily::of(&sources);
    let statements = NamedStatements::new(&shared.keys, &shared.statement);
    let path = sources.join(format!("{kind}.toml"));
    let folder = root().join(family).join(kind);
    let mut made = BTreeMap::new();
    let KindSource { input, case } = read(&path);
    for table in case {
        let (case, own): (InputCase, _) = split(table, &INPUT_CASE_MEMBERS, &path);
        let context = format!("{}: {}", path.display(), case.name);
        let mut whole = input.clone();
        whole.extend(own);
        let mut vector: Value =
            whole.iter().map(|(name, value)| (name.clone(), statements.input(value, &context))).collect();
        let digest = |name: &str| panic!("{context}: {name} has no digest");
        case.edit.iter().for_each(|edit| edit.apply(&mut vector, &digest));
        vector["why"] = case.why.into();
        if let Some(reading) = case.reading {
            vector["reading"] = reading.into();
        }
        let vector = complete(case.expected.as_deref(), vector);
        insert(&mut made, folder.join(format!("{}.json", case.name)), &vector);
    }
    let present = if folder.is_dir() { entries(&folder) } else { Vec::new() };
    compare(&present, &made);
}

/// Returns the kinds of a family, which are the names of its sources.
fn kinds(family: &str) -> Vec<String> {
    rules(&root().join("sources").join(family)).iter().map(|path| stem(path)).collect()
}
