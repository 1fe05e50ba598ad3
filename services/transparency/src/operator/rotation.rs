//! Rotation of the log's keys, on the admin listener: `tabellion key` uses these routes while a running process has
//! exclusive use of the database.
//!
//! Not here: activating an announced key, which the leader does between two batches (`signer`).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use data_encoding::BASE64URL_NOPAD;
use http::StatusCode;
use merkle::TreeSize;
use serde::{Deserialize, Serialize};
use serving::problem::JsonProblem;
use store::{KeyAnnouncement, LogKey, StoreError};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::log::state::Log;

/// The routes of keys, with their description.
pub fn described() -> OpenApiRouter<Arc<Log>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(announce)).routes(routes!(mark_compromised))
}

/// The key table, as the admin listener shows it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyTable {
    /// The log's origin.
    pub origin: String,
    /// Whether the log is frozen: its keys are never replaced again.
    #[serde(default)]
    pub frozen: bool,
    /// Keys on record, oldest first.
    pub keys: Vec<KeyRow>,
    /// Announced keys that are not active yet.
    pub announced: Vec<AnnouncementRow>,
}

/// A key on record. Kids and keys are unpadded base64url.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRow {
    /// The key's identifier.
    kid: String,
    /// The public key, in the encoding of the log.
    public: String,
    /// The tree size from which the key signs.
    from_size: u64,
    /// When it was replaced, in Unix seconds.
    retired_at: Option<u64>,
    /// The tree size at which it was replaced.
    retired_size: Option<u64>,
    /// The tree size from which an attacker may have signed with it.
    compromised_size: Option<u64>,
}

/// An announced key. Kids and keys are unpadded base64url.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnnouncementRow {
    /// The key's identifier.
    kid: String,
    /// The public key, in the encoding of the log.
    public: String,
    /// The identifier of the key that it replaces.
    replaces: String,
    /// When it was announced, in Unix seconds.
    at: u64,
}

/// The body of `POST /keys/announce`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Announce {
    /// The origin of the log.
    pub origin: String,
    /// The new key.
    pub key: AnnouncementRow,
}

/// The body of `POST /keys/compromised`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Compromised {
    /// The origin of the log.
    pub origin: String,
    /// Kid of the key, unpadded base64url.
    pub kid: String,
    /// The tree size from which an attacker may have signed with the key.
    pub since: u64,
}

impl From<&LogKey> for KeyRow {
    fn from(key: &LogKey) -> Self {
        Self {
            kid: BASE64URL_NOPAD.encode(&key.kid),
            public: BASE64URL_NOPAD.encode(&key.public),
            from_size: key.from_size.get(),
            retired_at: key.retired_at,
            retired_size: key.retired_size.map(TreeSize::get),
            compromised_size: key.compromised_size.map(TreeSize::get),
        }
    }
}

impl TryFrom<KeyRow> for LogKey {
    type Error = String;

    fn try_from(row: KeyRow) -> Result<Self, String> {
        Ok(Self {
            kid: bytes(&row.kid)?,
            public: bytes(&row.public)?.into(),
            from_size: TreeSize::new(row.from_size),
            retired_at: row.retired_at,
            retired_size: row.retired_size.map(TreeSize::new),
            compromised_size: row.compromised_size.map(TreeSize::new),
        })
    }
}

impl From<&KeyAnnouncement> for AnnouncementRow {
    fn from(key: &KeyAnnouncement) -> Self {
        Self {
            kid: BASE64URL_NOPAD.encode(&key.kid),
            public: BASE64URL_NOPAD.encode(&key.public),
            replaces: BASE64URL_NOPAD.encode(&key.replaces),
            at: key.at,
        }
    }
}

impl TryFrom<AnnouncementRow> for KeyAnnouncement {
    type Error = String;

    fn try_from(row: AnnouncementRow) -> Result<Self, String> {
        let (kid, public, replaces) = (bytes(&row.kid)?, bytes(&row.public)?.into(), bytes(&row.replaces)?);
        Ok(Self { kid, public, replaces, at: row.at })
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|error| format!("not unpadded base64url: {error}"))
}

/// The keys on record, and those that are announced.
#[utoipa::path(
    get,
    path = "/keys",
    operation_id = "keys",
    tag = "Operator",
    responses(
        (status = 200, description = "The table of keys", body = KeyTable),
        (status = 503, description = "The database does not answer (key-rotation)")
    )
)]
async fn list(State(log): State<Arc<Log>>) -> Result<Json<KeyTable>, JsonProblem> {
    // Read the announcements first: a key that is activated between the two reads is seen twice, and not missed.
    let announced = log.store.announced_keys().await.map_err(store_problem)?;
    let keys = log.store.keys().await.map_err(store_problem)?;
    let state = log.store.state().await.map_err(store_problem)?;
    let table = KeyTable {
        origin: log.identity.origin.clone(),
        frozen: matches!(state, store::State::Frozen { .. }),
        keys: keys.iter().map(KeyRow::from).collect(),
        announced: announced.iter().map(AnnouncementRow::from).collect(),
    };
    Ok(Json(table))
}

/// Announce a key that replaces another one.
#[utoipa::path(
    post,
    path = "/keys/announce",
    operation_id = "announce_key",
    tag = "Operator",
    request_body = Announce,
    responses(
        (status = 204, description = "The key is announced"),
        (status = 400, description = "Not JSON, or no usable key (key-rotation)"),
        (status = 409, description = "The service has another log, the log is frozen, or the key does not fit the table (key-rotation)"),
        (status = 503, description = "The database does not answer (key-rotation)")
    )
)]
async fn announce(
    State(log): State<Arc<Log>>,
    request: Result<Json<Announce>, JsonRejection>,
) -> Result<StatusCode, JsonProblem> {
    let Json(Announce { origin, key }) = request.map_err(|why| problem(why.status(), why.body_text()))?;
    check_origin(&log, &origin)?;
    let key = KeyAnnouncement::try_from(key).map_err(|why| problem(StatusCode::BAD_REQUEST, why))?;
    let named = LogKey::new(key.kid.clone(), key.public.clone(), TreeSize::EMPTY);
    crate::keys::recorded::check_key(&named).map_err(|why| problem(StatusCode::BAD_REQUEST, why))?;
    log.store.announce_key(&key).await.map_err(store_problem)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Mark a key as compromised from a tree size on.
#[utoipa::path(
    post,
    path = "/keys/compromised",
    operation_id = "mark_key_compromised",
    tag = "Operator",
    request_body = Compromised,
    responses(
        (status = 204, description = "The key is marked"),
        (status = 400, description = "Not JSON, or no identifier of a key (key-rotation)"),
        (status = 409, description = "The service has another log, or no such key (key-rotation)"),
        (status = 503, description = "The database does not answer (key-rotation)")
    )
)]
async fn mark_compromised(
    State(log): State<Arc<Log>>,
    request: Result<Json<Compromised>, JsonRejection>,
) -> Result<StatusCode, JsonProblem> {
    let Json(Compromised { origin, kid, since }) =
        request.map_err(|why| problem(why.status(), why.body_text()))?;
    check_origin(&log, &origin)?;
    let kid = bytes(&kid).map_err(|why| problem(StatusCode::BAD_REQUEST, why))?;
    log.store.mark_compromised(&kid, TreeSize::new(since)).await.map_err(store_problem)?;
    Ok(StatusCode::NO_CONTENT)
}

fn check_origin(log: &Log, request: &str) -> Result<(), JsonProblem> {
    let ours = &log.identity.origin;
    match request == ours {
        true => Ok(()),
        false => Err(problem(StatusCode::CONFLICT, format!("this service has the log {ours}"))),
    }
}

fn store_problem(error: StoreError) -> JsonProblem {
    let status = match &error {
        StoreError::Refused(_) | StoreError::Frozen => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    problem(status, error.to_string())
}

fn problem(status: StatusCode, detail: String) -> JsonProblem {
    JsonProblem::new(status, "key-rotation", detail)
}
