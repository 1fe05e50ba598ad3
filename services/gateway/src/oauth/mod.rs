//! Who may come in: bearer tokens of one issuer, for one audience (R-27, RFC 9728, RFC 8707, MCP authorization).
//!
//! A [`Guard`] stands before a route. In mode A (`gateway`) a token's `aud` has to be the gateway's resource URI, the token
//! ends here, and the server behind gets the gateway's own credential. In mode B (`upstream`) `aud` has to be the configured id
//! of the server, the token goes on to it, and the metadata shown are the server's. A route has one mode; a token for the
//! other one is refused, however well it is signed.
//!
//! Checked: signature by a key of the configured set (`alg` from a list, `kid` looked up), `iss`, `aud`, `exp`, `nbf`, `iat`,
//! `sub`, scopes, `typ` where configured. Compared exactly, never by a part. Refused: `none`, HMAC, a header that brings or
//! points to its own key, a second member of a name, and a token that is bound to a key (`cnf`), which is no bearer token.
//!
//! Not here: introspection of opaque tokens, DPoP, and what a principal may do.

mod door;
mod jwks;
mod metadata;
#[cfg(test)]
mod tests;
mod token;

use admission::principal::TokenSubject;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use url::Url;

use crate::config::{OAuth, OAuthMode};
use jwks::KeyBook;
pub use jwks::{FetchedKeys, KeysError};
pub use metadata::Metadata;
use token::{Token, TokenError};

/// The algorithms of tokens that are accepted: never `none`, never a shared secret.
pub const ALGORITHMS: [&str; 4] = ["RS256", "ES256", "EdDSA", "Ed25519"];

/// Stands before a route.
pub struct Guard {
    settings: OAuth,
    keys: KeyBook,
    metadata: Metadata,
}

/// A token that was accepted.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// Whose it is.
    pub subject: TokenSubject,
    /// Mode B: what goes on to the server, as it came. Mode A: nothing does.
    pub passes: Option<HeaderValue>,
}

/// Why a request does not come in, as the client hears it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// 401, 403, or 503 while the keys are out of reach.
    pub status: StatusCode,
    /// The header `WWW-Authenticate`; none with 503.
    pub www_authenticate: Option<String>,
    /// For the log of this process: never for the client.
    pub why: String,
}

impl Guard {
    /// A guard for the route at `path`, which goes on with what was fetched of the issuer's keys.
    ///
    /// # Errors
    /// If its keys are in a file and that cannot be used, or no HTTP client can be made.
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

    /// Lets a request in by its headers.
    ///
    /// # Errors
    /// With what the client is told.
    pub async fn admit(&self, headers: &HeaderMap, now: Timestamp) -> Result<Admitted, Challenge> {
        let Some(presented) = bearer(headers).map_err(|why| self.refused(why))? else {
            return Err(self.challenge(StatusCode::UNAUTHORIZED, None, "no token".to_owned()));
        };
        let token = Token::read(presented).map_err(|why| self.refused(why))?;
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
        Ok(Admitted { subject: claims.subject, passes })
    }

    /// The resource metadata of this route (RFC 9728).
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn refused(&self, why: TokenError) -> Challenge {
        self.challenge(StatusCode::UNAUTHORIZED, Some("invalid_token"), why.to_string())
    }

    /// RFC 6750, section 3; RFC 9728, section 5.1.
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

/// Nobody is refused for a failure of ours, and nobody let in.
fn unavailable(error: KeysError) -> Challenge {
    Challenge { status: StatusCode::SERVICE_UNAVAILABLE, www_authenticate: None, why: error.to_string() }
}

/// The bearer token: from `Authorization` alone, and only one.
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
