//! Input that was changed at random never panics, and never becomes another record that is admitted.

#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;
use std::time::Instant;

use proptest::collection::vec;
use proptest::prelude::*;
use registration::vrf::{Form, VrfRecord};
use registration::{Policy, Record, SideData, authenticate};
use scitt::{SignedStatement, StatementBuilder};
use serde_json::json;
use testkit::{policy, receipt, verifier};

static ORIGINAL: LazyLock<SignedStatement> = LazyLock::new(|| receipt(0).sign(&verifier()).unwrap());
static POLICY: LazyLock<Policy> = LazyLock::new(policy);

/// One change: cut, overwrite, insert or repeat.
#[derive(Clone, Debug)]
enum Change {
    Cut(usize, usize),
    Set(usize, u8),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<usize>(), 0..40usize).prop_map(|(at, n)| Change::Cut(at, n)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<usize>(), vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (any::<usize>(), 1..40usize).prop_map(|(at, n)| Change::Repeat(at, n)),
    ]
}

fn apply(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for change in changes {
        let place = |at: usize, out: &Vec<u8>| at % (out.len() + 1);
        match change {
            Change::Cut(at, n) => {
                let at = place(*at, &out);
                let end = (at + n).min(out.len());
                out.drain(at..end);
            }
            Change::Set(at, byte) if !out.is_empty() => {
                let at = at % out.len();
                out[at] = *byte;
            }
            Change::Set(..) => {}
            Change::Insert(at, bytes) => {
                let at = place(*at, &out);
                out.splice(at..at, bytes.iter().copied());
            }
            Change::Repeat(at, n) => {
                let at = place(*at, &out);
                let piece = out[at..(at + n).min(out.len())].to_vec();
                out.splice(at..at, piece);
            }
        }
    }
    out
}

fn canonical() -> &'static [u8] {
    Form::B.open(ORIGINAL.payload().unwrap()).unwrap()
}

fn read(payload: &[u8]) -> Option<VrfRecord> {
    VrfRecord::read(Form::B, ORIGINAL.header(), payload).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_changed_statement_is_refused_or_is_the_same(changes in vec(change(), 1..6)) {
        let changed = apply(ORIGINAL.bytes(), &changes);
        if let Ok(statement) = SignedStatement::parse(changed)
            && let Ok(authenticated) = authenticate(&statement, SideData::default(), &POLICY)
        {
            prop_assert_eq!(statement.bytes(), ORIGINAL.bytes());
            prop_assert!(Record::read(&authenticated).is_ok());
        }
    }

    #[test]
    fn a_payload_that_is_read_is_its_own_canonical_form(changes in vec(change(), 1..4)) {
        let json = apply(canonical(), &changes);
        if read(&Form::B.wrap(&json)).is_some() {
            prop_assert!(jose::jcs::is_canonical(&json));
        }
    }

    #[test]
    fn any_payload_is_answered(payload in vec(any::<u8>(), 0..200)) {
        read(&payload);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_changed_policy_is_answered(changes in vec(change(), 1..4)) {
        let _ = Policy::from_payload(&apply(POLICY.payload(), &changes));
        if let Ok(text) = String::from_utf8(apply(testkit::policy_toml().as_bytes(), &changes)) {
            let _ = Policy::from_toml(&text);
        }
    }
}

#[test]
fn large_hostile_payloads_are_answered_at_once() {
    let many = |piece: &str, n: usize| piece.repeat(n);
    let details = vec![json!({"name": "t", "status": "skip"}); 20_000];
    let hostile = [
        many("[", 4_000_000),
        format!("{{\"a\":[{}0]}}", many("0,", 500_000)),
        format!("{{\"a\":[{}[]]}}", many("[],", 200_000)),
        format!("{{\"{}\":1}}", many("a", 4_000_000)),
        json!({"results": {"total": 1, "passed": 1, "failed": 0, "errors": 0, "details": details}})
            .to_string(),
        format!("{{{}\"z\":0}}", (0..50_000).map(|n| format!("\"{n:07}\":0,")).collect::<String>()),
    ];
    for text in hostile {
        let start = Instant::now();
        assert!(read(&Form::B.wrap(text.as_bytes())).is_none());
        // Generous, as these are unoptimized builds on shared machines: what is quadratic takes minutes.
        assert!(start.elapsed().as_secs() < 60, "{:?} for {}…", start.elapsed(), &text[..20]);
    }
}

#[test]
fn a_length_beyond_all_memory_is_refused_before_anything_is_allocated() {
    let head = [0x5b, 0, 0, 0, 0x10, 0, 0, 0, 0];
    assert!(read(&head).is_none());
    let builder = StatementBuilder::new(head).content_type("application/vrf+cbor").kid("k").iss("i").sub("s");
    assert!(builder.sign(&verifier()).is_ok());
}

#[test]
fn an_answer_does_not_grow_with_the_statement() {
    let name = "a".repeat(1 << 20);
    for text in [
        format!("{{\"{name}\":0.5}}"),
        format!("{{\"{name}\":1,\"{name}\":1}}"),
        format!("{{\"{name}\u{e000}\":1}}"),
    ] {
        let violation =
            VrfRecord::read(Form::B, ORIGINAL.header(), &Form::B.wrap(text.as_bytes())).unwrap_err();
        assert!(violation.to_string().len() < 2000, "{}", violation.rule);
    }
}
