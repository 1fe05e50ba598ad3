//! Where messages ride: readings V-4, V-6 and X-2.

use serde_json::{Value, json};
use vap::digest::Digest;
use vap::message::MessageType;
use vap::message::slot::{self, Carrier, Key, Received, Shape, Unreadable};
use vap::reason::Reason;

use crate::sample::{amendment, commitment, intent, with};

fn read(slot: &Value, carrier: Carrier) -> Result<Received, Box<Unreadable>> {
    slot::read(Some(&slot.to_string()), None, carrier).map(Option::unwrap)
}

fn refused(slot: &Value, carrier: Carrier) -> Unreadable {
    *read(slot, carrier).unwrap_err()
}

#[test]
fn v_4_both_shapes_are_read_and_answered_alike() {
    for (name, message, carrier) in [
        ("scope_commitment", commitment(), Carrier::Initialize),
        ("intent", intent(), Carrier::ToolsCall),
        ("amendment", amendment("sha256:00"), Carrier::Amend),
    ] {
        let flat = read(&message, carrier).unwrap();
        let nested = read(&json!({ name: message }), carrier).unwrap();
        assert_eq!((flat.shape, nested.shape), (Shape::Flat, Shape::Nested));
        assert_eq!(
            (&flat.message, &flat.text, &flat.digest),
            (&nested.message, &nested.text, &nested.digest)
        );
    }
    assert_eq!(Shape::Flat.dress("{\"vap\":1}"), "{\"vap\":1}");
    assert_eq!(Shape::Nested.dress("{\"vap\":1}"), "{\"verdict\":{\"vap\":1}}");
}

#[test]
fn v_22_blanks_around_a_message_are_not_part_of_its_text() {
    let envelope = intent().to_string();
    let inexact = with(intent(), &[("/call/arguments/ticket", json!(9_007_199_254_740_993_u64))]).to_string();
    for (text, canon_raw) in [(envelope, false), (inexact, true)] {
        let plain = slot::read(Some(&text), None, Carrier::ToolsCall).unwrap().unwrap();
        let padded = format!(" \t{text}\r\n ");
        let padded = slot::read(Some(&padded), None, Carrier::ToolsCall).unwrap().unwrap();
        assert_eq!((&padded.text, padded.canon_raw), (&text, canon_raw));
        assert_eq!(padded.digest, plain.digest);
    }
}

#[test]
fn v_4_a_slot_holds_one_message() {
    let two = json!({ "intent": intent(), "amendment": amendment("sha256:00") });
    let told = refused(&two, Carrier::ToolsCall);
    assert_eq!((told.reason, told.shape), (Reason::TwoMessages, Shape::Nested));
    let beside = json!({ "intent": intent(), "extra": 1 });
    assert_eq!(refused(&beside, Carrier::ToolsCall).reason, Reason::Malformed);
    let inside = with(intent(), &[("/amendment", amendment("sha256:00"))]);
    let told = refused(&inside, Carrier::ToolsCall);
    assert_eq!((told.reason, told.shape), (Reason::Malformed, Shape::Flat));
}

#[test]
fn v_4_the_name_around_a_message_does_not_change_what_it_is() {
    let told = refused(&json!({ "intent": amendment("sha256:00") }), Carrier::ToolsCall);
    assert_eq!((told.reason, told.in_response_to), (Reason::Malformed, MessageType::IntentCall));
}

#[test]
fn both_keys_may_hold_one_message_and_never_two() {
    let text = intent().to_string();
    let pretty = serde_json::to_string_pretty(&intent()).unwrap();
    let key = |vap, own| slot::read(vap, own, Carrier::ToolsCall).map(|read| read.unwrap().key);
    assert_eq!(key(Some(&text), None), Ok(Key::Vap));
    assert_eq!(key(None, Some(&text)), Ok(Key::Own));
    assert_eq!(key(Some(&text), Some(&pretty)), Ok(Key::Both));
    assert_eq!(Key::Both.names(), ["vap", "dev.tabellion/vap"]);
    let other = text.replace("9931}", "9932}");
    let told = *key(Some(&text), Some(&other)).unwrap_err();
    assert_eq!(
        (told.reason, told.key, told.session_id.as_deref()),
        (Reason::TwoMessages, Key::Both, Some("s-1"))
    );
    assert_eq!(slot::read(None, None, Carrier::ToolsCall), Ok(None));
}

#[test]
fn v_6_a_message_rides_only_on_a_request_that_carries_it() {
    use Carrier::{Amend, Discover, Initialize, Ping, ToolsCall, ToolsList};
    let all = [Initialize, Discover, ToolsList, Ping, Amend, ToolsCall];
    for (message, carriers) in [
        (commitment(), &[Initialize, Discover, ToolsList][..]),
        (amendment("sha256:00"), &[Discover, ToolsList, Ping, Amend]),
        (intent(), &[ToolsCall]),
    ] {
        for carrier in all {
            match read(&message, carrier) {
                Ok(_) => assert!(carriers.contains(&carrier), "{carrier:?}"),
                Err(told) => {
                    assert!(!carriers.contains(&carrier), "{carrier:?}: {}", told.what);
                    assert_eq!(
                        (told.reason, told.session_id.as_deref()),
                        (Reason::WrongCarrier, Some("s-1"))
                    );
                }
            }
        }
    }
}

#[test]
fn every_carrier_is_a_method() {
    for method in ["initialize", "server/discover", "tools/list", "ping", "vap/amend", "tools/call"] {
        assert!(Carrier::of_method(method).is_some(), "{method}");
    }
    for method in ["tools/callx", "Tools/call", "resources/read", ""] {
        assert_eq!(Carrier::of_method(method), None, "{method}");
    }
}

#[test]
fn x_2_what_cannot_be_read_is_answered_as_what_its_carrier_implies() {
    for (carrier, kind) in [
        (Carrier::Initialize, MessageType::ScopeCommitment),
        (Carrier::Discover, MessageType::ScopeCommitment),
        (Carrier::ToolsList, MessageType::ScopeCommitment),
        (Carrier::Ping, MessageType::ScopeAmendment),
        (Carrier::Amend, MessageType::ScopeAmendment),
        (Carrier::ToolsCall, MessageType::IntentCall),
    ] {
        for text in ["null", "1", "[]", "{}", "\"vap\"", "{\"type\":1}", "{\"verdict\":{}}"] {
            let told = *slot::read(Some(text), None, carrier).unwrap_err();
            assert_eq!(
                (told.in_response_to, told.session_id, told.shape),
                (kind, None, Shape::Flat),
                "{text}"
            );
            assert_eq!((told.reason, told.digest), (Reason::Malformed, Digest::of(text.as_bytes())));
        }
    }
    let broken = with(amendment("sha256:00"), &[("/reason", Value::Null)]);
    let told = refused(&broken, Carrier::ToolsList);
    assert_eq!(told.in_response_to, MessageType::ScopeAmendment, "its own type, where the carrier allows it");
}

#[test]
fn x_2_the_session_is_named_if_its_name_is_usable() {
    let of = |id: Value| {
        refused(&json!({ "type": "intent_call", "session_id": id }), Carrier::ToolsCall).session_id
    };
    assert_eq!(of("s-9".into()).as_deref(), Some("s-9"));
    for id in [json!(1), json!(""), json!("x".repeat(257)), json!("none"), json!("unbound:gw"), json!(null)] {
        assert_eq!(of(id), None);
    }
    let nested = json!({ "intent": { "session_id": "s-9" } });
    let told = refused(&nested, Carrier::ToolsCall);
    assert_eq!((told.session_id.as_deref(), told.shape), (Some("s-9"), Shape::Nested));
}

#[test]
fn x_2_no_text_is_too_hostile_to_be_answered() {
    let deep = "{\"type\":".repeat(5000) + "1" + &"}".repeat(5000);
    for text in ["", "{", "{\"type\":\"intent_call\"", "{\"a\":1,\"a\":2}", "\"\\ud800\"", "{} {}", &deep] {
        let told = *slot::read(Some(text), None, Carrier::ToolsCall).unwrap_err();
        assert_eq!((told.reason, told.session_id), (Reason::Malformed, None));
    }
}

#[test]
fn v_22_a_number_that_no_double_holds_makes_the_digest_one_of_the_bytes() {
    let safe = read(&intent(), Carrier::ToolsCall).unwrap();
    let canonical = jose::jcs::canonical(&intent());
    assert_eq!((safe.canon_raw, safe.digest), (false, Digest::of(&canonical)));
    let text = intent().to_string().replace("9931}", "9007199254740993}");
    let unsafe_number = slot::read(Some(&text), None, Carrier::ToolsCall).unwrap().unwrap();
    assert_eq!((unsafe_number.canon_raw, unsafe_number.digest), (true, Digest::of(text.as_bytes())));
}
