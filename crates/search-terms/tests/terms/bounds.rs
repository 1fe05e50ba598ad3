//! Long values, and entries with too many terms.

use serde_json::json;

use super::{Case, Cases, statement};

pub fn cases() -> Cases {
    let about = |why, sub: &str| Case::new(why, statement("x").sub(sub));
    let long = "a".repeat(600);
    Cases::from([
        ("value-whole", about("444 bytes are whole", &"a".repeat(444))),
        ("value-shortened", about("445 bytes are not", &"a".repeat(445))),
        ("value-long", about("a long value is its beginning and its hash", &long)),
        ("value-of-wide-characters", about("no character is cut", &"\u{1f980}".repeat(200))),
        ("value-of-three-bytes", about("the cut is at a character's end", &format!("a{}", "€".repeat(200)))),
        ("value-with-nul", about("U+0000 is not stored", "a\0b")),
        ("value-long-with-nul", about("both at once", &format!("\0{long}"))),
        ("most-terms", erasure("4,096 terms with those of the header", 4_090)),
        ("too-many-terms", erasure("the first 4,096 are taken", 4_200)),
        (
            "equal-terms",
            Case::of("a value counts once", ERASURE, json!({ "entries": vec!["same"; 1_000] }).to_string()),
        ),
    ])
}

const ERASURE: &str = "application/vnd.tabellion.erasure+json";

/// An erasure of so many entries, in descending order.
fn erasure(why: &'static str, entries: usize) -> Case {
    let entries: Vec<String> = (0..entries).rev().map(|n| n.to_string()).collect();
    Case::of(why, ERASURE, json!({ "entries": entries }).to_string())
}
