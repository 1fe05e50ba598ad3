//! The facts of an entry that watch lists use.

use audit::EntryEvidence;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use registration::entry_facts;
use registration::policy::essence;
use registration::vrf::{VRF_CBOR, VRF_JSON};
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Who;
use crate::evidence::{EntrySeen, Evidence};

/// An entry's facts for the watch lists.
pub struct WatchedFacts {
    /// The leaf index.
    pub leaf: u64,
    /// The entry ID, in hex.
    pub entry: String,
    /// The issuer: the `iss` claim.
    pub iss: String,
    /// The subject: the `sub` claim.
    pub sub: String,
    /// Agents in `agent` and `agent_id`; for a VRF receipt also its subject.
    pub agents: Vec<String>,
    /// ID of the signing key (`kid`), in hex.
    pub kid: Option<String>,
    /// The preceding receipt in the chain, in hex.
    pub previous: Option<String>,
    /// The position in the chain: `chain_position`.
    pub position: Option<u64>,
    /// The number in the stream: `seq`.
    pub number: Option<u64>,
    /// The verdict on the judged object.
    pub verdict: Option<String>,
    /// The judged object: its `output_hash` or `audit_ref`.
    pub judged: Option<String>,
    /// The kind of audit record; `None` for other entries.
    pub record: Option<StreamRecord>,
    /// Commit time reported by the log, in Unix seconds.
    pub at: Option<u64>,
    statement: Option<String>,
}

/// Kinds of audit records in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRecord {
    /// A decision other than `denied`: an outcome must follow.
    Decision,
    /// The outcome of the decision with this entry ID.
    Outcome(String),
    /// The record that closes the stream.
    Closed,
    /// Any other record.
    Other,
}

/// Leaf and ID of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryPosition {
    /// The leaf index.
    pub leaf: u64,
    /// The entry ID, in hex.
    pub entry: String,
}

impl StreamRecord {
    fn of(facts: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| facts.get(name).and_then(Value::as_str);
        Some(match (text("kind")?, text("decision")) {
            ("decision", _) if text("verdict") != Some("denied") => Self::Decision,
            ("outcome", Some(decision)) => Self::Outcome(decision.to_owned()),
            ("closed", _) => Self::Closed,
            _ => Self::Other,
        })
    }
}

impl WatchedFacts {
    /// Reads an entry; `None` if its statement was erased or malformed, or lacks `iss` or `sub`.
    pub fn of(row: &EntryEvidence) -> Option<Self> {
        let statement = SignedStatement::parse(row.statement.clone()?).ok()?;
        let facts = entry_facts(&statement, &row.facts);
        let text = |name: &str| facts.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| facts.get(name).and_then(Value::as_u64);
        let is_vrf =
            text("content_type").is_some_and(|name| [VRF_CBOR, VRF_JSON].contains(&&*essence(&name)));
        let verified = is_vrf.then(|| text("sub")).flatten();
        let judged = ["output_hash", "audit_ref"];
        let judged = judged.iter().find_map(|name| Some(format!("{name} {}", text(name)?)));
        Some(Self {
            leaf: row.index.get(),
            entry: row.digest.to_string(),
            iss: text("iss")?,
            sub: text("sub")?,
            agents: ["agent", "agent_id"].iter().filter_map(|name| text(name)).chain(verified).collect(),
            kid: statement.header().kid().map(|kid| HEXLOWER.encode(kid)),
            previous: text("previous"),
            position: number("chain_position"),
            number: number("seq"),
            record: number("seq").and_then(|_| StreamRecord::of(&facts)),
            verdict: text("verdict"),
            judged,
            at: row.at,
            statement: Some(BASE64URL_NOPAD.encode(statement.bytes())),
        })
    }

    /// Returns `true` if the entry concerns the watched party.
    pub fn concern(&self, who: &Who) -> bool {
        match who {
            Who::Issuer(name) => self.iss == *name,
            Who::Subject(name) => self.sub == *name,
            Who::Agent(name) => self.agents.contains(name),
        }
    }

    /// The entry and, if given, the entry that it conflicts with, as evidence.
    pub fn evidence(&self, other: Option<&EntryPosition>) -> Evidence {
        let other = other.map(|other| EntrySeen {
            index: Some(other.leaf),
            entry_id: other.entry.clone(),
            statement: None,
        });
        let own = EntrySeen {
            index: Some(self.leaf),
            entry_id: self.entry.clone(),
            statement: self.statement.clone(),
        };
        Evidence::Entries { checkpoint: None, entries: other.into_iter().chain([own]).collect() }
    }

    /// Leaf and ID of the entry.
    pub fn entry_position(&self) -> EntryPosition {
        EntryPosition { leaf: self.leaf, entry: self.entry.clone() }
    }
}
