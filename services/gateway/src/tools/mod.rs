//! Tools as their servers describe them: lists are noted before they pass, and arguments are checked against schemas.
//!
//! | file | contents |
//! |---|---|
//! | `listing` | the parsing of a list of tools |
//! | `arguments` | the check of a call's arguments against the tool's schema |
//! | `operator` | listing and approving tools, as an operator |
//!
//! Not here: which description counts (`admission`), durable pins (`decision_writer`), and the handling of lists and calls
//! (`calls`).

mod arguments;
mod listing;
mod operator;

use std::sync::Arc;

use moka::sync::Cache;
use schema::{Schema, Unusable};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

pub use listing::UnreadableList;
pub use operator::{OperatorError, PinnedTool, ToolSelection, ToolState, approve, fault, list};

use crate::decision_writer::{DecisionWriter, WriterError};
use crate::limits::{ARGUMENT_CHECKS, COMPILED_SCHEMAS, KNOWN_LIST_TIME, KNOWN_LISTS};

/// A tool's compiled schema, by the digest of its description; `None` if it has no schema.
type Compiled = Arc<Result<Option<Schema>, Unusable>>;

/// The schemas and lists of tools that all routes share.
pub struct Tools {
    schemas: Cache<String, Compiled>,
    /// Digests of the lists that were noted recently, by route and text.
    known: Cache<[u8; 32], ()>,
    checks: Arc<Semaphore>,
}

/// Reason why a list of tools is not noted.
#[derive(Debug, thiserror::Error)]
pub enum NotNoted {
    /// The list cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableList),
    /// The result could not be made durable.
    #[error(transparent)]
    DecisionWriter(#[from] WriterError),
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            schemas: Cache::new(COMPILED_SCHEMAS),
            known: Cache::builder().max_capacity(KNOWN_LISTS).time_to_live(KNOWN_LIST_TIME).build(),
            checks: Arc::new(Semaphore::new(ARGUMENT_CHECKS)),
        }
    }
}

impl Tools {
    /// Notes the tools of a list, which is the text of `result.tools`. Once this returns `Ok`, the result is durable.
    ///
    /// # Errors
    /// [`NotNoted`] if two parsers could see different lists, or the result could not be made durable.
    pub async fn listed(&self, writer: &DecisionWriter, route: &str, tools: &str) -> Result<(), NotNoted> {
        let digest =
            Sha256::new().chain_update(route).chain_update([0]).chain_update(tools).finalize().into();
        if self.known.contains_key(&digest) {
            return Ok(());
        }
        if writer.tools_listed(route, listing::read(tools)?).await? {
            // A list that was known before may be a change when it is sent again.
            self.known.invalidate_all();
        }
        self.known.insert(digest, ());
        Ok(())
    }
}
