//! The rules of an erasure, by name.

use crate::rule::rules;

rules! {
    /// A rule of an erasure statement (`application/vnd.tabellion.erasure+json`), our own document.
    ErasureRule {
        /// The payload is one object of strict JSON.
        Json = "erasure-json", reading "-", section "payload";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "erasure-canonical", reading "-", section "payload";
        /// A member is missing, has another type, or is not known.
        Member = "erasure-member", reading "-", section "payload";
        /// `sequence` is an integer from 0 to 2^53 − 1.
        Sequence = "erasure-sequence-number", reading "-", section "payload";
        /// Erasures count by one: a number is used once. The log keeps this one: the permit carries the guard.
        SequenceUnique = "erasure-sequence", reading "-", section "log";
        /// The erasure before it is in the log.
        Predecessor = "erasure-predecessor", reading "-", section "log";
        /// `entries` are 1 to 1000 entry IDs in ascending order, each once.
        Entries = "erasure-entries", reading "-", section "payload";
        /// Every entry named is in the log.
        Known = "erasure-entry-known", reading "-", section "log";
        /// No entry named is a statement of the operator.
        Permanent = "erasure-entry-permanent", reading "-", section "log";
        /// `reason` and `authorized_by` have 1 to 1000 characters.
        Reason = "erasure-reason", reading "-", section "payload";
        /// `rule` is a word of lower-case letters, digits and `-`, at most 64.
        Rule = "erasure-rule", reading "-", section "payload";
        /// `at` is `YYYY-MM-DDThh:mm:ss[.f]Z`, a time that exists.
        At = "erasure-at", reading "-", section "payload";
        /// `sub` is the log's origin.
        Subject = "erasure-subject", reading "-", section "statement";
    }
}
