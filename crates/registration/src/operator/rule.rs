//! Rules of operator actions and approvals.

use crate::rule::rules;

rules! {
    /// Rules of an operator action or approval (`application/vnd.tabellion.operator-action+json`,
    /// `application/vnd.tabellion.operator-approval+json`), formats defined by Tabellion.
    OperatorRule {
        /// The payload is one object of strict JSON.
        Json = "operator-json", reading "-", section "payload";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "operator-canonical", reading "-", section "payload";
        /// Every member is known, present, and of the right type.
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
        /// `number` is an integer from 0 to 2^53 − 1: even for a hold, odd for a release.
        Number = "operator-hold-number", reading "-", section "payload";
        /// No two holds or releases of an entry and case have the same number. The log enforces this rule with the
        /// permit's guard.
        NumberUnique = "operator-hold-number-unique", reading "-", section "log";
        /// The hold or release with the preceding number is in the log.
        Predecessor = "operator-hold-predecessor", reading "-", section "log";
        /// A log is frozen once. The log enforces this rule with the permit's guard.
        FrozenOnce = "operator-freeze-once", reading "-", section "log";
        /// `payload_sha256` is a SHA-256 in lower-case hexadecimal.
        PayloadDigest = "operator-approval-payload", reading "-", section "payload";
        /// `content_type` is that of an operator statement that can require approvals.
        ContentType = "operator-approval-content-type", reading "-", section "payload";
        /// `expires` is an integer from 1 to 2^53 − 1, and the approval is committed before it, at most 31 days
        /// earlier.
        Expires = "operator-approval-expires", reading "-", section "payload";
        /// An operator approves a statement with one expiry once. The log enforces this rule with the permit's guard.
        ApprovedOnce = "operator-approval-unique", reading "-", section "log";
        /// As many operators as the policy requires have signed or approved the statement; `exp` is the approvals'
        /// expiry.
        Approvals = "operator-approvals", reading "-", section "log";
        /// `sub` is the log's origin.
        Subject = "operator-subject", reading "-", section "statement";
    }
}
