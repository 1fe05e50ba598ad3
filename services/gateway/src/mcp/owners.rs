//! Ownership of MCP sessions: a session belongs to the subject whose token opened it.
//!
//! A session id is not a credential, since it appears in logs of clients and proxies; and a server behind the gateway (a
//! child, a federation, one that receives the gateway's own credential) cannot tell subjects apart. A request for
//! another subject's session is therefore answered as if the session did not exist. Sessions that no token opened here
//! have no owner: after a restart, those of children and federations are gone, and a remote server has to guard its
//! own.

use admission::principal::TokenSubject;
use http::Response;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::limits::{KNOWN_OWNER_IDLE, MAX_KNOWN_OWNERS};
use crate::upstream::fields;
use crate::upstream::request::SESSION;

/// The owners of sessions, by route and session id.
pub struct Owners(Cache<(String, String), Owner>);

/// Issuer and subject of a token. The token itself changes with a renewal, and the client may change too.
type Owner = (String, String);

impl Default for Owners {
    fn default() -> Self {
        let all = Cache::builder().max_capacity(MAX_KNOWN_OWNERS).time_to_idle(KNOWN_OWNER_IDLE);
        Self(all.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl Owners {
    /// Records the owner of the session that the answer to `initialize` names.
    pub fn opened<B>(&self, route: &str, answer: &Response<B>, token: Option<&TokenSubject>) {
        let named = fields::text(answer.headers(), &SESSION);
        if let (Some(session), Some(token)) = (named, token) {
            self.0.insert((route.to_owned(), session.to_owned()), owner(token));
        }
    }

    /// Returns whether the session belongs to another subject.
    pub fn is_of_another(&self, route: &str, session: &str, token: Option<&TokenSubject>) -> bool {
        let known = self.0.get(&(route.to_owned(), session.to_owned()));
        known.is_some_and(|known| token.map(owner) != Some(known))
    }
}

fn owner(token: &TokenSubject) -> Owner {
    (token.iss.clone(), token.sub.clone())
}
