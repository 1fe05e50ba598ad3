//! The slot of a VAP message in a request (readings V-4, V-6, X-1): `params._meta.vap`, or our own key in `_meta`.
//!
//! The draft puts the message itself there, the reference implementation
//! `{scope_commitment | intent | amendment: message}`. Both shapes are read, and the answer has the same shape. One
//! request carries one message, and its method must be a carrier for that type.
//!
//! An unreadable message is still answered: [`Unreadable`] has the session, the shape and the reason (reading X-2).

use std::collections::BTreeMap;

use jose::json::{self, CheckedJson};
use serde_json::value::RawValue;

use super::read::is_reserved;
use super::{Message, MessageType};
use crate::digest::{Canon, Digest};
use crate::exact;
use crate::limits::MAX_SESSION_ID;
use crate::reason::Reason;

/// The key in `_meta` that the VAP draft defines.
pub const VAP_KEY: &str = "vap";
/// Our own key in `_meta`.
pub const OWN_KEY: &str = "dev.tabellion/vap";

/// The MCP request that carries a message.
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
    /// `vap/amend`, which the gateway never forwards.
    Amend,
    /// `tools/call`.
    ToolsCall,
}

/// The nesting of a message in its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The slot is the message, as in the draft.
    #[default]
    Flat,
    /// The message is a member named after its type, as in the reference implementation.
    Nested,
}

/// The key of `_meta` with the message; the Verdict is returned under the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Key {
    /// [`VAP_KEY`], of the draft.
    #[default]
    Vap,
    /// [`OWN_KEY`].
    Own,
    /// Both keys, with equal content.
    Both,
}

/// A message that was parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The parsed message.
    pub message: Message,
    /// The nesting of the message in its slot.
    pub shape: Shape,
    /// The key of the slot.
    pub key: Key,
    /// The message's text as received, without the nesting and without blanks around it.
    pub text: String,
    /// The message's digest, signature included: the value of a Verdict's `req` (reading V-25).
    pub digest: Digest,
    /// `true` if the digest is over the text as received, for lack of a canonical form (reading V-22).
    pub canon_raw: bool,
}

/// A message that could not be parsed, with all that is needed to deny it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The session id in the message, if it is a valid one.
    pub session_id: Option<String>,
    /// The presumed type, for the Verdict's `in_response_to`.
    pub in_response_to: MessageType,
    /// The nesting of the message in its slot.
    pub shape: Shape,
    /// The key of the slot.
    pub key: Key,
    /// The digest of the slot's text as received.
    pub digest: Digest,
    /// The reason code for the Verdict.
    pub reason: Reason,
    /// A description for the sender and the audit store.
    pub what: String,
}

/// Parses the message of a request from the texts under [`VAP_KEY`] and [`OWN_KEY`]; `Ok(None)` if both are absent.
///
/// # Errors
/// [`Unreadable`] if the message is invalid, has the wrong carrier, or differs between the two keys.
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
    /// Returns the message types that the request may carry. The first is presumed for an unreadable message.
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

    /// Returns the carrier for a JSON-RPC method, or `None` if it cannot carry a message.
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
    /// Returns a Verdict's text in this shape.
    pub fn dress(self, verdict: &str) -> String {
        match self {
            Shape::Flat => verdict.to_owned(),
            Shape::Nested => format!("{{\"verdict\":{verdict}}}"),
        }
    }
}

impl Key {
    /// Returns the keys of `_meta` to answer under.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Key::Vap => &[VAP_KEY],
            Key::Own => &[OWN_KEY],
            Key::Both => &[VAP_KEY, OWN_KEY],
        }
    }
}

/// A slot whose shape is known, and whose message is not parsed yet.
struct Slot<'a> {
    text: &'a str,
    key: Key,
    carrier: Carrier,
    shape: Shape,
    /// The message's text, and the type that its name in the nested shape implies.
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

    /// Refuses a nested slot with several messages, or with members other than the message.
    fn alone(self, messages: usize, members: usize) -> Result<Slot<'a>, Box<Unreadable>> {
        match (messages, members) {
            (1, 1) => Ok(self),
            (1, _) => {
                Err(self.unreadable(Reason::Malformed, "the request has another member next to the message"))
            }
            _ => Err(self.unreadable(Reason::TwoMessages, "more than one message")),
        }
    }

    fn checked(&self) -> Result<CheckedJson<'a>, Box<Unreadable>> {
        // An unsigned message is served whatever its numbers are (reading V-22).
        json::check_any_numbers(self.message)
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
            text: self.message.trim_ascii().to_owned(),
            digest: canon.digest(),
            canon_raw: canon.raw,
        })
    }

    fn unreadable(&self, reason: Reason, what: &str) -> Box<Unreadable> {
        // An ambiguous text (such as one with duplicate members) names no session.
        let peeked = json::check_any_numbers(self.message).and_then(|text| text.read::<Members<'_>>());
        let peeked = peeked.map(|members| Peeked::at(&members)).unwrap_or_default();
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

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Returns the type for a member name of the reference implementation.
fn named(name: &str) -> Option<MessageType> {
    Some(match name {
        "scope_commitment" => MessageType::ScopeCommitment,
        "intent" => MessageType::IntentCall,
        "amendment" => MessageType::ScopeAmendment,
        _ => return None,
    })
}

/// The session id and the type in a text that may not be a valid message.
#[derive(Default)]
struct Peeked {
    session_id: Option<String>,
    kind: Option<MessageType>,
}

impl Peeked {
    fn at(message: &Members<'_>) -> Peeked {
        let text = |name: &str| json::read_text::<String>(message.get(name)?.get()).ok();
        let usable = |id: &String| (1..=MAX_SESSION_ID).contains(&id.chars().count()) && !is_reserved(id);
        Peeked {
            session_id: text("session_id").filter(usable),
            kind: text("type").and_then(|word| MessageType::from_word(&word)),
        }
    }
}
