//! Requests: an artifact, and the checks of one tier.
//!
//! The text must be strict JSON whose numbers all parsers read alike, because hashes are made of its canonical form.
//! Unknown members are refused: a check that is misspelt must not be left out.
//!
//! Not here: running the checks ([`check`](crate::check)).

pub mod artifact;
pub mod cases;
pub mod conditions;
pub mod generator;
pub mod obligation;
pub mod properties;
pub mod run_limits;
mod task;

use jose::json::{self, Limits};
use registration::vrf::is_did_or_urn;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Form, Members, RequestError, bounded, only};
use crate::limits::{REQUEST_BYTES, REQUEST_DEPTH, SUBJECT_BYTES};
use artifact::Artifact;
use cases::Case;
use conditions::Conditions;
use obligation::Obligation;
use properties::Property;
use run_limits::RunLimits;

/// The members of a request.
const MEMBERS: [&str; 11] = [
    "task",
    "tier",
    "subject",
    "artifact",
    "specification",
    "tests",
    "schema",
    "constraints",
    "properties",
    "obligation",
    "limits",
];

/// A request that can be run.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    document: Value,
    tier: u8,
    artifact: Artifact,
    criteria: Criteria,
    limits: RunLimits,
    hashes: Hashes,
}

/// The checks of one tier.
#[derive(Clone, Debug)]
pub enum Criteria {
    /// Tier 0: test cases.
    Tests(Vec<Case>),
    /// Tier 1: a schema and constraints.
    Conditions(Conditions),
    /// Tier 2: properties for generated inputs.
    Properties(Vec<Property>),
    /// Tier 3: a formula for two solvers.
    Obligation(Obligation),
}

/// The hashes of a request's parts (section 4.2.4, reading 16), each `sha256:` and hex digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Of the work: see [`Artifact::hash`].
    pub output: String,
    /// Of the canonical form of `specification`, if the request has one.
    pub specification: Option<String>,
    /// Of the canonical form of `tests`, `schema`, `properties` or `obligation`; of the object with `schema` and
    /// `constraints`, if there are constraints.
    pub tests: String,
}

impl CheckRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`RequestError`] with the place of the first violation.
    pub fn parse(bytes: &[u8]) -> Result<Self, RequestError> {
        let limits = Limits { bytes: REQUEST_BYTES, depth: REQUEST_DEPTH };
        Self::read(json::check(bytes, limits)?.unambiguous()?)
    }

    fn read(document: Value) -> Result<Self, RequestError> {
        let top = Members::of(&document, "")?;
        only(&top, &MEMBERS)?;
        top.required("tier")?;
        let tier = bounded(&top, "tier", 0..=3, 0)?;
        task::check(&top)?;
        check_subject(&top)?;
        let artifact = Artifact::read(&top.object("artifact")?)?;
        let limits = RunLimits::read(&top, tier)?;
        let criteria = Criteria::read(&top, tier, &artifact)?;
        let hashes = Hashes::of(&document, &artifact);
        let tier = u8::try_from(tier).map_err(|_| top.broken(Form, "tier", "a tier is 0 to 3"))?;
        Ok(Self { tier, artifact, criteria, limits, hashes, document })
    }

    /// Returns `sha256:` and the digest of the request's canonical form: two texts of the same request have the same.
    #[must_use]
    pub fn digest(&self) -> String {
        hash_of_json(&self.document)
    }

    /// Returns the tier, 0 to 3.
    #[must_use]
    pub fn tier(&self) -> u8 {
        self.tier
    }

    /// Returns the agent whose work is checked: a DID or URN.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.document.get("subject").and_then(Value::as_str)
    }

    /// Returns the task as it was submitted (section 4.2.2).
    #[must_use]
    pub fn task(&self) -> Option<&Value> {
        self.document.get("task")
    }

    /// Returns the work.
    #[must_use]
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// Returns the checks.
    #[must_use]
    pub fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    /// Returns the bounds of the runs.
    #[must_use]
    pub fn limits(&self) -> &RunLimits {
        &self.limits
    }

    /// Returns the hashes of the request's parts.
    #[must_use]
    pub fn hashes(&self) -> &Hashes {
        &self.hashes
    }
}

impl Criteria {
    fn read(top: &Members<'_>, tier: u64, artifact: &Artifact) -> Result<Self, RequestError> {
        refuse_other_tiers(top, tier)?;
        match tier {
            0 => cases::read(top, artifact).map(Self::Tests),
            1 => Conditions::read(top).map(Self::Conditions),
            2 => properties::read(top, artifact).map(Self::Properties),
            _ => Obligation::read(top).map(Self::Obligation),
        }
    }
}

/// Refuses the criteria of another tier: a request has the checks of exactly one.
fn refuse_other_tiers(top: &Members<'_>, tier: u64) -> Result<(), RequestError> {
    let criteria = [("tests", 0), ("schema", 1), ("constraints", 1), ("properties", 2), ("obligation", 3)];
    match criteria.iter().find(|(name, of)| top.has(name) && *of != tier) {
        None => Ok(()),
        Some((name, of)) => {
            let why = format!("these are checks of tier {of}, and the request is of tier {tier}");
            Err(top.broken(Form, name, why))
        }
    }
}

fn check_subject(top: &Members<'_>) -> Result<(), RequestError> {
    match top.optional_text("subject")? {
        Some(subject) if subject.len() > SUBJECT_BYTES || !is_did_or_urn(subject) => {
            let needed = format!("a DID or URN of at most {SUBJECT_BYTES} bytes");
            Err(top.unfit(Form, "subject", subject, &needed))
        }
        _ => Ok(()),
    }
}

impl Hashes {
    fn of(document: &Value, artifact: &Artifact) -> Self {
        Self {
            output: artifact.hash(),
            specification: document.get("specification").map(hash_of_json),
            tests: hash_of_json(&submitted_criteria(document)),
        }
    }
}

/// Returns the criteria as they were submitted.
fn submitted_criteria(document: &Value) -> Value {
    let has = |name: &&str| document.get(name).is_some();
    let names: Vec<&str> =
        ["tests", "schema", "constraints", "properties", "obligation"].into_iter().filter(has).collect();
    match names[..] {
        [only] if only != "constraints" => document[only].clone(),
        _ => names.into_iter().map(|name| (name.to_owned(), document[name].clone())).collect(),
    }
}

/// Returns the hash of a value's canonical form.
fn hash_of_json(value: &Value) -> String {
    hash_of_bytes(&jose::jcs::canonical(value))
}

/// Returns `sha256:` and the digest of bytes in lower-case hex.
pub(crate) fn hash_of_bytes(bytes: &[u8]) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)))
}
