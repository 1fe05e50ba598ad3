//! `/ui/policy`: the registration policy in force, or an earlier one, with the history.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use explorer::{PolicyPage, PolicyRow};

use super::page::{frame, page};
use super::proof::is_verifiable;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::limits::POLICY_HISTORY;
use crate::log::policies::PolicyRevision;
use crate::log::registration_outcome::RegisterError;
use crate::routes::app::App;
use crate::routes::policy::{PolicyEntryView, document, malformed_revision, unknown};

/// The page of the policy in force.
pub async fn in_force(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
) -> Result<Response, Problem> {
    let current = app.log.policies.current().ok_or(RegisterError::NoPolicy)?;
    let history = app.log.policies.history().await?;
    let here = history.iter().rev().find(|past| past.leaf == current.in_force.leaf());
    of(&app, &caller, here.ok_or(RegisterError::NoPolicy)?, &history).await
}

/// The page of a policy by its revision.
pub async fn revision(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    revision: Result<Path<u64>, PathRejection>,
) -> Result<Response, Problem> {
    let Path(revision) = revision.map_err(|_| malformed_revision())?;
    let history = app.log.policies.history().await?;
    let past = history.iter().find(|past| past.revision == revision).ok_or_else(|| unknown(revision))?;
    of(&app, &caller, past, &history).await
}

async fn of(
    app: &App,
    caller: &AuthenticatedCaller,
    past: &PolicyRevision,
    history: &[PolicyRevision],
) -> Result<Response, Problem> {
    let entry = app.log.store.entry(past.leaf).await?;
    let policy = app.log.policies.at(past.leaf).await?;
    let policy = PolicyPage {
        row: row(past),
        document: document(&policy),
        history: history.iter().rev().take(POLICY_HISTORY).map(row).collect(),
        verifiable: entry.is_some_and(|entry| is_verifiable(app, caller, entry)),
    };
    Ok(page(policy.html(&frame(&app.log))))
}

fn row(past: &PolicyRevision) -> PolicyRow {
    let view = PolicyEntryView::from(past);
    PolicyRow {
        revision: view.revision,
        leaf: view.index,
        id: view.entry_id,
        digest: view.digest,
        at: view.at,
        in_force_from: view.in_force_from,
    }
}
