//! Rules of registry versions, policy documents and delegation chains of AgentROA.

use crate::rule::rules;

rules! {
    /// Rules of a version of an Agent Identity Registry.
    RegistryRule {
        /// The payload is one JSON object in UTF-8, of at most 8 MiB, nested at most 8 deep, without repeated members.
        Json = "agentroa-registry-json", reading "R-38", section "8.4";
        /// The payload is its own canonical form (RFC 8785), byte for byte.
        Canonical = "agentroa-registry-canonical", reading "R-38", section "8.4";
        /// The members are those of a registry, and do not contradict each other.
        Document = "agentroa-registry-document", reading "R-38", section "8.4";
        /// `sub` is the `registry_id`.
        Subject = "agentroa-registry-subject", reading "R-38", section "8.4";
        /// `registry_id` is one that the policy lists for `iss`.
        Registry = "agentroa-registry-id", reading "R-38", section "8.4";
        /// Every signature is by an operator that the policy lists for the registry.
        Signature = "agentroa-registry-signature", reading "R-38", section "8.4";
        /// `issued_at` is not before 1970, and at most five minutes after the log's own time.
        IssuedAtFuture = "agentroa-registry-issued-at-future", reading "R-19", section "8.4";
        /// A registry uses an epoch and sequence once. The log enforces this rule with the permit's guard.
        VersionUnique = "agentroa-registry-version-unique", reading "R-46", section "8.4.1";
    }
}

rules! {
    /// Rules of a policy document.
    PolicyDocumentRule {
        /// The payload is one JSON object in UTF-8 without repeated members.
        Json = "agentroa-policy-json", reading "R-21", section "4.2";
        /// The payload is its own canonical form (RFC 8785), byte for byte, so its SHA-256 is the `policy_digest`.
        Canonical = "agentroa-policy-canonical", reading "R-21", section "4.2";
    }
}

rules! {
    /// Rules of a delegation chain.
    ChainRule {
        /// The payload is a JSON array of one root envelope and at most 32 attestations, each with the members of section 4.1
        /// or 5.1, of at most 512 KiB in all. No signature is verified.
        Form = "agentroa-chain-form", reading "R-47", section "5.2";
        /// The payload is its own canonical form (RFC 8785), byte for byte, so its SHA-256 is the `chain_digest` of receipts.
        Canonical = "agentroa-chain-canonical", reading "R-47", section "5.2";
        /// `sub` is the digest of the payload, `sha256:` and lower-case hex.
        Subject = "agentroa-chain-subject", reading "R-47", section "6.1";
        /// `iss` is a gateway that the policy lists for execution receipts.
        Gateway = "agentroa-chain-gateway", reading "R-47", section "6.1";
    }
}
