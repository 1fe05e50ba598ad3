//! Rules of execution receipts.
//!
//! Each cites its section of draft-nivalto-agentroa-route-authorization-00 and, if the draft is ambiguous or silent,
//! the row of our interpretation in [`aer`](crate::aer). The rules that involve a log, its policy or
//! the statement's header are checked by the crate `registration`.

use jose::BrokenRule;
use jose::json::JsonErrorKind;
use jose::members::{JsonRule, Rule};

jose::rules! {
    /// Rules of an AgentROA execution receipt.
    AerRule {
        /// The receipt has at most 65536 bytes, because none of its members is unbounded.
        Size = "aer-size", reading "R-8", section "6.1";
        /// The payload is one JSON object in UTF-8, nested at most 8 deep.
        Json = "aer-json", reading "R-32", section "6.1";
        /// No object has two members of the same name.
        DuplicateMember = "aer-duplicate-member", reading "R-32", section "6.1";
        /// No string contains an unpaired surrogate.
        LoneSurrogate = "aer-lone-surrogate", reading "R-32", section "6.1";
        /// The payload is its own canonical form (RFC 8785), byte for byte.
        Canonical = "aer-canonical", reading "R-32", section "6.3";
        /// Every required member is present, and every member has the type in the draft.
        Member = "aer-member", reading "R-8", section "6.1";
        /// Objects have no members other than the draft's and the optional ones of R-8.
        UnknownMember = "aer-unknown-member", reading "R-8", section "6.1";
        /// An absent optional member is left out, never null.
        Null = "aer-null", reading "R-28", section "6.1";
        /// A name has 1 to 256 characters, `device_attestation_ref` 1 to 8192, without control characters. The tool's
        /// name in a denial is not restricted.
        Text = "aer-text", reading "R-8", section "6.1";
        /// A gateway's code or reason has 1 to 64 letters, digits and `_ . : + -`.
        Token = "aer-token", reading "R-8", section "6.1";
        /// A depth, hop, epoch or sequence is an integer from 0 to 2^53 − 1.
        Count = "aer-count", reading "R-8", section "6.1";
        /// `schema_version` is "1.0".
        SchemaVersion = "aer-schema-version", reading "-", section "6.1";
        /// `aer_id` is `aer:` and 16 lower-case hex digits.
        Id = "aer-id", reading "R-24", section "6.1";
        /// A gateway uses an `aer_id` once. The log enforces this rule with the permit's guard.
        IdUnique = "aer-id-unique", reading "R-24", section "6.1";
        /// `produced_at` is an existing time in UTC: `YYYY-MM-DDThh:mm:ss[.f]`, followed by `Z` or `+00:00`.
        ProducedAt = "aer-produced-at", reading "R-19", section "6.1";
        /// `produced_at` is at most five minutes after the log's own time.
        ProducedAtFuture = "aer-produced-at-future", reading "R-19", section "6.1";
        /// `enforcement_outcome` is `permit` or `deny`.
        Outcome = "aer-outcome", reading "-", section "6.1";
        /// `enforcement_mode` is present, and `normal` or `degraded`.
        Mode = "aer-mode", reading "R-28", section "6.1";
        /// Permits in degraded operation are admitted only if the policy allows them.
        Degraded = "aer-degraded", reading "R-29", section "8.4.3";
        /// `degraded_reason` is present only in degraded operation, and required there if the policy demands it.
        DegradedReason = "aer-degraded-reason", reading "R-29", section "8.4.3";
        /// `denial_reason` is present if and only if the outcome is `deny`; `denial_detail` is optional then.
        Denial = "aer-denial", reading "R-17", section "6.1";
        /// `denial_reason` is one of the twelve values in section 6.1.
        DenialReason = "aer-denial-reason", reading "R-17", section "6.1";
        /// `revocation` is present only if the denial's reason is `envelope_revoked`.
        Revocation = "aer-revocation", reading "R-8", section "8.4.1";
        /// `agent_id` is `aha:` and three segments.
        AgentId = "aer-agent-id", reading "R-25", section "A.1";
        /// `mcp_server_id` contains no dot.
        ServerId = "aer-server-id", reading "R-13", section "2";
        /// `capability` is `mcp:<server>.<tool>`.
        Capability = "aer-capability", reading "R-13", section "2";
        /// `capability`, split at its first dot, names the server and the tool of the action.
        CapabilityAgrees = "aer-capability-agrees", reading "R-13", section "6.1";
        /// A digest is `sha256:` and 64 lower-case hex digits.
        Digest = "aer-digest", reading "R-23", section "6.1";
        /// `root_envelope_id` is `env:` and 16 lower-case hex digits.
        RootEnvelope = "aer-root-envelope-id", reading "R-24", section "6.1";
        /// The placeholders for a missing root are either all present or all absent.
        NoRoot = "aer-no-root", reading "R-8", section "6.1";
        /// `signatures` has one to eight elements.
        Signatures = "aer-signatures", reading "R-1", section "6.1";
        /// `alg` is `EdDSA`.
        SignatureAlgorithm = "aer-signature-alg", reading "R-36", section "6.1";
        /// `sig` is the base64url of a 64-byte Ed25519 signature, without padding or prefix.
        SignatureForm = "aer-signature-form", reading "R-23", section "6.1";
        /// Each signature is by a key that the policy lists for the gateway.
        Signer = "aer-signer", reading "R-1", section "6.1";
        /// Each signature verifies, strictly, over the canonical form without `signatures`.
        Signature = "aer-signature", reading "R-36", section "6.1";
        /// `iss` is a gateway that the policy lists.
        Gateway = "aer-gateway", reading "R-1", section "6.1";
        /// `gateway_id` is one that the policy lists for `iss`.
        GatewayAgrees = "aer-gateway-agrees", reading "R-1", section "6.1";
        /// `sub` is the `aer_id`, or the session if there is one.
        Subject = "aer-subject", reading "R-35", section "6.3";
    }
}

impl Rule for AerRule {
    const MEMBER: Self = AerRule::Member;
    type Error = BrokenRule;

    fn broken(self, pointer: String, detail: String) -> BrokenRule {
        BrokenRule { rule: self.name(), pointer, detail }
    }
}

impl JsonRule for AerRule {
    fn of_json(kind: &JsonErrorKind) -> Self {
        match kind {
            JsonErrorKind::Duplicate(_) => AerRule::DuplicateMember,
            JsonErrorKind::LoneSurrogate => AerRule::LoneSurrogate,
            JsonErrorKind::NumberRange => AerRule::Count,
            _ => AerRule::Json,
        }
    }
}
