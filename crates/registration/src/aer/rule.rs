//! The rules of an execution receipt, by name.
//!
//! Each cites the section of draft-nivalto-agentroa-route-authorization-00 it comes from and, where the draft leaves two readings or none, ours: the
//! table in [`aer`](crate::aer).

use crate::rule::rules;

rules! {
    /// A rule of an AgentROA execution receipt.
    AerRule {
        /// The receipt takes at most 65536 bytes: nothing in it grows.
        Size = "aer-size", reading "R-8", section "6.1";
        /// The payload is one JSON object in UTF-8, nested no deeper than a receipt is.
        Json = "aer-json", reading "R-32", section "6.1";
        /// No object has two members of one name.
        DuplicateMember = "aer-duplicate-member", reading "R-32", section "6.1";
        /// No string holds half a surrogate pair.
        LoneSurrogate = "aer-lone-surrogate", reading "R-32", section "6.1";
        /// The payload is its own canonical form (RFC 8785), byte for byte.
        Canonical = "aer-canonical", reading "R-32", section "6.3";
        /// A member that is required is missing, or a member has another type than the draft gives it.
        Member = "aer-member", reading "R-8", section "6.1";
        /// Every object is closed: no member beyond the draft's and the optional ones of R-8.
        UnknownMember = "aer-unknown-member", reading "R-8", section "6.1";
        /// An optional member is left out, never null.
        Null = "aer-null", reading "R-28", section "6.1";
        /// A name has 1 to 256 characters, `device_attestation_ref` 1 to 8192, none of them a control character; what was asked for
        /// and denied is told as it was asked.
        Text = "aer-text", reading "R-8", section "6.1";
        /// A code or reason of the gateway's is 1 to 64 letters, digits and `_ . : + -`.
        Token = "aer-token", reading "R-8", section "6.1";
        /// A depth, hop, epoch or sequence is a whole number from 0 to 2^53 − 1.
        Count = "aer-count", reading "R-8", section "6.1";
        /// `schema_version` is "1.0".
        SchemaVersion = "aer-schema-version", reading "-", section "6.1";
        /// `aer_id` is `aer:` and 16 lower-case hex digits.
        Id = "aer-id", reading "R-24", section "6.1";
        /// A gateway uses an `aer_id` once. The log keeps this one: the permit carries the guard.
        IdUnique = "aer-id-unique", reading "R-24", section "6.1";
        /// `produced_at` is a time in UTC that exists: `YYYY-MM-DDThh:mm:ss[.f]`, then `Z` or `+00:00`.
        ProducedAt = "aer-produced-at", reading "R-19", section "6.1";
        /// `produced_at` is not more than five minutes after the log's own time.
        ProducedAtFuture = "aer-produced-at-future", reading "R-19", section "6.1";
        /// `enforcement_outcome` is permit or deny.
        Outcome = "aer-outcome", reading "-", section "6.1";
        /// `enforcement_mode` is there, and normal or degraded.
        Mode = "aer-mode", reading "R-28", section "6.1";
        /// Permits given in degraded operation are admitted only where the policy says so.
        Degraded = "aer-degraded", reading "R-29", section "8.4.3";
        /// `degraded_reason` is there only when the mode is degraded, and then always if the policy asks for it.
        DegradedReason = "aer-degraded-reason", reading "R-29", section "8.4.3";
        /// `denial_reason` is there when the outcome is deny, and only then; so may `denial_detail` be.
        Denial = "aer-denial", reading "R-17", section "6.1";
        /// `denial_reason` is one of the twelve of section 6.1, as they are spelt there.
        DenialReason = "aer-denial-reason", reading "R-17", section "6.1";
        /// `revocation` is there only when the denial's reason is that the envelope was revoked.
        Revocation = "aer-revocation", reading "R-8", section "8.4.1";
        /// `agent_id` is `aha:` and three segments.
        AgentId = "aer-agent-id", reading "R-25", section "A.1";
        /// `mcp_server_id` holds no dot.
        ServerId = "aer-server-id", reading "R-13", section "2";
        /// `capability` is `mcp:<server>.<tool>`.
        Capability = "aer-capability", reading "R-13", section "2";
        /// `capability`, split at its first dot, names the server and the tool of the action.
        CapabilityAgrees = "aer-capability-agrees", reading "R-13", section "6.1";
        /// A digest is `sha256:` and 64 lower-case hex digits.
        Digest = "aer-digest", reading "R-23", section "6.1";
        /// `root_envelope_id` is `env:` and 16 lower-case hex digits.
        RootEnvelope = "aer-root-envelope-id", reading "R-24", section "6.1";
        /// What stands for "no usable root" stands in every place of the receipt, or in none.
        NoRoot = "aer-no-root", reading "R-8", section "6.1";
        /// `signatures` has one to eight members.
        Signatures = "aer-signatures", reading "R-1", section "6.1";
        /// `alg` is "EdDSA".
        SignatureAlgorithm = "aer-signature-alg", reading "R-36", section "6.1";
        /// `sig` is the 64 bytes of an Ed25519 signature in bare base64url without padding.
        SignatureForm = "aer-signature-form", reading "R-23", section "6.1";
        /// Each signature is by a key that the policy lists for the gateway.
        Signer = "aer-signer", reading "R-1", section "6.1";
        /// Each signature verifies, strictly, over the canonical form without `signatures`.
        Signature = "aer-signature", reading "R-36", section "6.1";
        /// `iss` is a gateway that the policy lists.
        Gateway = "aer-gateway", reading "R-1", section "6.1";
        /// `gateway_id` is one that the policy lists for `iss`.
        GatewayAgrees = "aer-gateway-agrees", reading "R-1", section "6.1";
        /// `sub` is the `aer_id`, or the session unless there is none.
        Subject = "aer-subject", reading "R-35", section "6.3";
    }
}
