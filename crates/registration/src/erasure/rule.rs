//! The rules of an erasure, by name.

use crate::rule::rules;

rules! {
    /// A rule of an erasure statement (`application/vnd.tabellion.erasure+json`), our own document.
    ErasureRule {
        /// The payload is one object of strict JSON.
        Json = "erasure-json", reading "-", section "-";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "erasure-canonical", reading "-", section "-";
        /// A member is missing, has another type, or is not known.
        Member = "erasure-member", reading "-", section "-";
        /// `sequence` is an integer from 0 to 2^53 − 1.
        Sequence = "erasure-sequence-number", reading "-", section "-";
        /// Erasures count by one: a number is used once. The log keeps this one: the permit carries the guard.
        SequenceUnique = "erasure-sequence", reading "-", section "-";
        /// The erasure before it is in the log.
        Predecessor = "erasure-predecessor", reading "-", section "-";
        /// `entries` are 1 to 1000 entry IDs in ascending order, each once.
        Entries = "erasure-entries", reading "-", section "-";
        /// Every entry named is in the log.
        Known = "erasure-entry-known", reading "-", section "-";
        /// No entry named is a policy or an erasure.
        Permanent = "erasure-entry-permanent", reading "-", section "-";
        /// `reason` and `authorized_by` have 1 to 1000 characters.
        Reason = "erasure-reason", reading "-", section "-";
        /// `rule` is a word of lower-case letters, digits and `-`, at most 64.
        Rule = "erasure-rule", reading "-", section "-";
        /// `at` is `YYYY-MM-DDThh:mm:ss[.f]Z`, a time that exists.
        At = "erasure-at", reading "-", section "-";
        /// `sub` is the log's origin.
        Subject = "erasure-subject", reading "-", section "-";
        /// The payload is in the statement.
        Attached = "erasure-attached", reading "-", section "-";
    }
}
