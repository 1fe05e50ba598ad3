//! The first policies that `tabellion init` and `serve --dev` write.

use scitt::PublicKey;
use toml::Value;

use super::index::index_table_digest;

/// The log and the operator of a new policy.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The log's `iss`, a URL.
    pub iss: &'a str,
    /// The log's origin, a name without scheme.
    pub origin: &'a str,
    /// The operator's public key.
    pub operator: &'a PublicKey,
    /// The public key that signs heads of the search index.
    pub index: &'a PublicKey,
}

/// Seconds between two heads of the search index.
const INDEX_EVERY: u64 = 60;

/// Returns a first policy in TOML with comments, which admits no issuer until some are listed.
pub fn for_init(log: Identity<'_>) -> String {
    format!("{}{}{}{}", head(log), INIT_ISSUERS, types("[]"), gateway_types("[]", "[]", true))
}

/// An issuer that a development log admits, with its key.
#[derive(Clone, Copy, Debug)]
pub struct Trusted<'a> {
    /// The issuer's `iss`.
    pub iss: &'a str,
    /// The issuer's public key.
    pub key: &'a PublicKey,
}

/// Returns the policy of a development log: it admits the issuer and the gateway created with it, and any did:key for
/// VRF receipts.
pub fn for_dev(log: Identity<'_>, issuer: Trusted<'_>, gateway: Trusted<'_>) -> String {
    let entry = |trusted: Trusted<'_>| {
        format!("[[issuer]]\niss = {}\nkeys = [{}]\n\n", quoted(trusted.iss), quoted(&trusted.key.did_key()))
    };
    let issuers = format!("{}{}[did]\nkey = \"open\"\njwk = []\n\n", entry(issuer), entry(gateway));
    let listed = format!("[{}]", quoted(issuer.iss));
    let gateways = format!("[{}, {}]", quoted(issuer.iss), quoted(gateway.iss));
    let verifiers =
        format!("[{{ id = {}, keys = [{}] }}]", quoted(issuer.iss), quoted(&issuer.key.did_key()));
    format!("{}{issuers}{}{}", head(log), types(&listed), gateway_types(&gateways, &verifiers, false))
}

fn head(log: Identity<'_>) -> String {
    format!(
        "# The registration policy of this log: who may register what. It is itself an entry of the log.\n\
         # To change it, edit it, add 1 to `revision`, and send SIGHUP to the service (or start it again).\n\n\
         iss = {}\n\
         origin = {}\n\
         revision = 0\n\
         leaf = \"sha256-of-statement\"\n\n\
         # Whose signature makes a policy (PEM, did:key, or a COSE_Key in base64url). Losing every operator key means\n\
         # that this policy is the last.\n\
         [[operator]]\n\
         key = {}\n\n\
         # The log commits to its search index, at most once in `every` seconds, so that answers of a search can be proven to\n\
         # be complete. These keys sign nothing else.\n\
         [index]\n\
         table = \"sha256:{}\"\n\
         keys = [{}]\n\
         every = {INDEX_EVERY}\n\n",
        quoted(log.iss),
        quoted(log.origin),
        quoted(&log.operator.did_key()),
        index_table_digest(),
        quoted(&log.index.did_key())
    )
}

const INIT_ISSUERS: &str = r#"# Issuers and their public keys: PEM, did:key, did:jwk, a JWK, or a COSE_Key in base64url or hexadecimal.
# A statement names its key by kid; without `kid` here that is the COSE_Key's own, or else the RFC 9679 thumbprint.
#
# [[issuer]]
# iss = "https://issuer.example"
# keys = [ { key = "did:key:z6Mk…", kid = "key-1" } ]

# Issuers whose name is their key: "open" for anyone, or a list.
[did]
key = []
jwk = []

# Issuers known by certificate.
#
# [[anchor]]
# name = "example-ca"
# roots = ["""
# -----BEGIN CERTIFICATE-----
# …
# -----END CERTIFICATE-----
# """]
# san = true                            # iss may be a URI or DNS name of the certificate, or a did:x509 that it is
# issuers = ["https://*.example"]       # issuers that any certificate under these roots may speak for
# eku = "1.3.6.1.5.5.7.3.3"             # optional: the extended key usage a certificate must have

"#;

fn types(issuers: &str) -> String {
    format!(
        "# What is admitted, by content type. Everything else is refused. `*` in a name stands for any run of characters;\n\
         # an empty list stands for every issuer above, or every algorithm. A type without parameters admits it with any.\n\
         # Conditions of your own, required headers, retention: `tabellion help policies`.\n\
         [[type]]\n\
         content_type = \"application/vrf+cbor\"\n\
         issuers = [\"did:key:*\"]\n\
         algorithms = [\"EdDSA\"]\n\
         max_size = 262144\n\n\
         [type.vrf]\n\
         min_tier = 0\n\
         allow_non_structural = false\n\
         allow_ed25519_algorithm = false\n\
         allow_numeric_offset = false\n\
         chain = \"linked\"          # \"off\", \"linked\": no forks, \"strict\": no gaps either\n\
         allow_redacted = false      # by their hash alone: the log knows neither verdict nor tier\n\n\
         [[type]]\n\
         content_type = \"application/vrf+json\"\n\
         issuers = [\"did:key:*\"]\n\
         algorithms = [\"EdDSA\"]\n\
         max_size = 262144\n\n\
         [type.vrf]                  # as above\n\
         chain = \"linked\"\n\n\
         [[type]]\n\
         content_type = \"application/aer+json\"\n\
         max_size = 65536\n\
         hash_envelope = true        # by its hash alone: the receipt stays with its gateway\n\n\
         [type.aer]\n\
         did_key_gateways = true     # an issuer that is a did:key may be a gateway, of that name and with that key\n\
         allow_degraded = false      # permits of a gateway that could not reach its registry\n\
         require_degraded_reason = false # refuse such decisions if they do not say why\n\
         gateway = []                # {{ iss = \"https://gateway.example\", id = \"gateway-1\", keys = [\"did:key:z6Mk…\"] }}\n\n\
         # The delegation chains that receipts name, of the same gateways.\n\
         [[type]]\n\
         content_type = \"application/agentroa-chain+json\"\n\
         max_size = 1048576\n\n\
         [[type]]\n\
         content_type = \"application/agentroa-registry+json\"\n\
         issuers = {issuers}\n\n\
         [type.agentroa_registry]    # the agents, keys and revocations that execution receipts rest on\n\
         registry = []               # {{ id = \"registry-1\", iss = \"https://issuer.example\", keys = [\"did:key:z6Mk…\"] }}\n\n\
         [[type]]\n\
         content_type = \"application/agentroa-policy+json\"\n\
         issuers = {issuers}\n\
         max_size = 1048576\n\n\
         [[type]]\n\
         content_type = \"application/agent-conversation\"\n\
         issuers = {issuers}\n\
         max_size = 8388608\n\
         detached = true             # the record beside the statement\n\
         hash_envelope = true        # by its hash alone: the record stays with whoever made it\n\n\
         [type.conversation]\n\
         versions = [\"3.\"]           # what `version` may begin with\n\
         trace_metadata_label = 100  # held against the record, and not stored\n\
         accept_application_json = false\n\
         allow_cbor_tag_4149 = false\n\n\
         [[type]]\n\
         content_type = \"application/json\"\n\
         issuers = {issuers}\n\
         max_size = 1048576\n\
         detached = true             # the payload beside the statement; keep_payload = false drops it\n\
         hash_envelope = true\n\n\
         [[type]]\n\
         content_type = \"application/octet-stream\"\n\
         issuers = {issuers}\n\
         max_size = 1048576\n\
         detached = true\n\
         hash_envelope = true\n\n\
         [[type]]\n\
         content_type = \"text/plain\"\n\
         issuers = {issuers}\n\
         max_size = 1048576\n"
    )
}

/// Returns the content types of a gateway, and those of log heads that agents keep.
fn gateway_types(issuers: &str, verifiers: &str, signed: bool) -> String {
    format!(
        "\n\
         [[type]]\n\
         content_type = \"application/vap-verdict+json\"\n\
         issuers = {issuers}\n\n\
         [type.vap_verdict]\n\
         require_signature = {signed}\n\
         verifier = {verifiers}               # whose signatures: {{ id = \"gateway-1\", keys = [\"did:key:z6Mk…\"] }}\n\n\
         [[type]]\n\
         content_type = \"application/vap-audit+json\"\n\
         issuers = {issuers}\n\n\
         [type.vap_audit]\n\
         require_decision = false    # an outcome may come before its decision: gateways send at least once\n\n\
         [[type]]\n\
         content_type = \"application/jwk-set+json\"\n\
         issuers = {issuers}\n\n\
         # An agent's own log head: bytes to us.\n\
         [[type]]\n\
         content_type = \"application/cll-checkpoint+cbor\"\n\
         issuers = {issuers}\n\
         max_size = 65536\n\n\
         [[type]]\n\
         content_type = \"text/x-c2sp-checkpoint\"\n\
         issuers = {issuers}\n\
         max_size = 65536\n"
    )
}

/// Formats a TOML string.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
