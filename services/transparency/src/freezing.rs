//! Freezing, on the admin listener: the process that has the database ends the log for all.
//!
//! The operator's statement ends the log wherever it is kept. A log that moves to another database is frozen in this one
//! without a statement, as it goes on there.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use registration::operator::Action;
use sequencer::{Halt, Role};
use store::{LogStore, SignatureKind, StoreError};

use crate::limits::FREEZE_TIME;
use crate::log::Log;
use crate::operators::{self, HandedIn};
use crate::problem;
use crate::watch::now;

/// Between two looks at the newest signed head.
const SIGNED_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The route that ends the log.
pub fn routes(log: Arc<Log>) -> Router {
    Router::new().route("/freeze", post(freeze)).with_state(log)
}

/// How the log is to be frozen.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
enum Ask {
    /// For ever, by the operator's statement.
    Statement(HandedIn),
    /// Here, as it goes on in another database.
    ToMove(ToMove),
}

/// Which log is meant: nobody ends one that they took for another.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ToMove {
    origin: String,
}

/// What a frozen log has come to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    /// Its name.
    pub origin: String,
    /// Its last size.
    pub size: u64,
    /// Its last root.
    pub root: String,
    /// Its last epoch.
    pub epoch: u64,
    /// Its last batch.
    pub batch: u64,
    /// The size of the newest signed head: the last one, unless its signature is still owed.
    pub signed: u64,
    /// Accepted statements that will get no place here.
    pub waiting: u64,
}

impl Frozen {
    /// Freezes the log in this store.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn freeze(store: &dyn LogStore, origin: &str, holder: &str) -> Result<Self, StoreError> {
        store.freeze(holder, now()).await?;
        Self::of(store, origin).await
    }

    /// What a frozen log has come to, read now.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn of(store: &dyn LogStore, origin: &str) -> Result<Self, StoreError> {
        let head = store.head().await?;
        Ok(Self {
            origin: origin.to_owned(),
            size: head.size().get(),
            root: head.root().to_string(),
            epoch: head.epoch,
            batch: head.batch,
            signed: signed(store).await?,
            waiting: store.inbox_use().await?.rows,
        })
    }
}

/// The newest size with a receipt's and a checkpoint's signature.
async fn signed(store: &dyn LogStore) -> Result<u64, StoreError> {
    let mut signed = u64::MAX;
    for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
        let newest = store.newest_signed(kind).await?;
        signed = signed.min(newest.map_or(0, |newest| newest.head.size.get()));
    }
    Ok(signed)
}

async fn freeze(State(log): State<Arc<Log>>, asked: Result<Json<Ask>, JsonRejection>) -> Response {
    let asked = match asked {
        Ok(Json(asked)) => asked,
        Err(why) => return problem(why.status(), "freeze", &why.body_text()),
    };
    let frozen = match asked {
        Ask::Statement(HandedIn { statement }) => by_statement(&log, &statement).await,
        Ask::ToMove(ToMove { origin }) => to_move(&log, &origin).await,
    };
    if let Err(refused) = frozen {
        return *refused;
    }
    // The batch in flight is committed, and its head gets its signatures first.
    let mut status = log.sequencer.status();
    let ended = status.wait_for(|status| matches!(status.role, Role::Halted(Halt::Frozen)));
    let _ = tokio::time::timeout(FREEZE_TIME, ended).await;
    match all_signed(&log).await {
        Ok(frozen) => Json(frozen).into_response(),
        Err(error) => told(&error),
    }
}

/// For ever: the statement is the last entry.
async fn by_statement(log: &Log, statement: &str) -> Result<(), Box<Response>> {
    let refused = |operators::Refused(status, detail)| Box::new(problem(status, "freeze", &detail));
    let statement = operators::parsed(statement).map_err(refused)?;
    if !matches!(operators::action_of(&statement), Some(Action::Freeze { .. })) {
        return Err(Box::new(problem(StatusCode::BAD_REQUEST, "freeze", "the statement is no freeze")));
    }
    operators::register(log, &statement).await.map(drop).map_err(refused)
}

/// In this database only. Where a policy wants several operators to agree to a freeze, none does it alone.
async fn to_move(log: &Log, origin: &str) -> Result<(), Box<Response>> {
    let ours = &log.identity.origin;
    if origin != ours {
        let detail = format!("this service has the log {ours}");
        return Err(Box::new(problem(StatusCode::CONFLICT, "another-log", &detail)));
    }
    let required =
        log.policies.current().map_or(1, |current| current.in_force.policy().contents().required.freeze);
    if required > 1 {
        let detail =
            format!("the policy wants {required} operators to freeze: stop the service to move its log");
        return Err(Box::new(problem(StatusCode::FORBIDDEN, "freeze", &detail)));
    }
    match log.store.freeze("admin", now()).await {
        Ok(_) => tracing::warn!("the log was frozen in this database, to move"),
        Err(error) => return Err(Box::new(told(&error))),
    }
    Ok(())
}

/// The last signature is kept a little after the head is shown.
async fn all_signed(log: &Log) -> Result<Frozen, StoreError> {
    let deadline = tokio::time::Instant::now() + FREEZE_TIME;
    let size = log.store.head().await?.size().get();
    // Only the signed head is looked at again and again: what waits is read and counted once, at the end.
    while signed(&*log.store).await? != size && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(SIGNED_PAUSE).await;
    }
    Frozen::of(&*log.store, &log.identity.origin).await
}

fn told(error: &StoreError) -> Response {
    tracing::error!(%error, "the log was not frozen");
    problem(StatusCode::SERVICE_UNAVAILABLE, "freeze", &error.to_string())
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    problem::on_admin(status, "Not Frozen", code, detail)
}
