//! The map in ARCHITECTURE.md, as rules: arrows point inward, and the core is arithmetic.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{Member, Workspace};

/// Which of our crates a crate may know. Development dependencies are free, but for the cycle
/// that cargo itself refuses.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("decimal", &[]),
    ("durable", &[]),
    ("serving", &["operation-times", "span-export"]),
    ("span-export", &[]),
    ("independent-root", &[]),
    ("tabellion-merkle", &[]),
    ("tabellion-jose", &[]),
    ("tabellion-tlog", &["tabellion-merkle"]),
    ("tabellion-scitt", &["tabellion-jose", "tabellion-merkle"]),
    ("tabellion-lookup-tree", &["tabellion-merkle", "tabellion-scitt"]),
    (
        "index-audit",
        &["durable", "tabellion-lookup-tree", "tabellion-merkle", "registration", "tabellion-scitt"],
    ),
    ("search-terms", &["tabellion-jose", "tabellion-lookup-tree", "tabellion-scitt"]),
    ("archive", &["durable", "independent-root", "tabellion-merkle", "store"]),
    ("audit", &["independent-root", "tabellion-merkle", "registration", "tabellion-scitt", "store"]),
    ("bench", &["tabellion-jose", "tabellion-merkle", "registration", "roa", "tabellion-scitt", "store"]),
    ("conformance", &["display", "tabellion-scitt", "tabellion-verifier"]),
    ("content-rules", &["bundle", "registration", "tabellion-scitt", "tabellion-verifier"]),
    ("display", &["tabellion-scitt"]),
    ("explorer", &["display"]),
    ("expression", &[]),
    ("fault-injection", &[]),
    ("operation-times", &[]),
    ("schema", &["tabellion-jose"]),
    ("vap", &["decimal", "tabellion-jose", "tabellion-merkle", "tabellion-scitt"]),
    ("admission", &["decimal", "expression", "tabellion-jose", "tabellion-merkle", "tabellion-scitt", "vap"]),
    ("evidence", &["fault-injection", "operation-times", "tabellion-merkle"]),
    ("postgres", &[]),
    ("evidence-postgres", &["evidence", "postgres", "tabellion-merkle"]),
    ("sqlite", &["durable"]),
    ("evidence-sqlite", &["durable", "evidence", "tabellion-merkle", "sqlite"]),
    ("roa", &["decimal", "tabellion-jose", "tabellion-scitt"]),
    (
        "registration",
        &[
            "expression",
            "tabellion-jose",
            "tabellion-lookup-tree",
            "tabellion-merkle",
            "roa",
            "search-terms",
            "tabellion-scitt",
            "vap",
        ],
    ),
    (
        "tabellion-verifier",
        &["tabellion-lookup-tree", "tabellion-merkle", "tabellion-scitt", "tabellion-tlog"],
    ),
    ("bundle", &["tabellion-jose", "tabellion-merkle", "tabellion-tlog", "tabellion-verifier"]),
    (
        "search-evidence",
        &[
            "bundle",
            "tabellion-lookup-tree",
            "tabellion-merkle",
            "registration",
            "tabellion-scitt",
            "tabellion-tlog",
            "tabellion-verifier",
        ],
    ),
    (
        "browser-verifier",
        &["bundle", "content-rules", "tabellion-scitt", "tabellion-tlog", "tabellion-verifier"],
    ),
    (
        "sdk-core",
        &[
            "browser-verifier",
            "tabellion-jose",
            "tabellion-merkle",
            "registration",
            "roa",
            "tabellion-scitt",
            "search-evidence",
            "tabellion-tlog",
            "tabellion-verifier",
            "vap",
        ],
    ),
    ("sdk-python", &["sdk-core"]),
    ("vrf-evidence", &["registration", "tabellion-merkle", "tabellion-scitt", "tabellion-verifier"]),
    (
        "store",
        &[
            "fault-injection",
            "independent-root",
            "operation-times",
            "tabellion-lookup-tree",
            "tabellion-merkle",
        ],
    ),
    ("store-postgres", &["postgres", "tabellion-lookup-tree", "tabellion-merkle", "store"]),
    ("store-sqlite", &["durable", "tabellion-lookup-tree", "tabellion-merkle", "sqlite", "store"]),
    ("sequencer", &["durable", "tabellion-merkle", "store"]),
    ("client", &["tabellion-merkle", "tabellion-scitt", "tabellion-tlog", "tabellion-verifier"]),
    ("outbox", &["client", "tabellion-merkle", "tabellion-scitt", "tabellion-verifier"]),
    ("witness", &["durable", "tabellion-merkle", "serving", "span-export", "tabellion-tlog"]),
    ("verification-store", &["durable", "operation-times", "tabellion-merkle", "sqlite"]),
    (
        "verification",
        &[
            "checks",
            "client",
            "durable",
            "tabellion-jose",
            "operation-times",
            "outbox",
            "registration",
            "tabellion-scitt",
            "serving",
            "span-export",
            "verification-store",
            "tabellion-verifier",
        ],
    ),
    ("registry-server", &["tabellion-jose", "roa", "tabellion-scitt", "serving", "span-export"]),
    ("testkit", &["tabellion-jose", "tabellion-merkle", "registration", "roa", "tabellion-scitt", "vap"]),
    (
        "monitor",
        &[
            "audit",
            "client",
            "durable",
            "index-audit",
            "tabellion-lookup-tree",
            "tabellion-merkle",
            "registration",
            "tabellion-scitt",
            "search-evidence",
            "serving",
            "span-export",
            "store",
            "tabellion-tlog",
            "tabellion-verifier",
        ],
    ),
    (
        "gateway",
        &[
            "admission",
            "client",
            "decimal",
            "durable",
            "evidence",
            "evidence-postgres",
            "evidence-sqlite",
            "expression",
            "tabellion-jose",
            "tabellion-merkle",
            "outbox",
            "registration",
            "roa",
            "schema",
            "serving",
            "span-export",
            "tabellion-scitt",
            "tabellion-verifier",
            "vap",
        ],
    ),
    ("sandbox", &[]),
    ("checks", &["expression", "tabellion-jose", "registration", "sandbox", "schema"]),
    ("check-runner", &["checks", "tabellion-jose", "sandbox"]),
    ("translators", &["tabellion-jose", "registration"]),
    ("session-databases", &["sqlite", "translators"]),
    (
        "transparency",
        &[
            "archive",
            "bundle",
            "client",
            "display",
            "durable",
            "explorer",
            "index-audit",
            "tabellion-jose",
            "tabellion-lookup-tree",
            "tabellion-merkle",
            "registration",
            "tabellion-scitt",
            "sequencer",
            "serving",
            "span-export",
            "store",
            "store-postgres",
            "store-sqlite",
            "tabellion-tlog",
            "vap",
            "tabellion-verifier",
        ],
    ),
    (
        "tabellion",
        &[
            "admission",
            "archive",
            "audit",
            "bench",
            "bundle",
            "check-runner",
            "checks",
            "client",
            "conformance",
            "content-rules",
            "decimal",
            "display",
            "durable",
            "gateway",
            "tabellion-jose",
            "tabellion-merkle",
            "monitor",
            "registration",
            "registry-server",
            "roa",
            "sandbox",
            "tabellion-scitt",
            "search-evidence",
            "sequencer",
            "serving",
            "span-export",
            "session-databases",
            "store",
            "store-sqlite",
            "tabellion-tlog",
            "translators",
            "transparency",
            "verification",
            "verification-store",
            "tabellion-verifier",
            "witness",
            "vap",
            "vrf-evidence",
        ],
    ),
];

/// Crates that do no I/O and know no clock: time is an argument.
const PURE: &[&str] = &[
    "tabellion-merkle",
    "tabellion-jose",
    "tabellion-tlog",
    "tabellion-scitt",
    "tabellion-lookup-tree",
    "search-terms",
    "conformance",
    "content-rules",
    "decimal",
    "display",
    "explorer",
    "expression",
    "schema",
    "admission",
    "browser-verifier",
    "bundle",
    "roa",
    "registration",
    "sdk-core",
    "search-evidence",
    "tabellion-verifier",
    "translators",
    "vap",
    "vrf-evidence",
];

/// Crates that do no I/O and know no clock themselves, and depend on types of a crate that does.
const PURE_BUT_FOR_TYPES: &[&str] = &["checks"];

/// What a pure crate has no use for, itself or by what it depends on.
const IMPURE: &[&str] =
    &["async-std", "axum", "hyper", "mio", "reqwest", "rustix", "socket2", "sqlx", "tokio"];

/// How the standard library and jiff are asked for the time, the network, files and the surroundings.
const IMPURE_WORDS: &[&str] = &[
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
];

#[test]
fn arrows_point_inward() {
    let workspace = Workspace::read();
    for member in workspace.members.iter().filter(|member| !member.is_test()) {
        let (_, may_know) = MAY_KNOW
            .iter()
            .find(|(name, _)| *name == member.name)
            .unwrap_or_else(|| panic!("{} is not on the map: say what it may know", member.name));
        let known = workspace.members_among(&member.dependencies);
        for known in &known {
            assert!(may_know.contains(&known.as_str()), "{} may not know {known}: see the map", member.name);
        }
        let unused: Vec<_> = may_know.iter().filter(|allowed| !known.contains(**allowed)).collect();
        assert!(unused.is_empty(), "{} does not depend on {unused:?}: take them off the map", member.name);
    }
}

#[test]
fn the_core_depends_on_no_runtime_no_database_and_no_network() {
    let workspace = Workspace::read();
    for name in PURE {
        let known = workspace.everything_below(name);
        let impure: Vec<_> = IMPURE.iter().filter(|impure| known.contains(**impure)).collect();
        assert!(impure.is_empty(), "{name} depends on {impure:?}");
    }
}

#[test]
fn the_core_asks_for_no_time_no_files_and_no_network() {
    let workspace = Workspace::read();
    for name in PURE.iter().chain(PURE_BUT_FOR_TYPES) {
        for file in sources(&workspace.member(name).folder.join("src")) {
            let text = without_tests(&fs::read_to_string(&file).unwrap());
            for word in IMPURE_WORDS {
                assert!(!text.contains(word), "{} says {word}", file.display());
            }
        }
    }
}

#[test]
fn sql_is_in_the_stores_only() {
    expect_named_by(
        "sqlx",
        &[
            // Raw inserts, to compare with.
            "bench",
            "evidence-postgres",
            "evidence-sqlite",
            "postgres",
            "session-databases",
            "sqlite",
            "store-postgres",
            "store-sqlite",
            "verification-store",
        ],
    );
}

/// Conditions must not reach a clock, a network or the surroundings: the engine is built without its
/// parts that do, and one crate says what of the rest a condition may use.
#[test]
fn the_engine_of_conditions_is_known_to_one_crate_and_has_no_senses() {
    expect_named_by("regorus", &["expression"]);
    let root = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")).unwrap();
    let root: toml::Table = toml::from_str(&root).unwrap();
    let engine = &root["workspace"]["dependencies"]["regorus"];
    assert_eq!(engine["default-features"].as_bool(), Some(false), "the defaults are everything");
    for feature in engine["features"].as_array().unwrap() {
        let feature = feature.as_str().unwrap();
        assert!(["std", "arc", "ast", "semver"].contains(&feature), "regorus: who needs {feature}?");
    }
}

/// Schemas are a server's, and so hostile: what validates them can fetch nothing, and one crate bounds what it does.
#[test]
fn the_validator_of_schemas_is_known_to_one_crate_and_fetches_nothing() {
    expect_named_by("jsonschema", &["schema"]);
    let root = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")).unwrap();
    let root: toml::Table = toml::from_str(&root).unwrap();
    let validator = &root["workspace"]["dependencies"]["jsonschema"];
    assert_eq!(validator["default-features"].as_bool(), Some(false), "the defaults fetch");
    assert!(validator.get("features").is_none(), "jsonschema: who needs {:?}?", validator.get("features"));
}

/// The crates that decide something by JSON that a stranger wrote.
const DECIDING: &[&str] = &[
    "admission",
    "checks",
    "evidence",
    "expression",
    "gateway",
    "registration",
    "roa",
    "schema",
    "search-terms",
    "vap",
];

/// Where these crates may use `serde_json`'s own readers, and why.
const LENIENT_READERS: &[(&str, &str)] = &[
    ("crates/vap/src/message/members.rs", "parts of a message that was checked as a whole"),
    ("crates/vap/src/message/slot.rs", "members of a slot that was checked as a whole"),
    ("crates/expression/src/lib.rs", "the engine's own tree of an operator's condition"),
    ("crates/registration/src/conversation/json.rs", "one quoted text"),
    (
        "services/gateway/src/calls/list.rs",
        "which tools of a server's list are shown; nothing is allowed by it",
    ),
    ("services/gateway/src/config/amounts.rs", "whether a text of the configuration is a number"),
    ("services/gateway/src/frame.rs", "single texts of a message that was checked as a whole"),
    ("services/gateway/src/frame/id.rs", "one quoted text"),
    ("services/gateway/src/frame/reply.rs", "the name of a method"),
    ("services/gateway/src/upstream/text.rs", "what servers write, which is passed on as it is"),
];

/// `serde_json` reads members whose names begin with `$serde_json::private::` as another value, and takes the last of two
/// members of one name: a rule that reads a call so decides about another call than the one that runs.
#[test]
fn what_decides_reads_json_with_the_strict_reader_only() {
    let workspace = Workspace::read();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap();
    let mut used = BTreeSet::new();
    for name in DECIDING {
        for file in sources(&workspace.member(name).folder.join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            // A module of tests in the file is its last part; one in another file may be named anywhere.
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let readers = ["from_str", "from_slice", "from_reader", "Deserializer", "StreamDeserializer"];
            if !readers.iter().any(|reader| text.contains(&format!("serde_json::{reader}"))) {
                assert!(!text.contains("use serde_json::{from_"), "{}", file.display());
                continue;
            }
            let file = file.canonicalize().unwrap();
            let place = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let known = LENIENT_READERS.iter().any(|(known, _)| *known == place);
            assert!(
                known,
                "{place} reads JSON with serde_json: use jose::json, which refuses what readers differ about"
            );
            used.insert(place);
        }
    }
    let listed: BTreeSet<_> = LENIENT_READERS.iter().map(|(place, _)| (*place).to_owned()).collect();
    assert_eq!(used, listed, "a place that is listed and does not need it any more");
}

#[test]
fn http_is_at_the_edge_only() {
    for name in ["axum", "hyper", "reqwest"] {
        let edge = [
            // The echo server, to compare with.
            "bench",
            "client",
            "gateway",
            "monitor",
            "registry-server",
            "serving",
            "tabellion",
            "transparency",
            "verification",
            "witness",
        ];
        expect_named_by(name, &edge);
    }
}

#[test]
fn what_is_for_tests_stays_in_tests() {
    expect_named_by("testkit", &[]);
    expect_named_by("log-for-tests", &[]);
    let workspace = Workspace::read();
    for member in workspace.members.iter().filter(|member| !member.is_test()) {
        for (name, dependency) in member.tables(&["dependencies"]) {
            let features = dependency.get("features").map(ToString::to_string).unwrap_or_default();
            assert!(
                !features.contains("testing") && !features.contains("contract"),
                "{} turns on a feature of {name} that is for tests",
                member.name
            );
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for member in Workspace::read().members {
        let inherits = member.manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(
            inherits.and_then(toml::Value::as_bool),
            Some(true),
            "{}: [lints] workspace = true",
            member.name
        );
    }
}

#[test]
fn every_version_is_said_once() {
    for member in Workspace::read().members {
        for (name, dependency) in member.tables(&["dependencies", "dev-dependencies", "build-dependencies"]) {
            let inherits = dependency.get("workspace").and_then(toml::Value::as_bool) == Some(true);
            assert!(inherits, "{}: {name} has a version of its own: say it in the workspace", member.name);
        }
    }
}

#[test]
fn a_crate_that_can_be_published_says_what_a_registry_needs() {
    let members = Workspace::read().members;
    let (private, published): (Vec<&Member>, Vec<&Member>) =
        members.iter().partition(|member| member.manifest["package"].get("publish").is_some());
    assert!(published.iter().any(|member| member.name == "tabellion-merkle"));
    for member in published {
        let package = &member.manifest["package"];
        for setting in ["description", "license", "readme", "keywords", "categories"] {
            assert!(package.get(setting).is_some(), "{} has no {setting}", member.name);
        }
        assert!(member.folder.join("README.md").is_file(), "{} has no README.md", member.name);
        let needed = private.iter().find(|other| member.dependencies.contains(&other.name));
        assert!(needed.is_none(), "{} needs a crate that is not published", member.name);
    }
}

fn expect_named_by(name: &str, allowed: &[&str]) {
    for member in Workspace::read().members.iter().filter(|member| !member.is_test()) {
        let named = member.dependencies.contains(name);
        assert!(!named || allowed.contains(&member.name.as_str()), "{} may not know {name}", member.name);
    }
}

/// Every Rust file below a folder that is not a module of tests.
pub fn sources(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_stem().is_some_and(|stem| stem.to_str().is_some_and(|stem| stem.ends_with("tests"))) {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
    found
}

/// The tests of a module are its last part.
pub fn without_tests(text: &str) -> String {
    text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
}
