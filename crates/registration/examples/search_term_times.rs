//! The cost of the search terms of one statement.
//!
//! ```text
//! cargo run --release -p registration --example search_term_times -- 2000
//! ```
//! The argument is the number of rounds. A round measures every row once, so that a slow moment of the machine concerns
//! all rows. `of record` reads the terms after the decision has parsed the payload, `read` from the stored bytes.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use registration::conversation::Form;
use registration::{Record, SearchValues};
use scitt::SignedStatement;

/// Statements in one measurement.
const REPEATED: u32 = 20;

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(2000, |text| text.parse().unwrap());
    let rows = rows();
    let mut took: Vec<[Vec<Duration>; 2]> = rows.iter().map(|_| Default::default()).collect();
    for _ in 0..rounds {
        for ((_, statement), [of_record, read]) in rows.iter().zip(&mut took) {
            let record = Record::of(statement.header(), statement.payload().unwrap()).unwrap();
            of_record
                .push(measured(|| SearchValues::of_record(statement.header(), &record, statement.payload())));
            read.push(measured(|| SearchValues::read(statement.header(), statement.payload())));
        }
    }
    for ((name, statement), took) in rows.iter().zip(&mut took) {
        let terms = SearchValues::read(statement.header(), statement.payload()).lookups.len();
        let [of_record, read] = took.each_mut().map(|took| median_micros(took));
        let bytes = statement.bytes().len();
        println!(
            "{name:<20} {bytes:>6} bytes {terms:>4} terms  of record {of_record:>7.2} µs  read {read:>7.2} µs"
        );
    }
}

/// The time of one run.
fn measured<T>(run: impl Fn() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..REPEATED {
        drop(black_box(run()));
    }
    start.elapsed() / REPEATED
}

fn median_micros(took: &mut [Duration]) -> f64 {
    took.sort_unstable();
    took[took.len() / 2].as_secs_f64() * 1e6
}

fn rows() -> Vec<(&'static str, SignedStatement)> {
    vec![
        ("opaque JSON", testkit::opaque("thing", &serde_json::json!({ "a": 1 }))),
        ("VRF receipt", testkit::vrf(1)),
        ("AER", testkit::aer(1)),
        ("VAP verdict", testkit::verdict(&testkit::verdict_json())),
        ("VAP decision", testkit::audit_record(&testkit::decision_json("stream", 1))),
        ("conversation, JSON", testkit::conversation(1, Form::Json)),
        ("conversation, CBOR", testkit::conversation(1, Form::Cbor)),
        ("JWK Set", testkit::jwk_set(&testkit::jwk_set_json())),
    ]
}
