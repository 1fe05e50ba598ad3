//! State shared by the routes.

use std::sync::Arc;

use http::HeaderMap;
use serving::failed_write::FailedWrite;
use serving::problem::JsonProblem;

use super::problem;
use crate::clients::{Client, ClientTokens};
use crate::jobs::{Jobs, Waits};
use crate::metrics::Metrics;

/// State shared by the routes.
#[derive(Clone)]
pub struct ServiceState {
    /// The accepted requests.
    pub jobs: Arc<Jobs>,
    /// The clients.
    pub clients: Arc<ClientTokens>,
    /// Counts requests.
    pub metrics: Arc<Metrics>,
    /// The last write that the database did not take.
    pub failed_write: Arc<FailedWrite>,
    /// The URL of the log.
    pub log: Arc<str>,
    /// How long a request waits.
    pub waits: Waits,
    /// Maximum size of a request in bytes.
    pub body_bytes: usize,
}

impl ServiceState {
    /// Returns the client that sent a request; 401 if it has no valid token.
    pub fn client(&self, headers: &HeaderMap) -> Result<Arc<Client>, JsonProblem> {
        self.clients.of_request(headers).ok_or_else(problem::unauthorized)
    }
}
