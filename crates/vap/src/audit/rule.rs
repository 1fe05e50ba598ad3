//! Rules of a gateway's audit records.

use jose::BrokenRule;
use jose::json::JsonErrorKind;
use jose::members::{JsonRule, Rule};

jose::rules! {
    /// Rules of an audit record (`application/vap-audit+json`).
    AuditRule {
        /// The payload is one JSON object in UTF-8.
        Json = "vap-audit-json", reading "V-22", section "14";
        /// No object has two members of the same name.
        DuplicateMember = "vap-audit-duplicate-member", reading "V-22", section "14";
        /// No string contains an unpaired surrogate.
        LoneSurrogate = "vap-audit-lone-surrogate", reading "V-22", section "14";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "vap-audit-canonical", reading "A-1", section "15";
        /// Every member that the record's kind requires is present, and every member has the right type.
        Member = "vap-audit-member", reading "A-1", section "14";
        /// The record has no members that its kind does not list.
        UnknownMember = "vap-audit-unknown-member", reading "A-1", section "14";
        /// `version` is "1".
        Version = "vap-audit-version", reading "A-1", section "14";
        /// `kind` is commitment, amendment, decision, outcome, denials, tools or closed.
        Kind = "vap-audit-kind", reading "A-1", section "14";
        /// Identifiers have 1 to 256 characters without control characters; `gateway` and `stream`, which equal the
        /// statement's claims, have 1 to 8192 characters of any kind; `aer_id` is `aer:` and 16 lower-case hex digits.
        Identifier = "vap-audit-identifier", reading "A-2", section "14";
        /// `gateway` equals `iss`.
        Gateway = "vap-audit-gateway", reading "A-2", section "14";
        /// `stream` equals `sub`: a session, or `unbound:` and an instance, never `none`.
        Stream = "vap-audit-stream", reading "A-2", section "14";
        /// `seq` is an integer from 0 to 2^53 − 1.
        Sequence = "vap-audit-sequence", reading "A-3", section "14";
        /// A gateway uses a `seq` once in a stream. The log enforces this rule with the permit's guard.
        SequenceUnique = "vap-audit-sequence-unique", reading "A-3", section "14";
        /// `at` is `YYYY-MM-DDThh:mm:ss[.f]Z`, a time that exists.
        At = "vap-audit-at", reading "V-15", section "14";
        /// `at` is at most five minutes after the log's own time.
        AtFuture = "vap-audit-at-future", reading "V-15", section "14";
        /// `verdict` is served, clarify, downgraded or denied.
        Verdict = "vap-audit-verdict", reading "A-1", section "14";
        /// `method`, `semantic_trigger`, `risk_score` and `confidence` are as in a wire Verdict.
        Verification = "vap-audit-verification", reading "A-1", section "14";
        /// Checks and reasons are codes of at most 64 letters, digits and `_ . : + -`.
        Code = "vap-audit-code", reading "V-40", section "14";
        /// `policy_digest` is `sha256:` and 64 lower-case hex digits.
        PolicyDigest = "vap-audit-policy-digest", reading "A-1", section "14";
        /// Meters are decimal strings of at least 0; there are at most 64.
        Meter = "vap-audit-meter", reading "A-1", section "14";
        /// A commitment is `hmac-sha256:` and 64 lower-case hex digits, for a member that the record's kind commits to.
        Commitment = "vap-audit-commitment", reading "V-40", section "14";
        /// `canon`, if given, is "raw".
        Canon = "vap-audit-canon", reading "V-22", section "14";
        /// `status` is executed, errored, refused or unknown.
        Status = "vap-audit-status", reading "A-4", section "14";
        /// `backLink` is an entry ID: 64 lower-case hex digits.
        BackLink = "vap-audit-back-link", reading "A-5", section "14";
        /// `backLink` names a decision of the same gateway and stream.
        NoDecision = "vap-audit-no-decision", reading "A-5", section "14";
        /// The decision is in the log, if the policy requires it.
        DecisionRequired = "vap-audit-decision-required", reading "A-4", section "14";
        /// A decision has one outcome. The log enforces this rule with the permit's guard.
        OutcomeUnique = "vap-audit-outcome-unique", reading "A-4", section "14";
    }
}

impl Rule for AuditRule {
    const MEMBER: Self = AuditRule::Member;
    type Error = BrokenRule;

    fn broken(self, pointer: String, detail: String) -> BrokenRule {
        BrokenRule { rule: self.name(), pointer, detail }
    }
}

impl JsonRule for AuditRule {
    fn of_json(kind: &JsonErrorKind) -> Self {
        match kind {
            JsonErrorKind::Duplicate(_) => AuditRule::DuplicateMember,
            JsonErrorKind::LoneSurrogate => AuditRule::LoneSurrogate,
            _ => AuditRule::Json,
        }
    }
}
