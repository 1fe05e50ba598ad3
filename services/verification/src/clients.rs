//! Clients: the holders of bearer tokens, and their quotas.

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
    /// The only agent whose work the client may send, if there is one; a request need not name it.
    pub subject: Option<String>,
    /// Its place in the configuration, by which its requests are counted.
    number: usize,
    /// Shared by all clients with the same quota, because a rate limiter takes kilobytes also if it counts one client.
    quota: Arc<RateLimiter<usize>>,
}

/// All clients.
pub struct ClientTokens {
    /// By the SHA-256 of the token: comparing hashes shows nothing about a token by its time.
    by_token: HashMap<[u8; 32], Arc<Client>>,
    /// The client of requests without a token, if the service has no tokens.
    anonymous: Option<Arc<Client>>,
}

impl Client {
    /// Takes one request from the quota.
    ///
    /// # Errors
    /// The time until the next request is admitted.
    pub fn admit(&self) -> Result<(), Duration> {
        self.quota.charge_alone(self.number).map(|_| ())
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
    pub fn new(configured: &[config::ClientConfig]) -> Self {
        let mut quotas: HashMap<NonZeroU32, Arc<RateLimiter<usize>>> = HashMap::new();
        let client = |(number, one): (usize, &config::ClientConfig)| {
            let quota = quotas.entry(one.requests_per_minute).or_insert_with_key(|requests| quota(*requests));
            let (name, subject, quota) = (one.name.clone(), one.subject.clone(), quota.clone());
            (one.token_sha256, Arc::new(Client { name, subject, number, quota }))
        };
        let by_token: HashMap<_, _> = configured.iter().enumerate().map(client).collect();
        let anonymous = || {
            let (name, quota) = (ANONYMOUS.to_owned(), quota(NonZeroU32::MAX));
            Arc::new(Client { name, subject: None, number: 0, quota })
        };
        let anonymous = by_token.is_empty().then(anonymous);
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
}

/// A quota of so many requests per minute.
fn quota(requests: NonZeroU32) -> Arc<RateLimiter<usize>> {
    Arc::new(RateLimiter::new(Rate { requests, period: MINUTE, burst: requests }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn clients_with_the_same_quota_are_counted_by_themselves() {
        let client = |name: &str| config::ClientConfig {
            name: name.to_owned(),
            token_sha256: Sha256::digest(name.as_bytes()).into(),
            requests_per_minute: NonZeroU32::MIN,
            subject: None,
        };
        let clients = ClientTokens::new(&[client("one"), client("other")]);
        let is_admitted = |token: &str| {
            let value = format!("Bearer {token}").parse().unwrap();
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
            clients.of_request(&headers).unwrap().admit().is_ok()
        };
        assert_eq!(["one", "one", "other"].map(is_admitted), [true, false, true]);
    }
}
