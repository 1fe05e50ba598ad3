//! ClientTokens: the holders of bearer tokens, and their quotas.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serving::rate_limit::{Rate, RateLimiter};
use sha2::{Digest, Sha256};

use crate::config;

/// The period of a quota.
const MINUTE: Duration = Duration::from_secs(60);
/// The name of the only client of a service without tokens.
const ANONYMOUS: &str = "anonymous";

/// A client.
pub struct Client {
    /// The name in the configuration.
    pub name: String,
    /// The only agent whose work the client may send, if there is one.
    pub subject: Option<String>,
    quota: RateLimiter<()>,
}

/// All clients.
pub struct ClientTokens {
    /// By the SHA-256 of the token: comparing hashes shows nothing about a token by its time.
    by_token: HashMap<[u8; 32], Arc<Client>>,
    /// The client of requests without a token, if the service has no tokens.
    anonymous: Option<Arc<Client>>,
}

impl Client {
    fn new(name: &str, subject: Option<String>, requests_per_minute: NonZeroU32) -> Arc<Self> {
        let (requests, burst) = (requests_per_minute, requests_per_minute);
        let quota = RateLimiter::new(Rate { requests, period: MINUTE, burst });
        Arc::new(Self { name: name.to_owned(), subject, quota })
    }

    /// Takes one request from the quota.
    ///
    /// # Errors
    /// The time until the next request is admitted.
    pub fn admit(&self) -> Result<(), Duration> {
        self.quota.charge_alone(()).map(|_| ())
    }

    /// Returns whether the client may send the work of the agent that a request names, if it names one.
    pub fn may_name(&self, subject: Option<&str>) -> bool {
        match (&self.subject, subject) {
            (Some(own), Some(named)) => own == named,
            _ => true,
        }
    }
}

impl ClientTokens {
    /// Creates the clients of a configuration. Without any, requests need no token.
    pub fn new(configured: &[config::Client]) -> Self {
        let client = |one: &config::Client| {
            (one.token_sha256, Client::new(&one.name, one.subject.clone(), one.requests_per_minute))
        };
        let by_token: HashMap<_, _> = configured.iter().map(client).collect();
        let anonymous = by_token.is_empty().then(|| Client::new(ANONYMOUS, None, NonZeroU32::MAX));
        Self { by_token, anonymous }
    }

    /// Returns the client that sent a request.
    pub fn of_request(&self, headers: &HeaderMap) -> Option<Arc<Client>> {
        if let Some(anonymous) = &self.anonymous {
            return Some(anonymous.clone());
        }
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        let hash: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        self.by_token.get(&hash).filter(|_| scheme.eq_ignore_ascii_case("bearer")).cloned()
    }

    /// Returns the agent whose work is meant, if a request of this client names none.
    pub fn default_subject(&self, name: &str) -> Option<&str> {
        self.by_token.values().find(|client| client.name == name)?.subject.as_deref()
    }
}
