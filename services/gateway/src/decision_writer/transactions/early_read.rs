//! [`EarlyRead`]: what a call is decided on of the streams that others change, and which of its claims are used.
//!
//! A call takes them in its own task, from [`RecentReads`] if possible, so that neither its decision nor those in the same
//! batch wait for a query. The commit fails if they are not so any more, and the batch is then decided on streams and
//! claims that are read again.

use admission::tool::Pin;
use evidence::{Claim, EvidenceStore, StoreError};

use crate::decision_writer::committed_stream::CommittedStream;
use crate::decision_writer::recent_reads::RecentReads;
use crate::decision_writer::states::tool_stream;

/// States of streams, and used claims.
#[derive(Debug)]
pub struct EarlyRead {
    /// The streams by name.
    pub streams: Vec<(String, CommittedStream)>,
    /// Those of the claims that are known to be used.
    pub used: Vec<Claim>,
    /// The claims about which the database was asked. Of other claims only [`used`](Self::used) ones are known.
    pub looked_up: Vec<Claim>,
}

/// The streams and claims that are read for a call.
pub struct NeededData {
    /// The names of the streams.
    pub streams: Vec<String>,
    /// The claims.
    pub claims: Vec<Claim>,
}

impl EarlyRead {
    /// Takes the streams from the recent reads if `is_enough` for the call, and reads the others. Looks up the claims in the
    /// recent reads only. A stream that is damaged is left out; the writer reads it again and logs why.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn read(
        recent: &RecentReads,
        store: &dyn EvidenceStore,
        needed: NeededData,
        is_enough: impl Fn(&str, &CommittedStream) -> bool,
    ) -> Result<Self, StoreError> {
        let used = needed.claims.into_iter().filter(|claim| recent.is_used(claim)).collect();
        let (mut streams, mut unknown) = (Vec::new(), Vec::new());
        for name in needed.streams {
            match recent.stream(&name).filter(|stream| is_enough(&name, stream)) {
                Some(committed) => streams.push((name, committed)),
                None => unknown.push(name),
            }
        }
        streams.extend(read_streams(recent, store, unknown).await?);
        Ok(Self { streams, used, looked_up: Vec::new() })
    }

    /// Asks the database which of these claims are used.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn look_up_claims(
        recent: &RecentReads,
        store: &dyn EvidenceStore,
        claims: Vec<Claim>,
    ) -> Result<Self, StoreError> {
        let are_used = store.claimed(&claims).await?;
        let used = claims.iter().zip(are_used).filter(|(_, is_used)| *is_used);
        let used: Vec<Claim> = used.map(|(claim, _)| claim.clone()).collect();
        used.iter().for_each(|claim| recent.insert_used(claim));
        Ok(Self { streams: Vec::new(), used, looked_up: claims })
    }

    /// Returns the pin of a tool; `None` if it was not read, or no server has listed the tool.
    pub fn pin(&self, route: &str, tool: &str) -> Option<&Pin> {
        let stream = tool_stream(route, tool);
        self.streams.iter().find(|(name, _)| *name == stream)?.1.pin()
    }
}

/// Reads these streams from the database into the recent reads.
async fn read_streams(
    recent: &RecentReads,
    store: &dyn EvidenceStore,
    names: Vec<String>,
) -> Result<Vec<(String, CommittedStream)>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let stored = store.streams(&names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let read = names.into_iter().zip(stored).filter_map(|(name, stored)| {
        let committed = CommittedStream::read(&name, stored.as_ref()).ok()?;
        recent.insert(&name, &committed);
        Some((name, committed))
    });
    Ok(read.collect())
}
