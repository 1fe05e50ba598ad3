//! Streams of clients that say nothing of VAP: one for each MCP session that a server gave out, so that their records can be told apart.
//!
//! A stream begins with the first call that is let through. There are not more than a number of them at a time, and they end with their
//! MCP session, when nothing was recorded in them for long, or with this run of the gateway. What belongs to none of them is in the
//! gateway's own stream.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use admission::principal::Caller;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::Desk;
use super::decisions::CloseWork;
use crate::limits::{CLIENT_STREAMS, SETTLE_TIME};

/// The streams that there are, by name.
#[derive(Debug, Default)]
pub struct ClientStreams(Mutex<HashSet<String>>);

impl ClientStreams {
    /// Makes room for one, unless it has its place. False: there are too many.
    pub fn take(&self, stream: &str) -> bool {
        let mut streams = self.lock();
        streams.contains(stream) || (streams.len() < CLIENT_STREAMS && streams.insert(stream.to_owned()))
    }

    /// Gives back the place of a stream that has ended.
    pub fn gone(&self, stream: &str) {
        self.lock().remove(stream);
    }

    fn all(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn has(&self, stream: &str) -> bool {
        self.lock().contains(stream)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// The stream of a client's calls without VAP, if it can have one: what it is called is nobody's to guess or to choose.
    pub(super) fn client_stream(&self, caller: &Caller) -> Option<String> {
        let session = caller.mcp_session.as_deref().filter(|_| caller.is_given)?;
        let named = jose::jcs::canonical(&serde_json::json!([caller.route, session]));
        Some(format!("{}:{}", self.unbound(), HEXLOWER.encode(&Sha256::digest(&named)[..16])))
    }

    /// Ends the stream of a client whose MCP session has ended.
    pub(super) fn end_client_stream(&self, caller: &Caller) {
        let stream = self.client_stream(caller).filter(|stream| self.inner.client_streams.has(stream));
        if let Some(stream) = stream {
            self.hand_in(Box::new(CloseWork::new(self.clone(), stream, None)));
        }
    }

    /// Ends every such stream with this run, unless a call in it is still under way: then the next start ends it.
    pub(super) async fn end_client_streams(&self) {
        let ending = self.inner.client_streams.all().into_iter().map(|stream| {
            let (tell, told) = oneshot::channel();
            self.hand_in(Box::new(CloseWork::new(self.clone(), stream, Some(tell))));
            told
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
        assert!((0..CLIENT_STREAMS).all(|n| streams.take(&n.to_string())));
        assert!(!streams.take("more") && streams.take("0"), "who has a place keeps it");
        streams.gone("0");
        assert!(streams.take("more") && !streams.take("0"));
    }
}
