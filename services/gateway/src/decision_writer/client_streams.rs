//! Record streams of clients without VAP: one for each MCP session that a server issued, so that their records are kept
//! apart.
//!
//! A stream begins with the first admitted call. There are at most `CLIENT_STREAMS` at a time. A stream ends with its
//! MCP session, after an idle time without records, or when the gateway stops. Other records without a session go into
//! the gateway's own stream.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use admission::principal::Caller;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::DecisionWriter;
use super::decisions::CloseWork;
use crate::limits::{CLIENT_STREAMS, SETTLE_TIME};

/// The names of the open client streams.
#[derive(Debug, Default)]
pub struct ClientStreams(Mutex<HashSet<String>>);

impl ClientStreams {
    /// Adds a stream, unless it is present. Returns `false` if there are [`CLIENT_STREAMS`] others.
    pub fn insert(&self, stream: &str) -> bool {
        let mut streams = self.lock();
        streams.contains(stream) || (streams.len() < CLIENT_STREAMS && streams.insert(stream.to_owned()))
    }

    /// Removes a stream that has ended.
    pub fn remove(&self, stream: &str) {
        self.lock().remove(stream);
    }

    fn all(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn contains(&self, stream: &str) -> bool {
        self.lock().contains(stream)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DecisionWriter {
    /// Returns the stream name for a client's calls without VAP, a digest of its route and MCP session. `None` unless a
    /// server issued that session: otherwise the client could choose the name, or guess another client's.
    pub(super) fn client_stream(&self, caller: &Caller) -> Option<String> {
        let session = caller.mcp_session.as_deref().filter(|_| caller.is_session_issued)?;
        let named = jose::jcs::canonical(&serde_json::json!([caller.route, session]));
        Some(format!(
            "{}:{}",
            self.inner.context.first_own_stream,
            HEXLOWER.encode(&Sha256::digest(&named)[..16])
        ))
    }

    /// Ends the client stream of a caller whose MCP session has ended.
    pub(super) fn end_client_stream(&self, caller: &Caller) {
        let stream = self.client_stream(caller).filter(|stream| self.inner.client_streams.contains(stream));
        if let Some(stream) = stream {
            self.submit(Box::new(CloseWork::new(self.clone(), stream, None)));
        }
    }

    /// Ends all client streams when the gateway stops, within [`SETTLE_TIME`]. A stream with a call in flight is ended
    /// later, for example at the next start.
    pub(super) async fn end_client_streams(&self) {
        let ending = self.inner.client_streams.all().into_iter().map(|stream| {
            let (reply, answer) = oneshot::channel();
            self.submit(Box::new(CloseWork::new(self.clone(), stream, Some(reply))));
            answer
        });
        let all = futures::future::join_all(ending.collect::<Vec<_>>());
        let _ = tokio::time::timeout(SETTLE_TIME, all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_not_more_than_a_number_at_a_time() {
        let streams = ClientStreams::default();
        assert!((0..CLIENT_STREAMS).all(|n| streams.insert(&n.to_string())));
        assert!(!streams.insert("more") && streams.insert("0"), "who has a place keeps it");
        streams.remove("0");
        assert!(streams.insert("more") && !streams.insert("0"));
    }
}
