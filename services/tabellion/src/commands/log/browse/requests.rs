//! Requests of the browser to the log, and its answers. Statements and checkpoints are verified here, by the functions of
//! `verify` and `checkpoint verify`; lists of entries are not proven.

use std::sync::Arc;

use client::{Client, ClientError};
use serde_json::Value as Json;
use verifier::CheckpointVerdict;

use super::entry_list::EntryRow;
use super::opened_entry::OpenedEntry;
use crate::commands::checkpoint::verify::CheckpointVerifier;
use crate::commands::entry::ListPosition;
use crate::commands::entry::search::{FetchedEntries, Filters};
use crate::commands::statement;
use crate::commands::verify::verify_statement;
use crate::console::Failure;

/// Number of entries that one request asks for.
const PAGE_ENTRIES: usize = 100;

/// A request to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogRequest {
    /// The newest entries that match the terms of a search.
    Newest(String),
    /// Entries that follow those of the list.
    Older {
        /// The terms of the list's search.
        terms: String,
        /// The path of the page.
        path: String,
    },
    /// An entry with its proof, by its ID.
    Entry(String),
    /// The newest checkpoint.
    Checkpoint,
}

/// The answer to a [`LogRequest`], or the reason why there is none.
#[derive(Debug)]
pub enum LogAnswer {
    /// The newest entries, with the terms of the search.
    Newest(String, Result<ListPage, String>),
    /// Older entries, with the request for them.
    Older {
        /// The terms of the list's search.
        terms: String,
        /// The path of the page.
        path: String,
        /// The entries.
        page: Result<ListPage, String>,
    },
    /// An opened entry, with its ID.
    Entry(String, Result<Box<OpenedEntry>, String>),
    /// A checkpoint, verified.
    Checkpoint(Result<Box<CheckpointVerdict>, String>),
}

/// Entries of the list, newest first.
#[derive(Debug, Default)]
pub struct ListPage {
    /// The entries.
    pub rows: Vec<EntryRow>,
    /// The path of older entries; `None` if there are none.
    pub older: Option<String>,
}

/// The log, and what its statements and checkpoints are verified with.
#[derive(Clone)]
pub struct BrowsedLog {
    client: Client,
    verifier: Arc<CheckpointVerifier>,
}

impl BrowsedLog {
    /// The log of this client.
    pub fn new(client: Client, verifier: CheckpointVerifier) -> Self {
        Self { client, verifier: Arc::new(verifier) }
    }

    /// Carries out a request.
    pub async fn answer(&self, request: LogRequest) -> LogAnswer {
        match request {
            LogRequest::Newest(terms) => {
                let page = self.newest(&terms).await.map_err(in_short);
                LogAnswer::Newest(terms, page)
            }
            LogRequest::Older { terms, path } => {
                let page = self.page(path.clone()).await.map_err(in_short);
                LogAnswer::Older { terms, path, page }
            }
            LogRequest::Entry(id) => {
                let page = self.entry(&id).await.map(Box::new);
                LogAnswer::Entry(id, page)
            }
            LogRequest::Checkpoint => {
                LogAnswer::Checkpoint(self.checkpoint().await.map(Box::new).map_err(in_short))
            }
        }
    }

    /// Fetches the newest entries that match the terms of a search.
    ///
    /// # Errors
    /// [`ClientError`] if the log does not answer, or [`ClientError::Setup`] if a term is unknown.
    pub async fn newest(&self, terms: &str) -> Result<ListPage, ClientError> {
        let filters = Filters::of_terms(terms).map_err(ClientError::Setup)?;
        self.page(ListPosition::NEWEST.path(PAGE_ENTRIES, filters.pairs())).await
    }

    async fn page(&self, path: String) -> Result<ListPage, ClientError> {
        let page = FetchedEntries::fetch(&self.client, path, PAGE_ENTRIES).await?;
        Ok(ListPage { rows: page.entries.iter().map(EntryRow::of).collect(), older: page.next })
    }

    async fn entry(&self, id: &str) -> Result<OpenedEntry, String> {
        let entry: Json = self.client.json(&format!("v1/entries/{id}")).await.map_err(in_short)?;
        let path = format!("v1/entries/{id}/transparent");
        let bytes = match self.client.bytes_as(&path, "application/cose").await {
            Ok(bytes) => bytes,
            Err(error @ (ClientError::NotFound(_) | ClientError::Refused { .. })) => {
                return Ok(OpenedEntry::not_served(id, &entry, &in_short(error)));
            }
            Err(error) => return Err(in_short(error)),
        };
        let parsed = statement::parse(bytes.clone(), id).map_err(|failure| failure.in_short())?;
        if parsed.digest().to_string() != *id {
            return Err(format!("the log answered with another entry than {id}"));
        }
        let verified =
            verify_statement(&bytes, &self.verifier.trust).map_err(|failure| failure.in_short())?;
        Ok(OpenedEntry::verified(id, &entry, &parsed, &verified))
    }

    async fn checkpoint(&self) -> Result<CheckpointVerdict, ClientError> {
        Ok(self.verifier.verify(&self.client.bytes("checkpoint").await?))
    }
}

fn in_short(error: ClientError) -> String {
    Failure::from(error).in_short()
}
