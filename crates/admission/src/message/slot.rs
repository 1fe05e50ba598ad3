//! Where messages ride (readings V-4, V-6, X-1): `params._meta.vap`, or the same under our own key.
//!
//! The draft puts the message itself there, the reference puts `{scope_commitment | intent | amendment: message}`: both are
//! read, and answered in the same shape. One request carries one message, on a request that can carry it.
//!
//! What cannot be read is still answered: [`Unreadable`] says for which session, in which shape, and why (reading X-2).

use std::collections::BTreeMap;

use jose::json::{self, Checked, Limits};
use serde_json::Value;
use serde_json::value::RawValue;

use super::read::is_reserved;
use super::{Message, MessageType};
use crate::digest::{Canon, Digest};
use crate::exact;
use crate::limits::MAX_SESSION_ID;
use crate::reason::Reason;

/// The draft's key in `_meta`.
pub const VAP_KEY: &str = "vap";
/// Our own.
pub const OWN_KEY: &str = "dev.tabellion/vap";

/// The request that a message rides on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// `initialize`.
    Initialize,
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    ToolsList,
    /// `ping`.
    Ping,
    /// `vap/amend`, which is never forwarded.
    Amend,
    /// `tools/call`.
    ToolsCall,
}

/// Whether the message stands in its slot by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// It does, as in the draft.
    #[default]
    Flat,
    /// Under a name, as in the reference.
    Nested,
}

/// Under which key of `_meta` the message came, and the Verdict goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Key {
    /// The draft's.
    #[default]
    Vap,
    /// Ours.
    Own,
    /// Both, with one content.
    Both,
}

/// A message that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The message.
    pub message: Message,
    /// Its shape.
    pub shape: Shape,
    /// Its key.
    pub key: Key,
    /// Its text, as it came.
    pub text: String,
    /// Its digest, signature included: what a Verdict's `req` says (reading V-25).
    pub digest: Digest,
    /// Whether the digest is over the text as it came (reading V-22).
    pub canon_raw: bool,
}

/// A message that was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The session it names, if that is a usable name.
    pub session_id: Option<String>,
    /// What it was to be.
    pub in_response_to: MessageType,
    /// Its shape.
    pub shape: Shape,
    /// Its key.
    pub key: Key,
    /// The digest of the slot's text, as it came.
    pub digest: Digest,
    /// The code.
    pub reason: Reason,
    /// In words, for the sender and the audit store.
    pub what: String,
}

/// Reads what a request carries: the texts under the two keys.
pub fn read(
    vap: Option<&str>,
    alias: Option<&str>,
    carrier: Carrier,
) -> Result<Option<Received>, Box<Unreadable>> {
    let (text, key) = match (vap, alias) {
        (None, None) => return Ok(None),
        (Some(text), None) => (text, Key::Vap),
        (None, Some(text)) => (text, Key::Own),
        (Some(text), Some(_)) => (text, Key::Both),
    };
    let slot = Slot::open(text, key, carrier)?;
    match alias {
        Some(other) if !exact::equal(text, other) => {
            Err(slot.unreadable(Reason::TwoMessages, "two different messages under the two keys"))
        }
        _ => slot.received().map(Some),
    }
}

impl Carrier {
    /// Which messages ride on it. What it stands for if it cannot be told comes first.
    pub const fn carries(self) -> &'static [MessageType] {
        match self {
            Carrier::Initialize => &[MessageType::ScopeCommitment],
            Carrier::Discover | Carrier::ToolsList => {
                &[MessageType::ScopeCommitment, MessageType::ScopeAmendment]
            }
            Carrier::Ping | Carrier::Amend => &[MessageType::ScopeAmendment],
            Carrier::ToolsCall => &[MessageType::IntentCall],
        }
    }

    /// The carrier of a method's name.
    pub fn of_method(method: &str) -> Option<Carrier> {
        Some(match method {
            "initialize" => Carrier::Initialize,
            "server/discover" => Carrier::Discover,
            "tools/list" => Carrier::ToolsList,
            "ping" => Carrier::Ping,
            "vap/amend" => Carrier::Amend,
            "tools/call" => Carrier::ToolsCall,
            _ => return None,
        })
    }
}

impl Shape {
    /// A Verdict's text in this shape.
    pub fn dress(self, verdict: &str) -> String {
        match self {
            Shape::Flat => verdict.to_owned(),
            Shape::Nested => format!("{{\"verdict\":{verdict}}}"),
        }
    }
}

impl Key {
    /// The keys of `_meta` that it stands for.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Key::Vap => &[VAP_KEY],
            Key::Own => &[OWN_KEY],
            Key::Both => &[VAP_KEY, OWN_KEY],
        }
    }
}

/// A slot whose text was looked at far enough to say what it holds.
struct Slot<'a> {
    text: &'a str,
    key: Key,
    carrier: Carrier,
    shape: Shape,
    /// The message, and what the reference's name for it says it is.
    message: &'a str,
    named: Option<MessageType>,
}

impl<'a> Slot<'a> {
    fn open(text: &'a str, key: Key, carrier: Carrier) -> Result<Slot<'a>, Box<Unreadable>> {
        let flat = Slot { text, key, carrier, shape: Shape::Flat, message: text, named: None };
        flat.checked()?;
        let members: Members<'a> = serde_json::from_str(text)
            .map_err(|_| flat.unreadable(Reason::Malformed, "an object is needed here"))?;
        let nested = |(name, message): (&String, &&'a RawValue)| Some((named(name)?, message.get()));
        let nested: Vec<_> = members.iter().filter_map(nested).collect();
        match nested.first() {
            Some((kind, message)) if !members.contains_key("type") => {
                let slot = Slot { shape: Shape::Nested, message, named: Some(*kind), ..flat };
                slot.alone(nested.len(), members.len())
            }
            _ => Ok(flat),
        }
    }

    /// Of so many messages among so many members.
    fn alone(self, messages: usize, members: usize) -> Result<Slot<'a>, Box<Unreadable>> {
        match (messages, members) {
            (1, 1) => Ok(self),
            (1, _) => Err(self.unreadable(Reason::Malformed, "something stands beside the message")),
            _ => Err(self.unreadable(Reason::TwoMessages, "more than one message")),
        }
    }

    fn checked(&self) -> Result<Checked<'a>, Box<Unreadable>> {
        json::check(self.message.as_bytes(), whole(self.message))
            .map_err(|error| self.unreadable(Reason::Malformed, &error.to_string()))
    }

    fn received(self) -> Result<Received, Box<Unreadable>> {
        let canon = Canon::of(self.checked()?);
        let message = Message::read(self.message)
            .map_err(|flaw| self.unreadable(flaw.reason.clone(), &flaw.to_string()))?;
        if self.named.is_some_and(|named| named != message.kind()) {
            let what = "the message is of another type than its name says";
            return Err(self.unreadable(Reason::Malformed, what));
        }
        if !self.carrier.carries().contains(&message.kind()) {
            let what = "a message of this type does not ride on this request";
            return Err(self.unreadable(Reason::WrongCarrier, what));
        }
        Ok(Received {
            message,
            shape: self.shape,
            key: self.key,
            text: self.message.to_owned(),
            digest: canon.digest(),
            canon_raw: canon.raw,
        })
    }

    fn unreadable(&self, reason: Reason, what: &str) -> Box<Unreadable> {
        // What two readers may read differently names no session.
        let peeked = json::parse_strict(self.message.as_bytes(), whole(self.message));
        let peeked = peeked.map(Peeked::at).unwrap_or_default();
        let implied = self.carrier.carries();
        let kind = self.named.or(peeked.kind).filter(|kind| implied.contains(kind)).unwrap_or(implied[0]);
        Box::new(Unreadable {
            session_id: peeked.session_id,
            in_response_to: kind,
            shape: self.shape,
            key: self.key,
            digest: Digest::of(self.text.as_bytes()),
            reason,
            what: what.to_owned(),
        })
    }
}

/// A message is as long as the request that carries it may be.
fn whole(text: &str) -> Limits {
    Limits { bytes: text.len(), depth: json::MAX_DEPTH }
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The reference's names.
fn named(name: &str) -> Option<MessageType> {
    Some(match name {
        "scope_commitment" => MessageType::ScopeCommitment,
        "intent" => MessageType::IntentCall,
        "amendment" => MessageType::ScopeAmendment,
        _ => return None,
    })
}

/// What a message says that may be no message at all.
#[derive(Default)]
struct Peeked {
    session_id: Option<String>,
    kind: Option<MessageType>,
}

impl Peeked {
    fn at(message: Value) -> Peeked {
        let text = |name: &str| message.get(name).and_then(Value::as_str);
        let usable = |id: &&str| (1..=MAX_SESSION_ID).contains(&id.chars().count()) && !is_reserved(id);
        Peeked {
            session_id: text("session_id").filter(usable).map(str::to_owned),
            kind: text("type").and_then(MessageType::from_word),
        }
    }
}
