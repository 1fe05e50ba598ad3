//! What the CDDL cannot say (step 9).

use registration::conversation::ConversationRule as Rule;
use serde_json::{Value, json};

use super::{breaks, keeps};
use crate::Case;
use crate::draft::{Draft, with_entries, with_file};

fn path(path: &str) -> Draft {
    Draft::json(&with_file(json!({ "path": path, "conversations": [] })))
}

fn range(range: Value) -> Draft {
    Draft::json(&with_file(json!({ "path": "a", "conversations": [{ "ranges": [range] }] })))
}

fn lines(start: u64, end: u64) -> Draft {
    range(json!({ "start-line": start, "end-line": end }))
}

fn hash(hash: &str, algorithm: Option<&str>) -> Draft {
    let mut value = json!({ "start-line": 1, "end-line": 1, "content-hash": hash });
    if let Some(algorithm) = algorithm {
        value["content-hash-alg"] = json!(algorithm);
    }
    range(value)
}

pub fn cases() -> Vec<Case> {
    let ids = |first: &str, second: &str| {
        let child = json!({ "type": "user", "id": second });
        Draft::json(&with_entries(json!([{ "type": "user", "id": first, "children": [child] }])))
    };
    let digits = "0123456789abcdef".repeat(4);
    vec![
        keeps(Rule::EntryIdUnique, "different", "every entry has its own", ids("a", "b")),
        breaks(Rule::EntryIdUnique, "child-like-parent", "children count", ids("a", "a")),
        keeps(Rule::AttributionPath, "relative", "dots within a name are no way up", path("a/..b/c...rs")),
        breaks(Rule::AttributionPath, "absolute", "a path that begins at the root", path("/etc/passwd")),
        breaks(Rule::AttributionPath, "drive", "a path that begins at a drive", path("C:/a")),
        breaks(Rule::AttributionPath, "up", "a path out of the repository", path("a/../../b")),
        breaks(Rule::AttributionPath, "nul", "a path that other readers cut", path("a\u{0}b")),
        breaks(Rule::AttributionPath, "backslash", "a path that other systems split", path("a\\..\\b")),
        keeps(Rule::LineRange, "one-line", "a range of one line", lines(1, 1)),
        breaks(Rule::LineRange, "line-0", "lines count from 1", lines(0, 1)),
        breaks(Rule::LineRange, "backwards", "a range that ends before it starts", lines(2, 1)),
        keeps(Rule::HashLength, "sha-256", "64 digits", hash(&digits, None)),
        keeps(Rule::HashLength, "sha-512", "128 digits", hash(&digits.repeat(2), Some("sha-512"))),
        keeps(
            Rule::HashLength,
            "unregistered",
            "a spelling that nobody registered",
            hash("9f2e8a1b", Some("murmur3")),
        ),
        breaks(Rule::HashLength, "cut-short", "62 digits are no SHA-256", hash(&digits[..62], None)),
        breaks(
            Rule::HashLength,
            "not-hex",
            "base64 is not hex",
            hash(&digits.replace('0', "+"), Some("sha-256")),
        ),
    ]
}
