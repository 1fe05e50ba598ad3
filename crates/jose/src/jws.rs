//! Compact JSON Web Signatures (RFC 7515) in one strict profile, up to the point where a key is needed.
//!
//! The profile is that of signatures inside canonical JSON (VAP, reading V-20): the payload is known to the reader, so it is
//! detached (`header..signature`) or attached with equal bytes; `alg` is EdDSA, Ed25519 or ES256; `kid` is required. A
//! header may hold nothing that changes what is verified or with which key: no `jwk`, `jku`, `x5u`, `crit`, `b64`, and
//! nothing at all that its reader did not ask for.
//!
//! Not here: the signature itself and whose key it must be (`scitt::PublicKey::verify_jws`), what `iat`, `jti` or `aud`
//! are good for, and the JSON serialisations of RFC 7515.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use crate::json::{JsonError, Limits, parse_strict};

/// The longest signature text, payload and all.
pub const MAX_JWS_BYTES: usize = 8 << 20;
/// The longest protected header, in bytes of JSON.
pub const MAX_HEADER_BYTES: usize = 8 << 10;
/// The longest `kid`, `typ`, `jti` or `aud`, in characters.
pub const MAX_HEADER_TEXT: usize = 1024;
/// Where a NumericDate ends: 2^53 seconds.
const MAX_NUMERIC_DATE: f64 = 9_007_199_254_740_992.0;
/// Header members that choose a key or change what is verified: refused by name even where others would be ignored.
const FORBIDDEN: [&str; 9] = ["jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64", "zip"];

/// The algorithms of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwsAlgorithm {
    /// `EdDSA` (RFC 8037): with an Ed25519 key, here.
    EdDsa,
    /// `Ed25519` (RFC 9864).
    Ed25519,
    /// `ES256`.
    Es256,
}

impl JwsAlgorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::EdDsa, Self::Ed25519, Self::Es256];

    /// The value of `alg`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Ed25519 => "Ed25519",
            Self::Es256 => "ES256",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// Why a text is no signature of this profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// It is not three parts with two dots between them, or too long.
    #[error("a compact JWS is header.payload.signature, or header..signature")]
    NotCompact,
    /// A part is not base64url without padding, or has a second spelling.
    #[error("the {0} is not base64url without padding")]
    Base64(&'static str),
    /// The header is not strict JSON.
    #[error("the protected header is not strict JSON: {0}")]
    Json(JsonError),
    /// The header is no object.
    #[error("the protected header is not an object")]
    NotAnObject,
    /// The header chooses its own key, or changes what is verified.
    #[error("the protected header may not hold {0:?}")]
    Forbidden(String),
    /// The header holds what its reader does not know.
    #[error("the protected header holds {0:?}, which is not known here")]
    Unknown(String),
    /// A header member is missing, or of the wrong type.
    #[error("the protected header needs {0:?} as {1}")]
    Member(&'static str, &'static str),
    /// `alg` is none of the profile's.
    #[error("alg {0:?} is not one of EdDSA, Ed25519, ES256")]
    Algorithm(String),
    /// The payload that came along is another one.
    #[error("the attached payload is not the canonical message")]
    PayloadDiffers,
}

/// A signature whose form is sound. Nothing is proven before a key says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Jws {
    header: Map<String, Value>,
    algorithm: JwsAlgorithm,
    kid: String,
    signing_input: Vec<u8>,
    signature: Vec<u8>,
    attached: bool,
}

impl Jws {
    /// Opens a signature over `payload`. Besides `alg` and `kid` the header may hold `typ`, `iat`, `jti` and `aud`, and the
    /// `extra` texts that its reader knows.
    pub fn open(text: &str, payload: &[u8], extra: &[&str]) -> Result<Self, JwsError> {
        let (protected, attached, signature) = split(text)?;
        let header = header(&decode("protected header", protected)?, extra)?;
        let encoded = BASE64URL_NOPAD.encode(payload);
        if !attached.is_empty() && attached != encoded {
            decode("payload", attached)?;
            return Err(JwsError::PayloadDiffers);
        }
        Ok(Self {
            algorithm: algorithm(&header)?,
            kid: required_text(&header, "kid")?,
            header,
            signing_input: [protected.as_bytes(), b".", encoded.as_bytes()].concat(),
            signature: decode("signature", signature)?,
            attached: !attached.is_empty(),
        })
    }

    /// How it claims to be signed.
    pub const fn algorithm(&self) -> JwsAlgorithm {
        self.algorithm
    }

    /// The name of the key.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// A member of the protected header that is text.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.header.get(member).and_then(Value::as_str)
    }

    /// When it says it was signed, in Unix seconds; a fraction is cut.
    pub fn iat(&self) -> Option<u64> {
        self.header.get("iat").and_then(numeric_date)
    }

    /// Whether the payload was attached.
    pub const fn is_attached(&self) -> bool {
        self.attached
    }

    /// What was signed: RFC 7515, section 5.2, step 8.
    pub fn signing_input(&self) -> &[u8] {
        &self.signing_input
    }

    /// The signature: 64 bytes, or it will not verify.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }
}

/// What to sign for a signature over `payload` with this header.
pub fn signing_input(header: &Value, payload: &[u8]) -> Vec<u8> {
    let parts = [crate::jcs::canonical(header), payload.to_vec()];
    parts.map(|part| BASE64URL_NOPAD.encode(&part)).join(".").into_bytes()
}

/// The detached form of a signature over a [`signing_input`].
pub fn detached(signing_input: &[u8], signature: &[u8]) -> String {
    let protected = signing_input.split(|byte| *byte == b'.').next().unwrap_or_default();
    format!("{}..{}", String::from_utf8_lossy(protected), BASE64URL_NOPAD.encode(signature))
}

fn split(text: &str) -> Result<(&str, &str, &str), JwsError> {
    let mut parts = text.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(header), Some(payload), Some(signature), None) if text.len() <= MAX_JWS_BYTES => {
            Ok((header, payload, signature))
        }
        _ => Err(JwsError::NotCompact),
    }
}

fn decode(part: &'static str, text: &str) -> Result<Vec<u8>, JwsError> {
    BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| JwsError::Base64(part))
}

fn header(json: &[u8], extra: &[&str]) -> Result<Map<String, Value>, JwsError> {
    let limits = Limits { bytes: MAX_HEADER_BYTES, depth: 2 };
    let Value::Object(header) = parse_strict(json, limits).map_err(JwsError::Json)? else {
        return Err(JwsError::NotAnObject);
    };
    for name in header.keys() {
        match name.as_str() {
            forbidden if FORBIDDEN.contains(&forbidden) => return Err(JwsError::Forbidden(name.clone())),
            "alg" | "kid" | "typ" | "iat" | "jti" | "aud" => {}
            known if extra.contains(&known) => {}
            _ => return Err(JwsError::Unknown(name.clone())),
        }
    }
    optional_text(&header, "typ")?;
    optional_text(&header, "jti")?;
    optional_text(&header, "aud")?;
    match header.get("iat") {
        Some(iat) if numeric_date(iat).is_none() => {
            return Err(JwsError::Member("iat", "seconds since 1970"));
        }
        _ => {}
    }
    match extra.iter().find(|name| header.get(**name).is_some_and(|value| !is_text(value))) {
        Some(name) => Err(JwsError::Unknown((*name).to_owned())),
        None => Ok(header),
    }
}

fn algorithm(header: &Map<String, Value>) -> Result<JwsAlgorithm, JwsError> {
    let name = required_text(header, "alg")?;
    JwsAlgorithm::from_name(&name).ok_or(JwsError::Algorithm(name))
}

fn required_text(header: &Map<String, Value>, name: &'static str) -> Result<String, JwsError> {
    match header.get(name) {
        Some(Value::String(text)) if is_text(&header[name]) => Ok(text.clone()),
        _ => Err(JwsError::Member(name, "text")),
    }
}

fn optional_text(header: &Map<String, Value>, name: &'static str) -> Result<(), JwsError> {
    match header.get(name) {
        Some(value) if !is_text(value) => Err(JwsError::Member(name, "text")),
        _ => Ok(()),
    }
}

/// A NumericDate (RFC 7519, section 2) from 1970 on, without its fraction.
fn numeric_date(value: &Value) -> Option<u64> {
    let seconds = value.as_f64().filter(|seconds| (0.0..MAX_NUMERIC_DATE).contains(seconds))?;
    Some(seconds.floor() as u64)
}

/// Text that is not empty and within the bound.
fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty() && text.chars().nth(MAX_HEADER_TEXT).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PAYLOAD: &[u8] = b"{\"a\":1}";

    fn compact(header: &str, payload: &[u8], signature: &[u8]) -> String {
        [header.as_bytes(), payload, signature].map(|part| BASE64URL_NOPAD.encode(part)).join(".")
    }

    fn open(header: &str) -> Result<Jws, JwsError> {
        Jws::open(&compact(header, b"", &[7; 64]), PAYLOAD, &["req"])
    }

    #[test]
    fn detached_and_attached_signatures_sign_the_same_bytes() {
        let header = r#"{"alg":"EdDSA","kid":"k"}"#;
        let detached = Jws::open(&compact(header, b"", &[7; 64]), PAYLOAD, &[]).unwrap();
        let attached = Jws::open(&compact(header, PAYLOAD, &[7; 64]), PAYLOAD, &[]).unwrap();
        assert_eq!(detached.signing_input(), attached.signing_input());
        assert!(attached.is_attached() && !detached.is_attached());
        assert_eq!((detached.kid(), detached.signature()), ("k", &[7; 64][..]));
        let input = signing_input(&json!({ "alg": "EdDSA", "kid": "k" }), PAYLOAD);
        assert_eq!(input, detached.signing_input());
        assert_eq!(super::detached(&input, &[7; 64]), compact(header, b"", &[7; 64]));
    }

    #[test]
    fn another_payload_is_refused_before_any_key_is_asked() {
        let text = compact(r#"{"alg":"EdDSA","kid":"k"}"#, b"{}", &[7; 64]);
        assert_eq!(Jws::open(&text, PAYLOAD, &[]), Err(JwsError::PayloadDiffers));
    }

    #[test]
    fn a_header_that_chooses_its_own_key_or_rules_is_refused() {
        for name in FORBIDDEN {
            let told = open(&format!(r#"{{"alg":"EdDSA","kid":"k","{name}":"x"}}"#));
            assert_eq!(told, Err(JwsError::Forbidden(name.to_owned())));
        }
        assert_eq!(open(r#"{"alg":"EdDSA","kid":"k","cty":"x"}"#), Err(JwsError::Unknown("cty".to_owned())));
    }

    #[test]
    fn no_other_algorithm_is_spoken() {
        for name in ["none", "None", "HS256", "RS256", "ES384", "eddsa", "Ed448"] {
            let told = open(&format!(r#"{{"alg":"{name}","kid":"k"}}"#));
            assert_eq!(told, Err(JwsError::Algorithm(name.to_owned())));
        }
        assert!(open(r#"{"alg":"Ed25519","kid":"k"}"#).is_ok());
        assert!(open(r#"{"alg":"ES256","kid":"k","iat":1,"jti":"j","aud":"a","typ":"t","req":"r"}"#).is_ok());
    }

    #[test]
    fn a_time_is_whole_seconds_or_has_a_fraction_that_is_cut() {
        let iat = |iat: &str| open(&format!(r#"{{"alg":"EdDSA","kid":"k","iat":{iat}}}"#)).unwrap().iat();
        assert_eq!(
            (iat("1767225600"), iat("1767225600.75"), iat("0")),
            (Some(1_767_225_600), Some(1_767_225_600), Some(0))
        );
        assert_eq!(
            (iat("1.5e9"), iat("9007199254740991")),
            (Some(1_500_000_000), Some(9_007_199_254_740_991))
        );
    }

    #[test]
    fn members_of_the_wrong_type_are_refused() {
        for header in [
            r#"{"alg":"EdDSA"}"#,
            r#"{"alg":"EdDSA","kid":""}"#,
            r#"{"alg":"EdDSA","kid":1}"#,
            r#"{"kid":"k"}"#,
            r#"{"alg":["EdDSA"],"kid":"k"}"#,
            r#"{"alg":"EdDSA","kid":"k","iat":"1"}"#,
            r#"{"alg":"EdDSA","kid":"k","iat":-1}"#,
            r#"{"alg":"EdDSA","kid":"k","iat":-0.5}"#,
            r#"{"alg":"EdDSA","kid":"k","iat":9007199254740992}"#,
            r#"{"alg":"EdDSA","kid":"k","iat":1e999}"#,
            r#"{"alg":"EdDSA","kid":"k","aud":["a"]}"#,
            r#"{"alg":"EdDSA","kid":"k","req":1}"#,
            r#"{"alg":"EdDSA","alg":"EdDSA","kid":"k"}"#,
            "[]",
            "",
        ] {
            assert!(open(header).is_err(), "{header}");
        }
    }

    #[test]
    fn any_other_framing_is_refused() {
        let good = compact(r#"{"alg":"EdDSA","kid":"k"}"#, b"", &[7; 64]);
        for text in
            ["", ".", "..", "a.b", &format!("{good}."), &format!("{good}="), &good.replace("..", "."), "=..="]
        {
            assert!(Jws::open(text, PAYLOAD, &[]).is_err(), "{text}");
        }
    }
}
