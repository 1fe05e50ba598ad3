//! One token: its form, signature and claims (RFC 7519, RFC 9068).

use admission::principal::TokenSubject;
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use jose::json::{Limits, parse_strict};
use serde_json::{Map, Value};
use thiserror::Error;

use super::algorithm::TokenAlgorithm;
use super::token_key::TokenKey;
use crate::config::OAuth;
use crate::limits::{CLOCK_LEEWAY_SECONDS, MAX_CLAIM_TEXT, MAX_TOKEN_BYTES, MAX_TOKEN_DEPTH};

/// Header members that choose a key, or change the verification.
const FORBIDDEN: [&str; 6] = ["jwk", "jku", "x5u", "crit", "b64", "zip"];

/// Reason why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// `Authorization` is not a bearer token, or occurs twice.
    #[error("Authorization is not one bearer token")]
    NotBearer,
    /// The token is not three parts of base64url, or too long.
    #[error("not a compact JWS: {0}")]
    Form(&'static str),
    /// The header or the claims are not strict JSON.
    #[error("{0}")]
    Json(String),
    /// The algorithm is not accepted.
    #[error("alg {0:.32} is not accepted")]
    Algorithm(String),
    /// The header has a member that chooses its own key or rules.
    #[error("the header may not hold {0}")]
    Forbidden(&'static str),
    /// No key of the set has this `kid` and fits the algorithm.
    #[error("the issuer's key set has no key with this kid and algorithm")]
    NoKey,
    /// The signature does not verify.
    #[error("the signature does not verify")]
    Signature,
    /// A claim is missing or has the wrong value.
    #[error("{0}")]
    Claim(&'static str),
}

/// A parsed token. Its content is not trusted before [`BearerToken::verify`].
pub struct BearerToken {
    /// The signature algorithm that the header names.
    pub algorithm: TokenAlgorithm,
    /// The `kid` of the header.
    pub kid: Option<String>,
    kind: Option<String>,
    claims: Map<String, Value>,
    signing_input: Vec<u8>,
    signature: Vec<u8>,
}

/// The claims of a verified token that the gateway uses.
pub struct TokenClaims {
    /// The token's subject.
    pub subject: TokenSubject,
    /// The scopes granted to the token.
    pub scopes: Vec<String>,
}

impl BearerToken {
    /// Parses a compact JWS.
    pub fn read(text: &str) -> Result<Self, TokenError> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::Form("too long"));
        }
        let parts: Vec<&str> = text.split('.').collect();
        let [header, payload, signature] = parts[..] else { return Err(TokenError::Form("not three parts")) };
        let members = object(header)?;
        if let Some(name) = FORBIDDEN.into_iter().find(|name| members.contains_key(*name)) {
            return Err(TokenError::Forbidden(name));
        }
        Ok(Self {
            algorithm: algorithm(&members)?,
            kid: optional_text(&members, "kid")?,
            kind: optional_text(&members, "typ")?,
            claims: object(payload)?,
            signing_input: format!("{header}.{payload}").into_bytes(),
            signature: decode(signature)?,
        })
    }

    /// Verifies the signature with these keys.
    pub fn verify(&self, keys: &[TokenKey]) -> Result<(), TokenError> {
        let mut candidates = keys.iter().filter(|key| self.may_be_signed_with(key)).peekable();
        if candidates.peek().is_none() || (self.kid.is_none() && keys.len() > 1) {
            return Err(TokenError::NoKey);
        }
        match candidates.any(|key| key.verifies(self.algorithm, &self.signing_input, &self.signature)) {
            true => Ok(()),
            false => Err(TokenError::Signature),
        }
    }

    /// Returns whether the key may have signed this token, by its `kid` and its algorithm.
    pub fn may_be_signed_with(&self, key: &TokenKey) -> bool {
        let named = self.kid.is_none() || self.kid == key.kid;
        named && key.is_for(self.algorithm)
    }

    /// Checks the claims against the settings of the route, and returns those that the gateway uses.
    pub fn claims(&self, wanted: &OAuth, now: Timestamp) -> Result<TokenClaims, TokenError> {
        if let Some(kind) = &wanted.token_type
            && !self.kind.as_ref().is_some_and(|typ| is_type(typ, kind))
        {
            return Err(TokenError::Claim("typ is not the configured one"));
        }
        if self.text("iss")? != wanted.issuer {
            return Err(TokenError::Claim("iss is not the configured issuer"));
        }
        if !self.audiences()?.contains(&wanted.audience.as_str()) {
            return Err(TokenError::Claim("aud does not name this resource"));
        }
        if self.claims.contains_key("cnf") {
            return Err(TokenError::Claim("a token that is bound to a key is not a bearer token"));
        }
        self.is_in_time(now)?;
        Ok(TokenClaims { subject: self.subject()?, scopes: self.scopes()? })
    }

    fn is_in_time(&self, now: Timestamp) -> Result<(), TokenError> {
        let now = now.as_second();
        let exp = self.date("exp")?.ok_or(TokenError::Claim("exp is missing"))?;
        if now >= exp.saturating_add(CLOCK_LEEWAY_SECONDS) {
            return Err(TokenError::Claim("the token has expired"));
        }
        let early =
            |date: Option<i64>| date.is_some_and(|date| date > now.saturating_add(CLOCK_LEEWAY_SECONDS));
        match early(self.date("nbf")?) || early(self.date("iat")?) {
            true => Err(TokenError::Claim("the token is not valid yet")),
            false => Ok(()),
        }
    }

    fn subject(&self) -> Result<TokenSubject, TokenError> {
        let client = match self.claims.contains_key("client_id") {
            true => Some(self.text("client_id")?),
            false if self.claims.contains_key("azp") => Some(self.text("azp")?),
            false => None,
        };
        Ok(TokenSubject {
            iss: self.text("iss")?.to_owned(),
            sub: self.text("sub")?.to_owned(),
            client_id: client.map(str::to_owned),
        })
    }

    /// The audiences: one string, or a list of strings. They are compared as a whole.
    fn audiences(&self) -> Result<Vec<&str>, TokenError> {
        let wrong = TokenError::Claim("aud is neither a string nor a list of strings");
        match self.claims.get("aud") {
            Some(Value::String(one)) => Ok(vec![one]),
            Some(Value::Array(all)) => all.iter().map(|one| one.as_str().ok_or(wrong.clone())).collect(),
            _ => Err(wrong),
        }
    }

    /// The scopes: `scope` (RFC 9068), or `scp` as some issuers name it.
    fn scopes(&self) -> Result<Vec<String>, TokenError> {
        let split = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match self.claims.get("scope").or_else(|| self.claims.get("scp")) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(split(text)),
            Some(Value::Array(all)) => {
                let text = |one: &Value| one.as_str().map(str::to_owned);
                all.iter().map(|one| text(one).ok_or(TokenError::Claim("scope is not text"))).collect()
            }
            Some(_) => Err(TokenError::Claim("scope is not text")),
        }
    }

    fn text(&self, name: &'static str) -> Result<&str, TokenError> {
        let text = self.claims.get(name).and_then(Value::as_str);
        text.filter(|text| !text.is_empty() && text.len() <= MAX_CLAIM_TEXT).ok_or(match name {
            "iss" => TokenError::Claim("iss is missing or not text"),
            "sub" => TokenError::Claim("sub is missing or not text"),
            _ => TokenError::Claim("client_id or azp is not text"),
        })
    }

    /// A NumericDate in seconds, with fractions cut off.
    fn date(&self, name: &str) -> Result<Option<i64>, TokenError> {
        let Some(value) = self.claims.get(name) else { return Ok(None) };
        let whole = value.as_i64().or_else(|| value.as_f64().and_then(whole_seconds));
        whole.map(Some).ok_or(TokenError::Claim("a time is not a number of seconds"))
    }
}

/// Compares types: `at+jwt` and `application/at+jwt` are equal (RFC 7515, section 4.1.9).
fn is_type(typ: &str, wanted: &str) -> bool {
    let bare = |text: &str| text.to_ascii_lowercase().trim_start_matches("application/").to_owned();
    bare(typ) == bare(wanted)
}

fn whole_seconds(seconds: f64) -> Option<i64> {
    /// 2^53: above it, `f64` does not represent every integer.
    const MOST: f64 = 9_007_199_254_740_992.0;
    // The value is an integer well within the range of `i64`.
    (0.0..MOST).contains(&seconds).then(|| seconds.floor() as i64)
}

fn algorithm(members: &Map<String, Value>) -> Result<TokenAlgorithm, TokenError> {
    let name = members.get("alg").and_then(Value::as_str).unwrap_or_default();
    let known = TokenAlgorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
    known.ok_or_else(|| TokenError::Algorithm(name.chars().take(MAX_CLAIM_TEXT).collect()))
}

fn optional_text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, TokenError> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() && text.len() <= MAX_CLAIM_TEXT => {
            Ok(Some(text.clone()))
        }
        Some(_) => Err(TokenError::Form("kid and typ are texts")),
    }
}

fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    let limits = Limits { bytes: MAX_TOKEN_BYTES, depth: MAX_TOKEN_DEPTH };
    match parse_strict(&decode(part)?, limits) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(TokenError::Form("a part is not an object")),
        Err(error) => Err(TokenError::Json(error.kind.to_string())),
    }
}

fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| TokenError::Form("not base64url without padding"))
}
