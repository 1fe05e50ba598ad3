//! What the vectors of all families have in common: where they are, the log they are decided in, and what they owe.
//!
//! A vector is one file, `vectors/<family>/<rule>/<name>.json`. The files are the contract, readable by any
//! implementation; `testkit::vectors` makes them from `vectors/sources`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use merkle::LeafIndex;
use registration::conversation::ConversationRule;
use registration::{
    Answers, NotPermitted, Permit, Policy, PolicyInForce, Questions, Record, SideData, Violation,
};
use scitt::SignedStatement;
use serde_json::Value;

/// Vectors by their path.
type Files = BTreeMap<PathBuf, Value>;

/// Name, reading and section of a rule.
type RuleRow = (&'static str, &'static str, &'static str);

fn folder(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(family)
}

/// Every vector of these families.
fn files(families: &[&str]) -> Files {
    let inside = |path: PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let rules = families.iter().flat_map(|family| inside(folder(family))).filter(|path| path.is_dir());
    let read = |path: PathBuf| {
        let text = std::fs::read(&path).unwrap();
        let vector = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        (path, vector)
    };
    rules.flat_map(inside).map(read).collect()
}

/// Bytes of a vector, which stand there in hexadecimal.
pub fn bytes(hex: &Value) -> Vec<u8> {
    HEXLOWER.decode(hex.as_str().unwrap().as_bytes()).unwrap()
}

/// A statement of a vector.
pub fn statement(hex: &Value) -> SignedStatement {
    SignedStatement::parse(bytes(hex)).unwrap()
}

/// The tests' policy after a change to the rules of its types.
pub fn policy(change: impl Fn(&str, &mut toml::Table)) -> Policy {
    policy_of(|_| true, change)
}

/// The same with only some of its types.
pub fn policy_of(keep: impl Fn(&str) -> bool, change: impl Fn(&str, &mut toml::Table)) -> Policy {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    let types = document["type"].as_array_mut().unwrap();
    types.retain(|rule| keep(rule["content_type"].as_str().unwrap()));
    for rule in types {
        let rule = rule.as_table_mut().unwrap();
        let content_type = rule["content_type"].as_str().unwrap().to_owned();
        change(&content_type, rule);
    }
    Policy::from_toml(&document.to_string()).unwrap()
}

/// A log in memory, as small as a vector needs: leaf 0 is its policy.
pub struct Log {
    in_force: PolicyInForce,
    permits: Vec<Permit>,
}

impl Log {
    /// A log under this policy that holds what the vector says it does.
    pub fn of(vector: &Value, policy: Policy) -> Log {
        let mut log = Log { in_force: PolicyInForce::new(policy, LeafIndex::new(0)), permits: Vec::new() };
        for earlier in vector["log"].as_array().into_iter().flatten() {
            let permit = log.register(&statement(earlier), None, vector["at"].as_u64());
            log.permits.push(permit.unwrap_or_else(|why| panic!("what the log holds was refused: {why}")));
        }
        log
    }

    /// Decides on the vector's statement.
    pub fn decide(&self, vector: &Value) -> Result<Permit, Violation> {
        let payload = vector.get("payload").map(bytes);
        self.register(&statement(&vector["statement"]), payload.as_deref(), vector["at"].as_u64())
    }

    /// Decides, and compares with what the log holds, as a sequencer would.
    fn register(
        &self,
        statement: &SignedStatement,
        payload: Option<&[u8]>,
        at: Option<u64>,
    ) -> Result<Permit, Violation> {
        let beside = SideData { payload, x5chain: None };
        let authenticated =
            self.in_force.authenticate(statement, beside).map_err(|error| error.violation())?;
        let record = Record::read(&authenticated)?;
        let log = self.answer(&self.in_force.questions(&authenticated, &record));
        let permit = match self.in_force.decide(&authenticated, &record, &log).into_permit() {
            Ok(permit) => permit,
            Err(NotPermitted::Refused(refusal)) => return Err(refusal.violation),
            Err(NotPermitted::Undecided(undecided)) => panic!("{undecided}"),
        };
        if let Some(refusal) = at.and_then(|at| permit.refusal_at(at)) {
            return Err(refusal.violation);
        }
        for guard in permit.guards() {
            if let Some((leaf, _)) = self.leaves().find(|(_, earlier)| earlier.guards().contains(guard)) {
                return Err(permit.refusal_for_guard(guard.as_bytes(), leaf).violation);
            }
        }
        Ok(permit)
    }

    fn answer(&self, asked: &Questions) -> Answers {
        let mut answers = Answers::none();
        for (leaf, permit) in self.leaves() {
            if asked.digests.contains(&permit.statement()) {
                answers.put_entry(permit.statement(), leaf);
            }
            for guard in asked.guards.iter().filter(|guard| permit.guards().contains(guard)) {
                answers.put_guard(guard.clone(), leaf);
            }
        }
        answers
    }

    fn leaves(&self) -> impl Iterator<Item = (LeafIndex, &Permit)> {
        (1..).map(LeafIndex::new).zip(&self.permits)
    }
}

/// Every vector is admitted, or refused by the rule it names and no other.
pub fn must_fare_as_they_say(families: &[&str], register: impl Fn(&Value) -> Result<Permit, Violation>) {
    for (path, vector) in files(families) {
        let told = register(&vector);
        match vector["expected"].as_str().unwrap() {
            "admit" => assert!(told.is_ok(), "{path:?}: {told:?}"),
            "refuse" => {
                let violation = told.map(|_| ()).expect_err(&format!("{path:?} was admitted"));
                let rule = vector["rule"].as_str().unwrap();
                assert_eq!(violation.rule.as_str(), rule, "{path:?}: {violation}");
                assert!(!vector["why"].as_str().unwrap().is_empty(), "{path:?} does not say why");
            }
            other => panic!("{path:?}: {other}"),
        }
    }
}

/// Every rule has vectors that it admits and vectors that it refuses.
pub fn must_show_every_rule(families: &[&str], rules: &[RuleRow]) {
    let text = |vector: &Value, member: &str| vector[member].as_str().unwrap().to_owned();
    let found: BTreeSet<(String, String)> =
        files(families).values().map(|vector| (text(vector, "rule"), text(vector, "expected"))).collect();
    for (rule, ..) in rules {
        for expected in ["admit", "refuse"] {
            let has = found.contains(&((*rule).to_owned(), expected.to_owned()));
            assert!(has || is_too_large(rule, expected), "{rule} has none to {expected}");
        }
    }
}

/// A record of a million values is too large for a file: `tests/conversation_hostile.rs` makes one.
fn is_too_large(rule: &str, expected: &str) -> bool {
    rule == ConversationRule::Items.name() && expected == "refuse"
}

/// The files are those that `vectors/sources` describes.
pub fn must_match_their_sources(families: &[&str], rules: &[RuleRow]) {
    for family in families {
        testkit::vectors::assert_match_sources(family, |wanted| {
            let (_, reading, section) = rules.iter().find(|(name, ..)| *name == wanted)?;
            Some((reading, section))
        });
    }
}
