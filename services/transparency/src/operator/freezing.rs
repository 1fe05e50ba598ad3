//! Freezing, on the admin listener: the process that has the database ends the log for all processes.
//!
//! The operator's statement ends the log in every database. Freezing without a statement ends it in this database only,
//! for a log that moves to another one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use registration::SideData;
use registration::operator::Action;
use scitt::SignedStatement;
use sequencer::{Halt, Role};
use serving::problem::JsonProblem;
use store::{LogReader, SequencerStore, SignatureKind, SignatureStore, State as LogState, StoreError};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::limits::FREEZE_TIME;
use crate::log::freezing::frozen_by;
use crate::log::state::Log;
use crate::operator::effects;
use crate::operator::statements::{self, OperatorRequest};
use crate::time::now;

/// Interval between two reads of the newest signed head.
const SIGNED_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The route that freezes the log, with its description.
pub fn described() -> OpenApiRouter<Arc<Log>> {
    OpenApiRouter::new().routes(routes!(freeze))
}

/// The body of `POST /freeze`.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[serde(untagged)]
enum FreezeRequest {
    /// Freezes the log for ever, by the operator's statement.
    Statement(OperatorRequest),
    /// Freezes the log in this database, because it moves to another one.
    LogToFreeze(LogToFreeze),
}

/// The origin of the log to freeze, so that an operator does not freeze the wrong one.
#[derive(Debug, serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LogToFreeze {
    /// The origin of the log.
    origin: String,
}

/// The last state of a frozen log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    /// The log's origin.
    pub origin: String,
    /// The last size.
    pub size: u64,
    /// The last root.
    pub root: String,
    /// The last epoch.
    pub epoch: u64,
    /// The number of the last batch.
    pub batch: u64,
    /// The size of the newest signed head: equal to `size`, unless the last signature is still missing.
    pub signed: u64,
    /// Accepted statements that will not be sequenced in this database.
    pub waiting: u64,
}

impl Frozen {
    /// Freezes the log in this store.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn freeze(store: &dyn SequencerStore, origin: &str, holder: &str) -> Result<Self, StoreError> {
        store.freeze(holder, now()).await?;
        Self::of(store, origin).await
    }

    /// Reads the state of a frozen log.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn of(store: &dyn SequencerStore, origin: &str) -> Result<Self, StoreError> {
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

/// The largest size whose head has both a receipt's and a checkpoint's signature.
async fn signed(store: &dyn SignatureStore) -> Result<u64, StoreError> {
    let mut signed = u64::MAX;
    for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
        let newest = store.newest_signed(kind).await?;
        signed = signed.min(newest.map_or(0, |newest| newest.head.size.get()));
    }
    Ok(signed)
}

/// Freeze the log: for ever by the operator's statement, or in this database only because it moves to another one.
#[utoipa::path(
    post,
    path = "/freeze",
    tag = "Operator",
    request_body = FreezeRequest,
    responses(
        (status = 200, description = "The last state of the log", body = Frozen),
        (status = 400, description = "Not JSON, or the statement is not a freeze or refused (freeze)"),
        (status = 409, description = "The service has another log (another-log), the log halted, or it is frozen already (freeze)"),
        (status = 503, description = "The database cannot be read or written (freeze)")
    )
)]
async fn freeze(
    State(log): State<Arc<Log>>,
    request: Result<Json<FreezeRequest>, JsonRejection>,
) -> Response {
    let request = match request {
        Ok(Json(request)) => request,
        Err(why) => return problem(why.status(), "freeze", &why.body_text()),
    };
    let frozen = match request {
        FreezeRequest::Statement(OperatorRequest { statement }) => by_statement(&log, &statement).await,
        FreezeRequest::LogToFreeze(LogToFreeze { origin }) => to_move(&log, &origin).await,
    };
    if let Err(refused) = frozen {
        return *refused;
    }
    // Wait until the batch in flight is committed, and then until its head is signed.
    let mut status = log.sequencer.status();
    let ended = status.wait_for(|status| matches!(status.role, Role::Halted(Halt::Frozen)));
    let _ = tokio::time::timeout(FREEZE_TIME, ended).await;
    match all_signed(&log).await {
        Ok(frozen) => Json(frozen).into_response(),
        Err(error) => explain_freeze_error(&error),
    }
}

/// Freezes the log for ever: the statement becomes the last entry.
async fn by_statement(log: &Log, statement: &str) -> Result<(), Box<Response>> {
    let refused = |statements::OperatorError(status, detail)| Box::new(problem(status, "freeze", &detail));
    let statement = statements::parsed(statement).map_err(refused)?;
    if !matches!(effects::action_of(&statement), Some(Action::Freeze { .. })) {
        return Err(Box::new(problem(StatusCode::BAD_REQUEST, "freeze", "the statement is not a freeze")));
    }
    match log.store.state().await {
        Err(error) => Err(Box::new(explain_freeze_error(&error))),
        Ok(LogState::Frozen { .. }) => repeated(log, &statement).await,
        Ok(LogState::Open | LogState::Filling { .. }) => {
            statements::register(log, &statement).await.map(drop).map_err(refused)
        }
    }
}

/// Accepts an operator's freeze of a frozen log if it has the payload of the one that ended the log: a key may sign
/// differently each time.
async fn repeated(log: &Log, statement: &SignedStatement) -> Result<(), Box<Response>> {
    if let Some(current) = log.policies.current() {
        let authentic = current.in_force.authenticate(statement, SideData::default());
        authentic.map_err(|why| Box::new(problem(StatusCode::BAD_REQUEST, "freeze", &why.to_string())))?;
    }
    match freeze_of(&*log.store).await {
        Err(error) => Err(Box::new(explain_freeze_error(&error))),
        Ok(Some(last)) if last.payload() == statement.payload() => Ok(()),
        Ok(_) => {
            let detail = "this log is frozen already, and not by this statement".to_owned();
            let frozen = JsonProblem::new(StatusCode::CONFLICT, "freeze", detail).titled("Frozen Already");
            Err(Box::new(frozen.into_response()))
        }
    }
}

/// The statement that ended the log for ever; `None` also for a log that was frozen to move.
async fn freeze_of(store: &dyn LogReader) -> Result<Option<SignedStatement>, StoreError> {
    let Some(leaf) = frozen_by(store).await? else { return Ok(None) };
    let bytes = store.entry(leaf).await?.and_then(|entry| entry.statement);
    Ok(bytes.and_then(|bytes| SignedStatement::parse(bytes).ok()))
}

/// Freezes the log in this database only. Refused if the policy requires several operators for a freeze, since one
/// could do it alone here.
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
        Err(error) => return Err(Box::new(explain_freeze_error(&error))),
    }
    Ok(())
}

/// Waits up to [`FREEZE_TIME`] for the last head's signatures, which are stored shortly after the head is published.
async fn all_signed(log: &Log) -> Result<Frozen, StoreError> {
    let deadline = tokio::time::Instant::now() + FREEZE_TIME;
    let size = log.store.head().await?.size().get();
    // The loop reads only the signed heads; the waiting statements are counted once, at the end.
    while signed(&*log.store).await? != size && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(SIGNED_PAUSE).await;
    }
    Frozen::of(&*log.store, &log.identity.origin).await
}

fn explain_freeze_error(error: &StoreError) -> Response {
    tracing::error!(%error, "the log was not frozen");
    problem(StatusCode::SERVICE_UNAVAILABLE, "freeze", &error.to_string())
}

fn problem(status: StatusCode, code: &'static str, detail: &str) -> Response {
    JsonProblem::new(status, code, detail.to_owned()).titled("Not Frozen").into_response()
}
