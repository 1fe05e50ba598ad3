//! Whose MCP sessions are: a session belongs to the subject whose token opened it.
//!
//! Its id is no credential, as it is written in logs of clients and proxies; and a server behind us (a child, several
//! servers, one that gets our own credential) cannot tell subjects apart. So whoever names another one's session is told
//! that there is none. Sessions that nobody with a token opened here belong to nobody: after a restart, those of children and
//! of several servers are gone, and those of a server elsewhere are its own to guard.

use admission::principal::TokenSubject;
use http::Response;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::headers;
use crate::limits::{KNOWN_OWNER_IDLE, MAX_KNOWN_OWNERS};

/// The owners of sessions, by routes.
pub struct Owners(Cache<(String, String), Owner>);

/// Issuer and subject: a token is renewed, and may come through another client.
type Owner = (String, String);

impl Default for Owners {
    fn default() -> Self {
        let all = Cache::builder().max_capacity(MAX_KNOWN_OWNERS).time_to_idle(KNOWN_OWNER_IDLE);
        Self(all.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl Owners {
    /// The answer to `initialize`: the session that it names is this subject's.
    pub fn opened<B>(&self, route: &str, answer: &Response<B>, token: Option<&TokenSubject>) {
        let named = headers::text(answer.headers(), &headers::SESSION);
        if let (Some(session), Some(token)) = (named, token) {
            self.0.insert((route.to_owned(), session.to_owned()), owner(token));
        }
    }

    /// Whether this session is another subject's.
    pub fn is_of_another(&self, route: &str, session: &str, token: Option<&TokenSubject>) -> bool {
        let known = self.0.get(&(route.to_owned(), session.to_owned()));
        known.is_some_and(|known| token.map(owner) != Some(known))
    }
}

fn owner(token: &TokenSubject) -> Owner {
    (token.iss.clone(), token.sub.clone())
}
