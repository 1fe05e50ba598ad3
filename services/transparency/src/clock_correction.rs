//! Clock corrections, on the admin listener: the operator sees how far the log's time is ahead, and hands in the statement that
//! lets the log continue.
//!
//! Not here: what a correction is (`registration::clock_correction`), and when it applies (`sequencer`).

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use data_encoding::BASE64URL_NOPAD;
use http::StatusCode;
use scitt::SignedStatement;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::log::{Log, RegisterError, Registered};
use crate::problem::{self, Problem};
use crate::watch::now;

/// The routes of clock corrections.
pub fn routes(log: Arc<Log>) -> Router {
    Router::new().route("/clock", get(show).post(correct)).with_state(log)
}

/// The newest head's time beside this process's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogTime {
    /// The log's name.
    pub origin: String,
    /// The size of the newest committed head.
    pub size: u64,
    /// The time that this head carries, in Unix seconds.
    pub committed_at: u64,
    /// The time by this process's clock, in Unix seconds.
    pub clock: u64,
    /// The signed policy in force, as base64url without padding.
    pub policy: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Correct {
    /// The signed correction, as base64url without padding.
    statement: String,
}

async fn show(State(log): State<Arc<Log>>) -> Result<Json<LogTime>, Refused> {
    let head = log.store.head().await.map_err(|error| Refused::unavailable(&error))?;
    let policy = log.policies.current().ok_or_else(|| Refused::unavailable("the log has no policy yet"))?;
    Ok(Json(LogTime {
        origin: log.identity.origin.clone(),
        size: head.size().get(),
        committed_at: head.at,
        clock: now(),
        policy: BASE64URL_NOPAD.encode(policy.statement.bytes()),
    }))
}

async fn correct(
    State(log): State<Arc<Log>>,
    asked: Result<Json<Correct>, JsonRejection>,
) -> Result<Response, Refused> {
    let Json(asked) = asked.map_err(|error| Refused(error.status(), error.body_text()))?;
    let bytes = BASE64URL_NOPAD.decode(asked.statement.as_bytes()).map_err(|error| Refused::bad(&error))?;
    let statement =
        SignedStatement::parse(bytes::Bytes::from(bytes)).map_err(|error| Refused::bad(&error))?;
    let entry_id = statement.digest().to_string();
    match log.register(&statement, None).await.map_err(refused)? {
        Registered::Receipt { index, .. } => {
            tracing::warn!(index = index.get(), entry_id, "the operator corrected the log's time");
            Ok(Json(json!({ "entry_id": entry_id, "index": index.get() })).into_response())
        }
        Registered::Later => {
            Err(Refused::unavailable("it is not known yet whether the log took the correction"))
        }
    }
}

/// A request that did not succeed, as problem details.
struct Refused(StatusCode, String);

impl Refused {
    fn bad(why: &dyn std::fmt::Display) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_string())
    }

    fn unavailable(why: impl std::fmt::Display) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, why.to_string())
    }
}

/// The operator is told what halts the log; the public is not.
fn refused(error: RegisterError) -> Refused {
    match error {
        RegisterError::Halted(why) => Refused(StatusCode::CONFLICT, why),
        error => {
            let problem = Problem::from(error);
            Refused(problem.status, problem.detail.into_owned())
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(status, detail) = self;
        let title = "Clock Not Corrected";
        problem::on_admin(status, title, "clock-correction", &detail)
    }
}
