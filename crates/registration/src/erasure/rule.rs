//! Rules of erasure statements.

use crate::rule::rules;

rules! {
    /// Rules of an erasure statement (`application/vnd.tabellion.erasure+json`), a format defined by Tabellion.
    ErasureRule {
        /// The payload is one object of strict JSON.
        Json = "erasure-json", reading "-", section "payload";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "erasure-canonical", reading "-", section "payload";
        /// Every member is known, present if it is required, and of the right type.
        Member = "erasure-member", reading "-", section "payload";
        /// `sequence` is an integer from 0 to 2^53 − 1.
        Sequence = "erasure-sequence-number", reading "-", section "payload";
        /// No two erasures have the same number. The log enforces this rule with the permit's guard.
        SequenceUnique = "erasure-sequence", reading "-", section "log";
        /// The erasure with the preceding number is in the log.
        Predecessor = "erasure-predecessor", reading "-", section "log";
        /// `entries` holds 1 to 1000 different entry IDs in ascending order.
        Entries = "erasure-entries", reading "-", section "payload";
        /// Every entry named is in the log.
        Known = "erasure-entry-known", reading "-", section "log";
        /// No entry named is a statement of the operator.
        Permanent = "erasure-entry-permanent", reading "-", section "log";
        /// `reason` and `authorized_by` have 1 to 1000 characters.
        Reason = "erasure-reason", reading "-", section "payload";
        /// `rule` consists of at most 64 lower-case letters, digits and `-`.
        Rule = "erasure-rule", reading "-", section "payload";
        /// `at` is `YYYY-MM-DDThh:mm:ss[.f]Z`, a time that exists.
        At = "erasure-at", reading "-", section "payload";
        /// `sub` is the log's origin.
        Subject = "erasure-subject", reading "-", section "statement";
    }
}
