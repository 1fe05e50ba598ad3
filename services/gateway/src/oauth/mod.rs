//! Authentication with bearer tokens of one issuer, for one audience (R-27, RFC 9728, RFC 8707, MCP authorization).
//!
//! A [`TokenCheck`] protects a route. In mode A (`gateway`) a token's `aud` must be the gateway's resource URI; the token is
//! not forwarded, and the server receives the gateway's own credential. In mode B (`upstream`) `aud` must be the
//! configured id of the server; the token is forwarded, and the metadata are the server's. A route has one mode; a
//! valid token for the other mode is refused.
//!
//! Checked: the signature by a key of the configured set (`alg` from a list, `kid` looked up), `iss`, `aud`, `exp`,
//! `nbf`, `iat`, `sub`, scopes, and `typ` where configured. Values are compared exactly, never in part. Refused:
//! `none`, HMAC, a header that contains or references its own key, duplicate member names, and a token bound to a key
//! (`cnf`), which is not a bearer token.
//!
//! Not here: introspection of opaque tokens, DPoP, and the permissions of a principal.

mod algorithm;
mod authorizer;
mod jwks;
mod metadata;
#[cfg(test)]
mod tests;
mod token;
mod token_key;

use admission::principal::TokenSubject;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use url::Url;

use crate::config::{OAuth, OAuthMode};
use jwks::KeyBook;
pub use jwks::{FetchedKeys, KeysError};
pub use metadata::Metadata;
use token::{BearerToken, TokenError};

/// The token check of one route.
pub struct TokenCheck {
    settings: OAuth,
    keys: KeyBook,
    metadata: Metadata,
}

/// The result of an accepted token.
#[derive(Clone, Debug)]
pub struct AcceptedToken {
    /// The token's subject.
    pub subject: TokenSubject,
    /// The unchanged `Authorization` header for the server in mode B; `None` in mode A.
    pub passes: Option<HeaderValue>,
}

/// The response to a refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The HTTP status: 401, 403, or 503 while the issuer's keys are unreachable.
    pub status: StatusCode,
    /// The header `WWW-Authenticate`; `None` with status 503.
    pub www_authenticate: Option<String>,
    /// The reason, for the gateway's log only; it is not sent to the client.
    pub why: String,
}

impl TokenCheck {
    /// Makes the check for the route at `path`, with the issuer's keys fetched so far.
    ///
    /// # Errors
    /// A [`KeysError`] if the key file cannot be used, or no HTTP client can be built.
    pub fn new(
        settings: &OAuth,
        public_url: &Url,
        path: &str,
        fetched: &FetchedKeys,
    ) -> Result<Self, KeysError> {
        Ok(Self {
            keys: KeyBook::open(&settings.keys, fetched)?,
            metadata: Metadata::of(settings, public_url, path)?,
            settings: settings.clone(),
        })
    }

    /// Checks the token of a request.
    ///
    /// # Errors
    /// The [`Challenge`] for the client.
    pub async fn admit(&self, headers: &HeaderMap, now: Timestamp) -> Result<AcceptedToken, Challenge> {
        let Some(presented) = bearer(headers).map_err(|why| self.refused(why))? else {
            return Err(self.challenge(StatusCode::UNAUTHORIZED, None, "no token".to_owned()));
        };
        let token = BearerToken::read(presented).map_err(|why| self.refused(why))?;
        if !self.settings.algorithms.iter().any(|name| name == token.algorithm.name()) {
            return Err(self.refused(TokenError::Algorithm(token.algorithm.name().to_owned())));
        }
        let keys = self.keys.for_token(&token).await.map_err(unavailable)?;
        token.verify(&keys).map_err(|why| self.refused(why))?;
        let claims = token.claims(&self.settings, now).map_err(|why| self.refused(why))?;
        if let Some(missing) = self.settings.scopes.iter().find(|scope| !claims.scopes.contains(scope)) {
            let why = format!("the scope {missing} is missing");
            return Err(self.challenge(StatusCode::FORBIDDEN, Some("insufficient_scope"), why));
        }
        let passes = match self.settings.mode {
            OAuthMode::Gateway => None,
            OAuthMode::Upstream { .. } => headers.get(header::AUTHORIZATION).cloned(),
        };
        Ok(AcceptedToken { subject: claims.subject, passes })
    }

    /// The protected resource metadata of this route (RFC 9728).
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn refused(&self, why: TokenError) -> Challenge {
        self.challenge(StatusCode::UNAUTHORIZED, Some("invalid_token"), why.to_string())
    }

    /// A bearer challenge (RFC 6750, section 3; RFC 9728, section 5.1).
    fn challenge(&self, status: StatusCode, error: Option<&str>, why: String) -> Challenge {
        let mut parts = Vec::new();
        parts.extend(error.map(|error| format!("error=\"{error}\"")));
        if !self.settings.scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", self.settings.scopes.join(" ")));
        }
        parts.push(format!("resource_metadata=\"{}\"", self.metadata.url()));
        Challenge { status, www_authenticate: Some(format!("Bearer {}", parts.join(", "))), why }
    }
}

/// Status 503 while the issuer's keys are unreachable: a failure of the gateway neither accepts nor rejects a token.
fn unavailable(error: KeysError) -> Challenge {
    Challenge { status: StatusCode::SERVICE_UNAVAILABLE, www_authenticate: None, why: error.to_string() }
}

/// The bearer token, from a single `Authorization` header only.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, TokenError> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return match headers.contains_key(header::AUTHORIZATION) {
            true => Err(TokenError::NotBearer),
            false => Ok(None),
        };
    };
    let text = value.to_str().map_err(|_| TokenError::NotBearer)?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            Ok(Some(token.trim_start_matches(' ')))
        }
        _ => Err(TokenError::NotBearer),
    }
}
