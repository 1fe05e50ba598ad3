//! Keys of terms, and roots of runs.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use lookup_tree::{BlindCode, Posting, RunSummary, TermKey, erase};
use merkle::LeafIndex;
use serde_json::json;

use super::Cases;
use crate::support::{agent, agents_in_turn, posting};

pub fn keys() -> Cases {
    let long = "a".repeat(5_000);
    let case = |why: &str, kind: u8, value: &str| json!({ "why": why, "kind": kind, "value": value, "key": TermKey::of(kind, value.as_bytes()).to_string() });
    Cases::from([
        ("issuer", case("the first 16 bytes of the hash", 5, "https://issuer.example")),
        ("empty", case("a value may be empty", 3, "")),
        ("agent", case("an agent", 4, "agent-0")),
        ("other-kind", case("the kind is part of the hash", 3, "agent-0")),
        ("long", case("a value is hashed at its full length", 4, &long)),
        ("not-ascii", case("a value is hashed as UTF-8", 9, "zażółć\u{0}gęślą")),
    ])
}

pub fn roots() -> Cases {
    let erased = erase(&agents_in_turn(0, 40, 5), &BTreeSet::from([LeafIndex::new(7)]));
    let mut blind = agents_in_turn(0, 20, 2);
    blind.extend(BlindCode::ALL.map(|code| Posting::blind(code, LeafIndex::new(9))));
    blind.sort_unstable();
    let mut turned = agents_in_turn(0, 3, 3);
    turned.reverse();
    let doubled = vec![posting(agent(0), 5); 2];
    let in_last_bit = (0..17).map(|leaf| posting(agent(0), (1 << 63) + leaf)).collect::<Vec<_>>();
    let apart = |leaf: u64| posting(TermKey::from_bytes([leaf as u8 * 15; 16]), u64::MAX - leaf);
    Cases::from([
        ("empty", case("a run without postings is an empty bucket", &[])),
        ("one", case("one posting is a bucket", &agents_in_turn(0, 1, 1))),
        ("three-agents", case("agent-i at leaf i, i < 3", &agents_in_turn(0, 3, 3))),
        ("sixteen", case("the largest bucket", &agents_in_turn(0, 16, 5))),
        ("seventeen", case("the smallest inner node", &agents_in_turn(0, 17, 5))),
        ("forty", case("agent-(i mod 5) at leaf i, i < 40", &agents_in_turn(0, 40, 5))),
        ("forty-erased", case("the same, and leaf 7 is erased", &erased)),
        ("blind-codes", case("an entry can have several codes", &blind)),
        (
            "one-key",
            case("many leaves of one key: the nodes part leaves only", &agents_in_turn(1_000, 100, 1)),
        ),
        ("large-leaves", case("leaves beyond 63 bits", &in_last_bit)),
        ("keys-apart", case("keys that differ in their first bit", &(0..18).map(apart).collect::<Vec<_>>())),
        ("many", case("300 leaves of 50 agents", &agents_in_turn(0, 300, 50))),
        ("out-of-order", case("postings that do not ascend are no run", &turned)),
        ("twice", case("a run has each posting once", &doubled)),
    ])
}

fn case(why: &str, postings: &[Posting]) -> serde_json::Value {
    let summary = RunSummary::of(postings).ok();
    json!({
        "why": why,
        "postings": postings.iter().map(|posting| HEXLOWER.encode(&posting.to_bytes())).collect::<Vec<_>>(),
        "blind": summary.map(|summary| summary.blind),
        "root": summary.map(|summary| summary.root.to_string()),
    })
}
