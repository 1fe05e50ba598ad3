//! Tools as their servers describe them: lists are read before anybody sees them, and arguments are held against schemas.
//!
//! | file | what |
//! |---|---|
//! | `listing` | the tools of a list |
//! | `arguments` | whether a call's arguments fit the schema of its tool |
//! | `operator` | what an operator sees and approves, beside a running gateway |
//!
//! Not here: which description counts (`admission`), how pins become durable (`desk`), and where lists and calls pass (`calls`).

mod arguments;
mod listing;
mod operator;

use std::sync::Arc;

use moka::sync::Cache;
use schema::{Schema, Unusable};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

pub use listing::UnreadableList;
pub use operator::{OperatorError, Tool, ToolState, Which, approve, fault, list};

use crate::desk::{Desk, DeskError};
use crate::limits::{ARGUMENT_CHECKS, COMPILED_SCHEMAS, KNOWN_LIST_TIME, KNOWN_LISTS};

/// A tool's schema, compiled, by the digest of what the tool says; none if it has no schema.
type Compiled = Arc<Result<Option<Schema>, Unusable>>;

/// What all routes share of what is known of tools.
pub struct Tools {
    schemas: Cache<String, Compiled>,
    /// Lists that were noted a moment ago, by route and text.
    known: Cache<[u8; 32], ()>,
    checks: Arc<Semaphore>,
}

/// Why a list of tools is not noted.
#[derive(Debug, thiserror::Error)]
pub enum NotNoted {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableList),
    /// It could not be made durable.
    #[error(transparent)]
    Desk(#[from] DeskError),
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
    /// Notes what a list says of its tools: the text of `result.tools`. Once `Ok`, it is durable.
    ///
    /// # Errors
    /// If two readers could see two lists in it, or it could not be made durable.
    pub async fn listed(&self, desk: &Desk, route: &str, tools: &str) -> Result<(), NotNoted> {
        let digest =
            Sha256::new().chain_update(route).chain_update([0]).chain_update(tools).finalize().into();
        if self.known.contains_key(&digest) {
            return Ok(());
        }
        if desk.tools_listed(route, listing::read(tools)?).await? {
            // What was listed before may be another change when it comes again.
            self.known.invalidate_all();
        }
        self.known.insert(digest, ());
        Ok(())
    }
}
