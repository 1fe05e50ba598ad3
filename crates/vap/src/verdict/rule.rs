//! Rules of wire Verdicts.

use jose::BrokenRule;
use jose::json::JsonErrorKind;
use jose::members::{JsonRule, Rule};

jose::rules! {
    /// Rules of a wire Verdict (`application/vap-verdict+json`).
    VerdictRule {
        /// The payload is one JSON object in UTF-8.
        Json = "vap-verdict-json", reading "V-22", section "8";
        /// No object has two members of the same name.
        DuplicateMember = "vap-verdict-duplicate-member", reading "V-22", section "15";
        /// No string contains an unpaired surrogate.
        LoneSurrogate = "vap-verdict-lone-surrogate", reading "V-22", section "15";
        /// Every member that the schema requires is present, and every member that it lists has the right type.
        Member = "vap-verdict-member", reading "4.1", section "8";
        /// `vap` is "0.1".
        Version = "vap-verdict-version", reading "4.1", section "8";
        /// `type` is "verdict".
        Type = "vap-verdict-type", reading "4.1", section "8";
        /// `session_id`, `reason` and `question` have the lengths in the schema.
        Length = "vap-verdict-length", reading "4.1", section "8";
        /// `in_response_to` is scope_commitment, intent_call or scope_amendment.
        InResponseTo = "vap-verdict-in-response-to", reading "4.1", section "8";
        /// `verdict` is served, clarify, downgraded or denied.
        Verdict = "vap-verdict-verdict", reading "4.1", section "8";
        /// `method` is static, static+policy, static+semantic or static+policy+semantic.
        Method = "vap-verdict-method", reading "4.1", section "8";
        /// `semantic_trigger` is one of the nine values in the schema.
        SemanticTrigger = "vap-verdict-semantic-trigger", reading "4.1", section "8";
        /// `risk_score` and `confidence` are from 0 to 1.
        Score = "vap-verdict-score", reading "4.1", section "8";
        /// A digest is an algorithm in lower case, a colon and hexadecimal digits.
        Digest = "vap-verdict-digest", reading "4.1", section "8";
        /// A verdict `clarify` has a `clarification`.
        Clarification = "vap-verdict-clarification", reading "4.1", section "8";
        /// `expires_at` is a time of RFC 3339 with an offset.
        ExpiresAt = "vap-verdict-expires-at", reading "V-15", section "8";
        /// A signed message contains no number that its canonical form would change.
        NotCanonical = "vap-verdict-not-canonical", reading "V-22", section "15";
        /// `signature` is a compact JWS.
        SignatureForm = "vap-verdict-signature-form", reading "V-20", section "8";
        /// The JWS header has `alg` and `kid`, and optionally `typ`, `iat`, `jti`, `aud` and `req`: no parameters that
        /// select a key or change the verified content.
        SignatureHeader = "vap-verdict-signature-header", reading "V-20", section "8";
        /// The JWS header's `alg` is EdDSA, Ed25519 or ES256.
        SignatureAlgorithm = "vap-verdict-signature-algorithm", reading "V-20", section "8";
        /// An attached payload is the canonical message without `signature`, byte for byte.
        SignaturePayload = "vap-verdict-signature-payload", reading "V-20", section "15";
        /// `kid` names a key that the policy lists for a verifier.
        SignatureKey = "vap-verdict-signature-key", reading "V-20", section "15";
        /// The signature verifies with that key.
        Signature = "vap-verdict-signature", reading "V-20", section "15";
        /// A Verdict is signed, if the policy requires it.
        SignatureRequired = "vap-verdict-signature-required", reading "V-20", section "8";
    }
}

impl Rule for VerdictRule {
    const MEMBER: Self = VerdictRule::Member;
    type Error = BrokenRule;

    fn broken(self, pointer: String, detail: String) -> BrokenRule {
        BrokenRule { rule: self.name(), pointer, detail }
    }
}

impl JsonRule for VerdictRule {
    fn of_json(kind: &JsonErrorKind) -> Self {
        match kind {
            JsonErrorKind::Duplicate(_) => VerdictRule::DuplicateMember,
            JsonErrorKind::LoneSurrogate => VerdictRule::LoneSurrogate,
            _ => VerdictRule::Json,
        }
    }
}
