//! Cases of rules: statements that a log admits or refuses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};

use super::files::{VectorFamily, compare, entries, insert, read, root, rules, split, stem};
use super::statement::NamedStatements;

/// `<rule>.toml`: the cases of one rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleSource {
    case: Vec<toml::Table>,
}

/// One case without its statement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementCase {
    name: String,
    why: String,
    expected: String,
    options: Option<serde_json::Map<String, Value>>,
    at: Option<u64>,
    log: Option<Vec<toml::Value>>,
    /// Payload of this statement, disclosed after the registration of its digest.
    disclosed: Option<toml::Value>,
}

const CASE_MEMBERS: [&str; 7] = ["name", "why", "expected", "options", "at", "log", "disclosed"];

/// Asserts that the vectors of a family are, byte for byte, those that its sources describe.
///
/// `describe` returns the reading and the section of a rule. With `WRITE_VECTORS` set, the vectors are written first.
///
/// # Panics
/// Panics if a vector differs, if one has no source, or if a source has a mistake.
pub fn assert_match_sources(family: &str, describe: impl Fn(&str) -> Option<(&'static str, &'static str)>) {
    let folders = entries(&root().join(family)).into_iter().filter(|path| path.is_dir());
    let present: Vec<PathBuf> = folders.flat_map(|folder| entries(&folder)).collect();
    compare(&present, &make(&root(), family, describe));
}

/// Returns the text of every vector of a family by its path.
fn make(
    root: &Path,
    name: &str,
    describe: impl Fn(&str) -> Option<(&'static str, &'static str)>,
) -> BTreeMap<PathBuf, String> {
    let sources = root.join("sources").join(name);
    let family = VectorFamily::of(&sources);
    let statements = NamedStatements::new(&family.keys, &family.statement);
    let mut made = BTreeMap::new();
    for path in rules(&sources) {
        let rule = stem(&path);
        let (reading, section) = describe(&rule).unwrap_or_else(|| panic!("{path:?}: no such rule"));
        for table in read::<RuleSource>(&path).case {
            let (case, statement): (StatementCase, _) = split(table, &CASE_MEMBERS, &path);
            let context = format!("{}: {}", path.display(), case.name);
            let encode = |source: &toml::Value| HEXLOWER.encode(&statements.named(source, &context).message);
            let options = case.options.as_ref().unwrap_or(&family.options);
            let statement = statements.build(&family.base, statement, &context);
            let mut vector = json!({
                "rule": rule,
                "reading": reading,
                "section": section,
                "why": case.why,
                "expected": case.expected,
                "options": options,
                "statement": HEXLOWER.encode(&statement.message),
            });
            if let Some(at) = case.at.or(family.at) {
                vector["at"] = at.into();
            }
            if let Some(log) = case.log.as_ref().or(family.log.as_ref()) {
                vector["log"] = log.iter().map(encode).collect();
            }
            if let Some(disclosed) = &case.disclosed {
                vector["disclosed"] = HEXLOWER.encode(&statements.named(disclosed, &context).payload).into();
            }
            insert(&mut made, root.join(name).join(&rule).join(format!("{}.json", case.name)), &vector);
        }
    }
    made
}
