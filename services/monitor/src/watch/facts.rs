//! What watch lists read of an entry.

use audit::Evidence as Row;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use registration::policy::essence;
use registration::vrf::{VRF_CBOR, VRF_JSON};
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Who;
use crate::evidence::{EntrySeen, Evidence};

/// An entry, as far as lists ask about it.
pub struct Facts {
    /// Its leaf.
    pub leaf: u64,
    /// Its ID.
    pub entry: String,
    /// `iss`.
    pub iss: String,
    /// `sub`.
    pub sub: String,
    /// The agents that it names.
    pub agents: Vec<String>,
    /// The key that signed it, hex.
    pub kid: Option<String>,
    /// The receipt that it follows, hex.
    pub previous: Option<String>,
    /// Its position in its chain.
    pub position: Option<u64>,
    /// Its number in its stream.
    pub number: Option<u64>,
    /// What it says of what it judged.
    pub verdict: Option<String>,
    /// What it judged.
    pub judged: Option<String>,
    /// What it adds to its stream, if it is an audit record.
    pub record: Option<Record>,
    /// When it was committed, if the log tells.
    pub at: Option<u64>,
    statement: Option<String>,
}

/// What an audit record adds to its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A decision that lets a call pass, or asks back: an outcome must follow.
    Decision,
    /// What came of the decision with this entry ID.
    Outcome(String),
    /// The end of the stream.
    Closed,
    /// Anything else.
    Other,
}

/// Where an entry stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its leaf.
    pub leaf: u64,
    /// Its ID.
    pub entry: String,
}

impl Record {
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

impl Facts {
    /// Reads an entry; `None` if its statement is gone, or none.
    pub fn of(row: &Row) -> Option<Self> {
        let statement = SignedStatement::parse(row.statement.clone()?).ok()?;
        let facts: Map<String, Value> = serde_json::from_str(&row.facts).ok()?;
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
            record: number("seq").and_then(|_| Record::of(&facts)),
            verdict: text("verdict"),
            judged,
            at: row.at,
            statement: Some(BASE64URL_NOPAD.encode(statement.bytes())),
        })
    }

    /// Whether a list is about it.
    pub fn concern(&self, who: &Who) -> bool {
        match who {
            Who::Issuer(name) => self.iss == *name,
            Who::Subject(name) => self.sub == *name,
            Who::Agent(name) => self.agents.contains(name),
        }
    }

    /// The entry itself, and the one that it goes against.
    pub fn evidence(&self, other: Option<&Place>) -> Evidence {
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

    /// Where it stands.
    pub fn place(&self) -> Place {
        Place { leaf: self.leaf, entry: self.entry.clone() }
    }
}
