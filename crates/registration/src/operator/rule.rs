//! The rules of the operator's actions and approvals, by name.

use crate::rule::rules;

rules! {
    /// A rule of an operator's action or approval (`application/vnd.tabellion.operator-action+json`,
    /// `application/vnd.tabellion.operator-approval+json`), our own documents.
    OperatorRule {
        /// The payload is one object of strict JSON.
        Json = "operator-json", reading "-", section "payload";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "operator-canonical", reading "-", section "payload";
        /// A member is missing, has another type, or is not known.
        Member = "operator-member", reading "-", section "payload";
        /// `action` is `freeze`, `hold` or `release`.
        Action = "operator-action", reading "-", section "payload";
        /// `reason` has 1 to 1000 characters.
        Reason = "operator-reason", reading "-", section "payload";
        /// `entry` is an entry ID.
        Entry = "operator-entry", reading "-", section "payload";
        /// The entry named is in the log.
        Known = "operator-entry-known", reading "-", section "log";
        /// `case` has 1 to 256 bytes, without control characters.
        Case = "operator-case", reading "-", section "payload";
        /// `number` is an integer from 0 to 2^53 − 1: even of a hold, odd of a release.
        Number = "operator-hold-number", reading "-", section "payload";
        /// A number is used once for an entry and case. The log keeps this one: the permit carries the guard.
        NumberUnique = "operator-hold-number-unique", reading "-", section "log";
        /// The hold or release with the number before it is in the log.
        Predecessor = "operator-hold-predecessor", reading "-", section "log";
        /// A log is frozen once. The log keeps this one: the permit carries the guard.
        FrozenOnce = "operator-freeze-once", reading "-", section "log";
        /// `payload_sha256` is a SHA-256 in lower-case hexadecimal.
        PayloadDigest = "operator-approval-payload", reading "-", section "payload";
        /// `content_type` is that of a statement of the operator that can need approvals.
        ContentType = "operator-approval-content-type", reading "-", section "payload";
        /// `expires` is an integer from 1 to 2^53 − 1, and the approval is committed before it, at most 31 days.
        Expires = "operator-approval-expires", reading "-", section "payload";
        /// An operator approves a statement with one expiry once. The log keeps this one: the permit carries the guard.
        ApprovedOnce = "operator-approval-unique", reading "-", section "log";
        /// As many operators as the policy demands have signed or approved the statement; `exp` is the approvals' expiry.
        Approvals = "operator-approvals", reading "-", section "log";
        /// `sub` is the log's origin.
        Subject = "operator-subject", reading "-", section "statement";
    }
}
