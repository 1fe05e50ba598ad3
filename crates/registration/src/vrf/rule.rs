//! Rules of VRF statements.
//!
//! Each cites its section of draft-clawbizarre-scitt-vrf-00 and, if the draft is ambiguous, the row of our
//! interpretation in [`vrf`](crate::vrf).

use crate::rule::rules;
use crate::violation::Violation;

rules! {
    /// Rules of a VRF statement.
    VrfRule {
        /// The payload's first byte must agree with the content type: a CBOR byte string for `application/vrf+cbor`,
        /// bare JSON for `application/vrf+json`.
        Form = "vrf-form", reading "1", section "5.1";
        /// The payload is not a CBOR map.
        FormMap = "vrf-form-map", reading "1", section "5.1";
        /// The byte string that contains the JSON has a definite length, the shortest head, and no trailing data.
        ByteString = "vrf-byte-string", reading "1", section "5.3";
        /// The receipt is one JSON object in UTF-8.
        Json = "vrf-json", reading "2", section "5.3";
        /// No object has two members of the same name.
        DuplicateMember = "vrf-duplicate-member", reading "2", section "5.3";
        /// No string contains an unpaired surrogate.
        LoneSurrogate = "vrf-lone-surrogate", reading "2", section "5.3";
        /// Every number is an integer within ±(2^53 − 1), written without `.`, exponent or `-0`.
        Integer = "vrf-integer", reading "2", section "5.3";
        /// Member names are within U+0020..U+D7FF, where all sort orders agree.
        MemberName = "vrf-member-name", reading "2", section "5.3";
        /// The JSON is its own canonical form (RFC 8785), byte for byte.
        Canonical = "vrf-canonical", reading "2", section "5.3";
        /// Labels -70001, -70002 and -70003 are present and text.
        Labels = "vrf-labels", reading "3", section "5.2";
        /// `iss` is the `did:key` of an Ed25519 key, unless the policy admits other issuers.
        IssuerDidKey = "vrf-issuer-did-key", reading "4", section "5.4";
        /// Label -70002 equals `iss`.
        IssuerAgrees = "vrf-issuer-agrees", reading "4", section "5.2";
        /// `kid` is `<did>#<did without "did:key:">`, if `iss` is a did:key.
        Kid = "vrf-kid", reading "4", section "5.4";
        /// `sub`, the agent whose work was verified, is a DID or URN.
        Subject = "vrf-subject", reading "5", section "6.3";
        /// The payload's `subject`, if given, equals `sub`.
        SubjectAgrees = "vrf-subject-agrees", reading "5", section "8.4";
        /// `alg` is EdDSA (-8), or Ed25519 (-19) if the policy admits it.
        Algorithm = "vrf-algorithm", reading "6", section "5.1";
        /// Label -70004 is null or `sha256:` with 64 lower-case hex digits that are not all zero.
        PrevReceiptHash = "vrf-prev-receipt-hash", reading "7", section "5.2";
        /// Position 0 names no predecessor; every later position does.
        Genesis = "vrf-genesis", reading "8", section "5.2";
        /// Label -70005 is an unsigned integer.
        ChainPosition = "vrf-chain-position", reading "9", section "5.2";
        /// A statement with label -70004, a predecessor or null, has a position in label -70005.
        ChainLabels = "vrf-chain-labels", reading "10", section "5.2";
        /// `receipt_id` is a UUID of version 4 in lower case.
        ReceiptId = "vrf-receipt-id", reading "12", section "4.2.1";
        /// Label -70003 equals `receipt_id`.
        ReceiptIdAgrees = "vrf-receipt-id-agrees", reading "12", section "5.2";
        /// An issuer uses a `receipt_id` once. The log enforces this rule with the permit's guard.
        ReceiptIdUnique = "vrf-receipt-id-unique", reading "12", section "4.2.1";
        /// `metadata.structural` is present and a boolean.
        Structural = "vrf-structural", reading "13", section "4.2.5";
        /// A structural receipt has a tier from 0 to 3; any other has none, or a negative one.
        TierStructural = "vrf-tier-structural", reading "13", section "7";
        /// Receipts that are not structural are admitted only if the policy allows them.
        NonStructural = "vrf-non-structural", reading "13", section "7";
        /// The tier is at least the policy's minimum.
        MinimumTier = "vrf-minimum-tier", reading "13", section "6.2";
        /// `total`, `passed`, `failed` and `errors` are present and not negative.
        Counts = "vrf-counts", reading "14", section "4.2.3";
        /// `total` is at least `passed` + `failed` + `errors`.
        Totals = "vrf-totals", reading "14", section "6.2";
        /// The details have no more of any status than the counters.
        Details = "vrf-details", reading "14", section "4.2.3";
        /// A detail's `status` is pass, fail, error or skip.
        DetailStatus = "vrf-detail-status", reading "14", section "4.2.3";
        /// `verdict` is pass, fail, partial or error.
        Verdict = "vrf-verdict", reading "15", section "4.2.1";
        /// The counters agree with the verdict.
        VerdictMeaning = "vrf-verdict-meaning", reading "15", section "4.2.1";
        /// `hashes.output` is present.
        OutputHash = "vrf-output-hash", reading "16", section "6.2";
        /// A hash is `sha256:`, `sha384:` or `sha512:` with the algorithm's number of lower-case hexadecimal digits.
        Hash = "vrf-hash", reading "16", section "4.2.4";
        /// `verified_at` is `YYYY-MM-DDThh:mm:ss[.f]Z`, a time that exists.
        VerifiedAt = "vrf-verified-at", reading "17", section "4.2.1";
        /// `+00:00` instead of `Z` is admitted only if the policy allows it.
        UtcOffset = "vrf-utc-offset", reading "17", section "4.2.1";
        /// `verified_at` is at most five minutes after the log's own time.
        VerifiedAtFuture = "vrf-verified-at-future", reading "17", section "4.2.1";
        /// `task_type` and `sandbox` may have unlisted values of at most 64 characters.
        OpenString = "vrf-open-string", reading "18", section "9.3";
        /// Every member that the draft's tables require is present, and every member that they list has the right type.
        Member = "vrf-member", reading "-", section "4.2";
        /// `vrf_version` is "1.0".
        Version = "vrf-version", reading "20", section "4.2.1";
        /// Label -70001 equals `vrf_version`.
        VersionAgrees = "vrf-version-agrees", reading "20", section "5.2";
        /// The predecessor is this issuer's receipt for this agent at the preceding position.
        ChainMismatch = "vrf-chain-mismatch", reading "10", section "5.2";
        /// A receipt has one successor. The log enforces this rule with the permit's guard.
        ChainFork = "vrf-chain-fork", reading "11", section "5.2";
        /// A position in a chain has one receipt. The log enforces this rule with the permit's guard.
        ChainPositionTaken = "vrf-chain-position-taken", reading "11", section "5.2";
        /// A chain has one first receipt. The log enforces this rule with the permit's guard.
        ChainSecondGenesis = "vrf-chain-second-genesis", reading "11", section "5.2";
        /// In the mode "strict", the predecessor is in the log.
        ChainUnknownPredecessor = "vrf-chain-unknown-predecessor", reading "11", section "5.2";
        /// In the mode "strict", every receipt belongs to a chain.
        ChainRequired = "vrf-chain-required", reading "11", section "5.2";
        /// A receipt is registered by its hash (RFC 9995) only if the policy allows it.
        Redacted = "vrf-redacted", reading "21", section "8.2";
        /// The hash of a receipt is SHA-256 (258: -16) of the byte string of `application/vrf+cbor` (259).
        RedactedEnvelope = "vrf-redacted-envelope", reading "21", section "8.2";
        /// The disclosed receipt has the hash in the statement.
        Disclosure = "vrf-disclosure", reading "21", section "8.2";
    }
}

impl jose::members::Rule for VrfRule {
    const MEMBER: Self = VrfRule::Member;
    type Error = Violation;

    fn broken(self, pointer: String, detail: String) -> Violation {
        self.in_payload(pointer, detail)
    }
}
