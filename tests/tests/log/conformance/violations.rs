//! One violation for each check of the suite: a proxy in front of our service changes one answer, and this check, no
//! other, complains about it.

use ::conformance::HostileInput::{self, *};
use ::conformance::Probe::{self, *};

use super::changes::Change::{self, *};
use super::changes::{
    attach_root, drop_label, drop_signature, flip_last_bit, list_key, list_other_key, list_secret_key,
    list_twice, make_location_relative, prove_consistency, put_in_array, rename_key,
};

/// A violation of one check.
pub struct Violation {
    /// The check that must complain.
    pub check: &'static str,
    /// The request whose answer is changed.
    pub at: Probe,
    /// What is changed, one thing after the other.
    pub changes: &'static [Change],
    /// What the finding says.
    pub finding: &'static str,
    /// Other checks that the same answer violates.
    pub also: &'static [&'static str],
}

const fn violation(
    check: &'static str,
    at: Probe,
    changes: &'static [Change],
    finding: &'static str,
) -> Violation {
    Violation { check, at, changes, finding, also: &[] }
}

/// A statement that must be refused, and is not.
const fn accepted(check: &'static str, input: HostileInput) -> Violation {
    violation(check, Hostile(input), &[Status(201)], "201 Created")
}

/// A statement that the service need not refuse, and that harms it.
const fn harmed(check: &'static str, input: HostileInput) -> Violation {
    violation(check, Hostile(input), &[Status(500)], "500 Internal Server Error")
}

impl Violation {
    const fn and(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }
}

const TYPE: &str = "content-type";
const AGAIN: &str = "retry-after";
const CACHE: &str = "cache-control";
const TEXT: Change = Header(TYPE, "text/plain");
const JSON_PROBLEM: Change = Header(TYPE, "application/problem+json");
const TOO_MANY: Change = Refusal(429, "Too Many Requests");
const ELSEWHERE: &str = "https://ts.example/entries/elsewhere";
const OTHER_LOCATION: Change = Header("location", ELSEWHERE);
const OTHER_ROOT: &str = "which is not the one that the receipt signs";
const UNVERIFIED: &[&str] = &["receipt-verifies"];
/// `{-1: "x"}`.
const TITLE_ALONE: Change = Body(&[0xa1, 0x20, 0x61, b'x']);
/// `{-1: "x", -2: "y", -4: 404}`.
const STATUS_AS_CODE: Change = Body(&[0xa3, 0x20, 0x61, b'x', 0x21, 0x61, b'y', 0x23, 0x19, 0x01, 0x94]);

/// The reason for checks of requests that the issuer must sign.
const SIGNED: &str = "the tests of violations have a statement without the issuer's key; tests/suite.rs of the crate violates it";

/// Checks that these tests cannot violate, with the reason.
pub const INVIOLABLE: &[(&str, &str)] = &[
    ("hostile-unprotected", SIGNED),
    ("hostile-no-kid", SIGNED),
    ("hostile-unknown-critical", SIGNED),
    ("hostile-protected-duplicate", SIGNED),
    ("hostile-hash-envelope", SIGNED),
];

/// At least one violation of every other check.
#[rustfmt::skip]
pub const VIOLATIONS: &[Violation] = &[
    violation("keys-status", Keys, &[Status(203)], "203 Non Authoritative Information"),
    violation("keys-status", Keys, &[Refusal(403, "Forbidden")], "403 Forbidden"),
    violation("keys-content-type", Keys, &[TEXT], "\"text/plain\""),
    violation("keys-set", Keys, &[Body(&[0xa0])], "a COSE_KeySet is an array"),
    violation("keys-set", Keys, &[Body(&[0x80])], "usable keys: 0")
        .and(&["receipt-kid", "receipt-verifies", "receipt-on-registration"]),
    violation("keys-public", Keys, &[Edit(|answer, _| list_secret_key(answer))], "1 secret key"),
    violation("keys-kid", Keys, &[Edit(|answer, _| list_twice(answer))], "with the kid of another key: 2"),
    violation("keys-kid", Keys, &[Edit(|answer, _| list_key(answer, None))], "keys without a kid: 1")
        .and(&["keys-thumbprint"]),
    violation("keys-thumbprint", Keys, &[Edit(|answer, _| list_key(answer, Some(b"other")))], "1 of 2 keys"),
    violation("key-status", KeyByKid, &[Status(203)], "203 Non Authoritative Information"),
    violation("key-content-type", KeyByKid, &[TEXT], "\"text/plain\""),
    violation("key-body", KeyByKid, &[Edit(|answer, _| put_in_array(answer))], "an array of keys"),
    violation("key-body", KeyByKid, &[Edit(|answer, _| rename_key(answer))], "under this kid"),
    // The service does not have the key that the proxy lists, under any name.
    violation("key-raw-kid", Keys, &[Edit(|answer, _| list_other_key(answer, b"plain"))], "404 Not Found")
        .and(&["keys-thumbprint", "key-status", "receipt-kid", "receipt-verifies", "receipt-on-registration"]),
    violation("key-unknown", UnknownKey, &[Status(400)], "400 Bad Request").and(&["problem-key"]),

    violation("register-status", Registration, &[Status(200)], "200 OK"),
    violation("register-location", Registration, &[NoHeader("location")], "no Location").and(&["resolve-status"]),
    violation("register-location", Registration, &[Edit(|answer, _| make_location_relative(answer))], "not an absolute URL"),
    violation("register-body", Registration, &[TEXT], "\"text/plain\""),
    violation("register-body", Registration, &[Status(202), Header(AGAIN, "1")], "202 with "),
    violation("register-retry-after", Registration, &[Status(202), Body(b"")], "no Retry-After"),
    violation("register-retry-after", Registration, &[Status(202), Body(b""), Header(AGAIN, "soon")], "\"soon\""),
    violation("resubmit-status", Resubmission, &[Refusal(409, "Conflict")], "409 Conflict"),
    violation("resubmit-location", Resubmission, &[OTHER_LOCATION], ELSEWHERE),
    violation("resubmit-transparent", Transparent, &[OTHER_LOCATION], ELSEWHERE),
    violation("slow-body", SlowBody, &[Refusal(408, "Request Timeout")], "408 Request Timeout"),
    violation("rate-limit-retry-after", Keys, &[TOO_MANY], "the answer to Keys: no Retry-After"),

    violation("resolve-status", Receipt, &[Status(203)], "203 Non Authoritative Information"),
    violation("resolve-status", Receipt, &[Refusal(403, "Forbidden")], "403 Forbidden"),
    violation("resolve-content-type", Receipt, &[TEXT], "\"text/plain\""),
    violation("resolve-location", Receipt, &[OTHER_LOCATION], ELSEWHERE),
    violation("resolve-any-type", ReceiptOfAnyType, &[Header(TYPE, "text/html")], "200 OK, \"text/html\""),
    violation("running-status", Receipt, &[Status(302)], "302 Found"),
    violation("running-retry-after", Receipt, &[Status(204), Body(b""), Header(CACHE, "no-store")], "no Retry-After"),
    violation("running-no-store", Receipt, &[Status(204), Body(b""), Header(AGAIN, "0"), Header(CACHE, "no-cache")], "\"no-cache\""),
    violation("entry-unknown", UnknownEntry, &[Status(500)], "500 Internal Server Error")
        .and(&["entry-unknown-status", "problem-entry"]),
    violation("entry-unknown-status", UnknownEntry, &[Status(410)], "410 Gone").and(&["problem-entry"]),
    violation("locator-invalid", InvalidLocator, &[Status(500)], "500 Internal Server Error"),

    violation("receipt-structure", Receipt, &[Body(b"registered")], "at byte 0"),
    violation("receipt-proof", Receipt, &[Edit(|answer, _| prove_consistency(answer))], "0 inclusion proofs").and(UNVERIFIED),
    violation("receipt-detached", Receipt, &[Edit(attach_root)], "the root is attached"),
    violation("receipt-claims", Receipt, &[Edit(|answer, _| drop_label(answer, 15))], "no iss").and(UNVERIFIED),
    violation("receipt-kid", Receipt, &[Edit(|answer, _| drop_label(answer, 4))], "no kid").and(UNVERIFIED),
    violation("receipt-verifies", Receipt, &[Edit(|answer, _| flip_last_bit(answer))], OTHER_ROOT),
    violation("receipt-verifies", Receipt, &[Edit(|answer, _| drop_signature(answer))], "a signature has 64 bytes, this one 0"),
    violation("receipt-on-registration", Registration, &[Edit(|answer, _| flip_last_bit(answer))], OTHER_ROOT),

    violation("problem-content-type", UnknownPath, &[JSON_PROBLEM], "UnknownPath (404 Not Found): \"application/problem+json\""),
    violation("problem-content-type", Keys, &[TOO_MANY, Header(AGAIN, "0"), JSON_PROBLEM], "Keys (429 "),
    violation("problem-body", UnknownPath, &[Body(&[0xa0])], "UnknownPath (404 Not Found): not a map").and(&["problem-title-detail"]),
    violation("problem-title-detail", UnknownPath, &[TITLE_ALONE], "UnknownPath (404 Not Found): no detail"),
    violation("problem-response-code", UnknownPath, &[STATUS_AS_CODE], "UnknownPath (404 Not Found): 404 is not a CoAP code"),
    violation("problem-malformed", Hostile(Truncated), &[Refusal(400, "Other")], "400 Bad Request \"Other\""),
    violation("problem-signature", Hostile(WrongSignature), &[Refusal(400, "Other")], "400 Bad Request \"Other\""),
    violation("problem-algorithm", Hostile(UnknownAlgorithm), &[Refusal(400, "Other")], "400 Bad Request \"Other\""),
    violation("problem-payload", Hostile(NoPayload), &[Refusal(400, "Other")], "400 Bad Request \"Other\""),
    violation("problem-entry", UnknownEntry, &[Refusal(404, "Other")], "404 Not Found \"Other\""),
    violation("problem-key", UnknownKey, &[Refusal(404, "Other")], "404 Not Found \"Other\""),
    violation("path-unknown", UnknownPath, &[Status(400)], "400 Bad Request"),
    violation("method-wrong", WrongMethod, &[Status(200)], "200 OK"),
    violation("method-allow", WrongMethod, &[NoHeader("allow")], "no Allow"),
    violation("method-allow", WrongMethod, &[Header("allow", "GET, HEAD")], "\"GET, HEAD\""),

    violation("type-parameter", TypeWithParameter, &[Refusal(415, "Other")], "415 Unsupported Media Type"),
    violation("type-wrong", WrongType, &[Status(201)], "201 Created").and(&["type-wrong-status"]),
    violation("type-wrong-status", WrongType, &[Status(400)], "400 Bad Request"),
    violation("type-missing", NoType, &[Refusal(500, "Other")], "500 Internal Server Error"),

    accepted("hostile-empty", Empty),
    accepted("hostile-text", Text),
    accepted("hostile-truncated", Truncated).and(&["problem-malformed"]),
    accepted("hostile-trailing-byte", TrailingByte),
    accepted("hostile-untagged", Untagged),
    accepted("hostile-wrong-tag", WrongTag),
    accepted("hostile-length", AnnouncedLength),
    harmed("hostile-indefinite", IndefiniteLength),
    accepted("hostile-duplicate-label", DuplicateLabel),
    accepted("hostile-critical", UnprotectedCritical),
    accepted("hostile-both-headers", BothHeaders),
    harmed("hostile-nesting", DeepNesting),
    accepted("hostile-signature", WrongSignature).and(&["problem-signature"]),
    accepted("hostile-algorithm", UnknownAlgorithm).and(&["problem-algorithm"]),
    accepted("hostile-payload", NoPayload).and(&["problem-payload"]),
    accepted("hostile-size", TooLarge),
    violation("still-serving", KeysAgain, &[Refusal(503, "Other")], "503 Service Unavailable after"),
    violation("still-serving", KeysAgain, &[Body(b"")], "no key set"),
];
