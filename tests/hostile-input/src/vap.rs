//! What the readers of agents' messages promise about any bytes at all.
//!
//! Every slot is answered: with a message that reads again from its own text, or with a reason and a session that can be
//! named. What an agent is told to be in force is the text whose digest it is told.

use admission::authenticated::Authenticated;
use admission::effective::{Capped, Effective, SessionCeiling};
use admission::invocation::AiInvocation;
use admission::signature::{Demands, Freshness, Keyring};
use decimal::Decimal;
use jiff::Timestamp;
use jose::{jcs, json};
use vap::digest::Digest;
use vap::exact;
use vap::glob::Pattern;
use vap::message::slot::{self, Carrier, Received, Unreadable};
use vap::message::{Deadline, Message, NO_SESSION, ScopeAmendment, UNBOUND};
use vap::reason::Reason;

use crate::promises::Verdict::{self, Accepted, Refused};

const CARRIERS: [Carrier; 6] = [
    Carrier::Initialize,
    Carrier::Discover,
    Carrier::ToolsList,
    Carrier::Ping,
    Carrier::Amend,
    Carrier::ToolsCall,
];

/// A text in the slots and places where an agent can put one.
pub fn vap(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else { return Refused };
    parts(text);
    let verdicts = CARRIERS.map(|carrier| match slot::read(Some(text), None, carrier) {
        Ok(received) => accepted(&received.expect("something stood there"), carrier),
        Err(unreadable) => refused(&unreadable, text),
    });
    if verdicts.contains(&Accepted) { Accepted } else { Refused }
}

/// Texts that stand inside of messages, or beside them.
fn parts(text: &str) {
    assert!(exact::equal(text, text), "whatever it is, it is the same");
    if let Some(echo) = AiInvocation::read(text).echo() {
        assert!(json::check(echo.as_bytes(), json::Limits::default()).is_ok());
    }
    if let Ok((decimal, _)) = Decimal::read_rounding_up(text) {
        assert_eq!(Decimal::read(&decimal.to_string()), Ok(decimal));
    }
    if let Ok(deadline) = Deadline::parse(text) {
        assert_eq!(Deadline::parse(&deadline.at().to_string()).map(|again| again.at()), Ok(deadline.at()));
    }
    if let Ok(pattern) = Pattern::new(text) {
        assert!(pattern.matches(&text.replace('*', "")) && pattern.matches(text));
    }
    if let Ok(digest) = Digest::parse(text) {
        assert!(digest.names(&digest) && digest.as_str() == text);
    }
}

fn accepted(received: &Received, carrier: Carrier) -> Verdict {
    let again = slot::read(Some(&received.text), None, carrier);
    let again = again.expect("what was read once can be read again").expect("it stands there");
    assert_eq!((&again.message, &again.digest), (&received.message, &received.digest));
    assert!(carrier.carries().contains(&received.message.kind()));
    assert!(is_usable(received.message.session_id()));
    canonical_says_the_same(received);
    nobody_signed(received);
    match &received.message {
        Message::ScopeCommitment(commitment) => {
            let in_force =
                Effective::of(commitment, &SessionCeiling::default()).expect("no ceiling, no refusal");
            is_what_it_says(&in_force);
        }
        Message::ScopeAmendment(amendment) => amends(amendment),
        Message::IntentEnvelope(envelope) => assert!(envelope.call.arguments.starts_with('{')),
    }
    Accepted
}

fn canonical_says_the_same(received: &Received) {
    if received.canon_raw {
        return assert_eq!(received.digest, Digest::of(received.text.as_bytes()));
    }
    let limits = json::Limits { bytes: received.text.len(), depth: json::MAX_DEPTH };
    let value = json::parse_strict(received.text.as_bytes(), limits).expect("a message is strict JSON");
    let canonical = String::from_utf8(jcs::canonical(&value)).expect("JSON is text");
    assert!(exact::equal(&received.text, &canonical));
    assert_eq!(received.digest, Digest::of(canonical.as_bytes()));
}

/// No key is known, so no signature holds.
fn nobody_signed(received: &Received) {
    let demands = Demands {
        signed: true,
        amendments_signed: true,
        freshness: Freshness::Optional,
        audience: "https://gw.example".to_owned(),
    };
    let keyring = Keyring::default();
    let read = Authenticated::new(received.clone(), &keyring);
    assert!(read.signer("a", &keyring, &demands, Timestamp::UNIX_EPOCH).is_err());
}

fn is_what_it_says(in_force: &Capped) {
    let (effective, canon) = (&in_force.effective, in_force.effective.canon());
    assert!(canon.raw || jcs::is_canonical(&canon.bytes));
    assert_eq!((canon.digest(), canon.bytes), (effective.digest(), effective.text().into_bytes()));
    let stored = serde_json::to_vec(effective).expect("it can be stored");
    assert_eq!(&serde_json::from_slice::<Effective>(&stored).expect("and read again"), effective);
}

/// An amendment of something else is refused; one that names what is in force makes a value of its own.
fn amends(amendment: &ScopeAmendment) {
    let commitment = r#"{"vap":"0.1","type":"scope_commitment","session_id":"s","goal":"g","scope":{"tools_allow":["a"]},"budget":{"max_calls":1,"deadline":"2026-12-01T00:00:00Z","limits":{"usd_opcost":1}},"principal":{"agent_id":"a"}}"#;
    let Ok(Message::ScopeCommitment(commitment)) = Message::read(commitment) else { panic!("it is one") };
    let before =
        Effective::of(&commitment, &SessionCeiling::default()).expect("no ceiling, no refusal").effective;
    let following = ScopeAmendment { prev_commitment_digest: before.digest(), ..amendment.clone() };
    if let Ok(after) = before.amended(&following, &SessionCeiling::default()) {
        is_what_it_says(&after);
        assert_eq!(after.effective.prev_commitment_digest, Some(before.digest()));
        assert_ne!(after.effective.digest(), before.digest());
    }
}

fn refused(unreadable: &Unreadable, text: &str) -> Verdict {
    assert!(!unreadable.what.is_empty() && !matches!(unreadable.reason, Reason::Policy(_)));
    assert!(unreadable.session_id.as_deref().is_none_or(is_usable));
    assert_eq!(unreadable.digest, Digest::of(text.as_bytes()));
    Refused
}

fn is_usable(session_id: &str) -> bool {
    !session_id.is_empty() && session_id != NO_SESSION && !session_id.starts_with(UNBOUND)
}
