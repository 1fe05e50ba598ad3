//! Compact JSON Web Signatures (RFC 7515) in one strict profile, without the verification by a key.
//!
//! The profile is for signatures in canonical JSON (VAP, reading V-20). The verifier knows the payload, so it is
//! detached (`header..signature`), or attached with equal bytes. `alg` is EdDSA, Ed25519 or ES256, and `kid` is
//! required. The header must not contain members that change the key or the signed content: no `jwk`, `jku`, `x5u`,
//! `crit` or `b64`, and no member that the caller did not allow.
//!
//! Not here: the cryptographic verification and the choice of the key (`scitt::PublicKey::verify_jws`), the checks of
//! `iat`, `jti` and `aud`, and the JSON serialisations of RFC 7515.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use crate::json::{JsonError, Limits, parse_strict};

/// Maximum bytes of a compact JWS, including an attached payload.
pub const MAX_JWS_BYTES: usize = 8 << 20;
/// Maximum bytes of the protected header's JSON.
pub const MAX_HEADER_BYTES: usize = 8 << 10;
/// Maximum characters of a text in the header, such as `kid`, `typ`, `jti` or `aud`.
pub const MAX_HEADER_TEXT: usize = 1024;
/// Exclusive upper bound of a NumericDate: 2^53 seconds.
const MAX_NUMERIC_DATE: f64 = 9_007_199_254_740_992.0;
/// Header members that select a key or change the signed content. They are refused even if the caller allows them.
const FORBIDDEN: [&str; 9] = ["jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64", "zip"];

/// The signature algorithms of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwsAlgorithm {
    /// `EdDSA` (RFC 8037), in this profile with an Ed25519 key.
    EdDsa,
    /// `Ed25519` (RFC 9864).
    Ed25519,
    /// `ES256` (RFC 7518).
    Es256,
}

impl JwsAlgorithm {
    /// All algorithms of the profile.
    pub const ALL: [Self; 3] = [Self::EdDsa, Self::Ed25519, Self::Es256];

    /// Returns the value of the header member `alg`.
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

/// The reason why a text is not a signature of this profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// The text does not have three parts separated by dots, or exceeds [`MAX_JWS_BYTES`].
    #[error("a compact JWS is header.payload.signature, or header..signature")]
    NotCompact,
    /// A part is not canonical base64url without padding.
    #[error("the {0} is not base64url without padding")]
    Base64(&'static str),
    /// The header is not strict JSON.
    #[error("the protected header is not strict JSON: {0}")]
    Json(JsonError),
    /// The header is not a JSON object.
    #[error("the protected header is not an object")]
    NotAnObject,
    /// The header contains a member that selects a key or changes the signed content.
    #[error("the protected header may not hold {0:?}")]
    Forbidden(String),
    /// The header contains a member that the caller did not allow, or an allowed one that is not a text.
    #[error("the protected header holds {0:?}, which is not known here")]
    Unknown(String),
    /// A header member is missing or has the wrong type.
    #[error("the protected header needs {0:?} as {1}")]
    Member(&'static str, &'static str),
    /// The value of `alg` is not one of [`JwsAlgorithm::ALL`].
    #[error("alg {0:?} is not one of EdDSA, Ed25519, ES256")]
    Algorithm(String),
    /// The attached payload differs from the expected one.
    #[error("the attached payload is not the canonical message")]
    PayloadDiffers,
}

/// A parsed signature of valid form. It is not verified yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Jws {
    header: Map<String, Value>,
    algorithm: JwsAlgorithm,
    kid: String,
    signing_input: Vec<u8>,
    signature: Vec<u8>,
}

impl Jws {
    /// Parses a signature over `payload`. The header may contain `alg`, `kid`, `typ`, `iat`, `jti`, `aud`, and the text
    /// members in `extra`.
    ///
    /// # Errors
    /// [`JwsError`] if the text does not follow the profile, or the attached payload differs.
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
        })
    }

    /// Returns the algorithm that the header declares.
    pub const fn algorithm(&self) -> JwsAlgorithm {
        self.algorithm
    }

    /// Returns the header's `kid`, the identifier of the key.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns a text member of the protected header.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.header.get(member).and_then(Value::as_str)
    }

    /// Returns the header's `iat` in Unix seconds, without a fraction.
    pub fn iat(&self) -> Option<u64> {
        self.header.get("iat").and_then(numeric_date)
    }

    /// Returns the signed bytes (RFC 7515, section 5.2, step 8).
    pub fn signing_input(&self) -> &[u8] {
        &self.signing_input
    }

    /// Returns the signature bytes; only signatures of 64 bytes can verify.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }
}

/// Returns the bytes to sign for a signature over `payload` with this protected header.
pub fn signing_input(header: &Value, payload: &[u8]) -> Vec<u8> {
    let parts = [crate::jcs::canonical(header), payload.to_vec()];
    parts.map(|part| BASE64URL_NOPAD.encode(&part)).join(".").into_bytes()
}

/// Formats a detached compact JWS from a [`signing_input`] and its signature.
pub fn detached(signing_input: &[u8], signature: &[u8]) -> String {
    let protected = signing_input.split(|byte| *byte == b'.').next().unwrap_or_default();
    format!("{}..{}", String::from_utf8_lossy(protected), BASE64URL_NOPAD.encode(signature))
}

/// Returns the attached payload of a compact JWS; empty if it is detached. Nothing else is checked: [`Jws::open`] with this
/// payload does that.
///
/// # Errors
/// [`JwsError`] if the text is not compact, or the payload not base64url.
pub fn attached_payload(text: &str) -> Result<Vec<u8>, JwsError> {
    let (_, attached, _) = split(text)?;
    decode("payload", attached)
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

/// Parses a NumericDate (RFC 7519, section 2) from 1970 on, and cuts its fraction.
fn numeric_date(value: &Value) -> Option<u64> {
    let seconds = value.as_f64().filter(|seconds| (0.0..MAX_NUMERIC_DATE).contains(seconds))?;
    Some(seconds.floor() as u64)
}

/// Returns `true` for a text of 1 to [`MAX_HEADER_TEXT`] characters.
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
            let opened = open(&format!(r#"{{"alg":"EdDSA","kid":"k","{name}":"x"}}"#));
            assert_eq!(opened, Err(JwsError::Forbidden(name.to_owned())));
        }
        assert_eq!(open(r#"{"alg":"EdDSA","kid":"k","cty":"x"}"#), Err(JwsError::Unknown("cty".to_owned())));
    }

    #[test]
    fn no_other_algorithm_is_spoken() {
        for name in ["none", "None", "HS256", "RS256", "ES384", "eddsa", "Ed448"] {
            let opened = open(&format!(r#"{{"alg":"{name}","kid":"k"}}"#));
            assert_eq!(opened, Err(JwsError::Algorithm(name.to_owned())));
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
