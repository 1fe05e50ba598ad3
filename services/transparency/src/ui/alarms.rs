//! `/ui/alarms`: what is wrong with the log, and contradictions of issuers.

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use explorer::{AlarmsPage, IssuerContradiction};
use sequencer::{Halt, Role};
use serde::Deserialize;

use super::conflicts;
use super::page::{frame, page};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::limits::REPORTS_DEFAULT;
use crate::log::state::Log;
use crate::routes::app::App;
use crate::routes::equivocations::{self, Equivocation};
use crate::routes::paging::wrong_page_query;

/// The position in the list of reports.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlarmsQuery {
    /// List reports after this number.
    #[serde(default, deserialize_with = "crate::routes::plain_number")]
    after: Option<u64>,
}

/// The page of alarms.
pub async fn alarms(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    position: Result<Query<AlarmsQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(position) = position.map_err(wrong_page_query)?;
    let (reports, more) = equivocations::read(&app, &caller, position.after, REPORTS_DEFAULT).await?;
    let last = reports.last().filter(|_| more).map(|report| report.number);
    let (findings, omitted) = app.log.fsck.all();
    let alarms = AlarmsPage {
        obstacles: halt(&app.log).into_iter().collect(),
        conflicts: conflicts::read(&app.log).await?,
        findings,
        omitted,
        contradictions: reports.into_iter().map(contradiction).collect(),
        next: last.map(|last| format!("/ui/alarms?after={last}")),
    };
    Ok(page(alarms.html(&frame(&app.log))))
}

/// Why sequencing stopped.
fn halt(log: &Log) -> Option<String> {
    match &log.sequencer.status().borrow().role {
        Role::Halted(Halt::Frozen) => None,
        Role::Halted(halt) => Some(format!("Sequencing stopped: {halt}")),
        _ => None,
    }
}

fn contradiction(report: Equivocation) -> IssuerContradiction {
    IssuerContradiction {
        number: report.number,
        rule: report.rule,
        registered: report.registered.entry_id,
        refused: report.refused.entry_id,
        at: report.at,
    }
}
