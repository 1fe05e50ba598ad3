//! Reports of equivocation: statements that were refused because their issuer had signed the contrary.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use http::header::CACHE_CONTROL;
use registration::GuardKind;
use serde::{Deserialize, Serialize};
use store::KeptReport;
use utoipa::{IntoParams, ToSchema};

use super::add_next_link;
use super::bodies::is_open;
use super::paging::wrong_page_query;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::limits::{REPORTS_BYTES, REPORTS_CHUNK, REPORTS_DEFAULT, REPORTS_PAGE};
use crate::routes::app::App;
use crate::time::rfc3339;

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReportPaging {
    /// List reports after this number; from the first when absent.
    #[serde(default, deserialize_with = "super::plain_number")]
    pub after: Option<u64>,
    /// How many, at most: 1 to 64, 16 unless given.
    #[param(minimum = 1)]
    #[serde(default, deserialize_with = "super::plain_number")]
    pub limit: Option<usize>,
}

/// A page of reports.
#[derive(Debug, Serialize, ToSchema)]
pub struct Equivocations {
    /// In the order in which they came.
    equivocations: Vec<Equivocation>,
}

/// Two statements of one issuer of which at most one can be so.
#[derive(Debug, Serialize, ToSchema)]
pub struct Equivocation {
    /// Rises from report to report.
    pub number: u64,
    /// The rule that the refused statement breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The key of the guard that both claim, in hex.
    pub guard: String,
    /// The one on the log.
    pub registered: Registered,
    /// The one that was refused.
    pub refused: Refused,
    /// When it was refused, by the clock of the process that did. RFC 3339.
    pub at: Option<String>,
}

/// The entry that made the claim first.
#[derive(Debug, Serialize, ToSchema)]
pub struct Registered {
    /// SHA-256 of the statement, hex.
    pub entry_id: String,
    /// The leaf.
    pub index: u64,
}

/// The statement that made it again. Its signature is the proof: check it by the key that its issuer is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Refused {
    /// SHA-256 of the statement, hex: the entry ID it would have.
    pub entry_id: String,
    /// The statement, base64url; absent once the registered entry was erased, and where that is closed to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

impl Equivocation {
    fn of(kept: &KeptReport) -> Self {
        let report = &kept.report;
        let (index, entry) = report.registered;
        Self {
            number: kept.number,
            rule: GuardKind::of_key(&report.guard.0).map(|kind| kind.rule().to_string()),
            guard: HEXLOWER.encode(&report.guard.0),
            registered: Registered { entry_id: entry.to_string(), index: index.get() },
            refused: Refused {
                entry_id: report.refused.to_string(),
                statement: report.statement.as_ref().map(|bytes| BASE64URL_NOPAD.encode(bytes)),
            },
            at: rfc3339(report.at),
        }
    }
}

/// Statements that were refused because they contradict an entry of the same issuer: a second first receipt of a chain, or
/// a second successor of a receipt. `Link: rel="next"` leads on while there is more.
#[utoipa::path(
    get,
    path = "/v1/equivocations",
    tag = "Log",
    params(ReportPaging),
    responses(
        (
            status = 200,
            description = "Reports of refused statements that contradict registered ones",
            body = Equivocations,
            headers(("Link" = String, description = "rel=next, while there may be more"))
        ),
        (status = 400, description = "after or limit is not a number, or limit is too large")
    )
)]
pub async fn equivocations(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    page: Result<Query<ReportPaging>, QueryRejection>,
) -> Result<Response, Problem> {
    let wrong =
        || Problem::malformed("page", format!("after is a number, limit a number from 1 to {REPORTS_PAGE}"));
    let Query(page) = page.map_err(wrong_page_query)?;
    let limit = page.limit.unwrap_or(REPORTS_DEFAULT);
    if !(1..=REPORTS_PAGE).contains(&limit) {
        return Err(wrong());
    }
    let (equivocations, more) = read(&app, &caller, page.after, limit).await?;
    let last = equivocations.last().map(|report| report.number);
    let mut response = ([(CACHE_CONTROL, "no-cache")], Json(Equivocations { equivocations })).into_response();
    if let Some(last) = last.filter(|_| more) {
        add_next_link(&app, &mut response, "v1/equivocations", &format!("after={last}&limit={limit}"));
    }
    Ok(response)
}

/// Reads a page, few reports at a time, so that few large statements are in memory together. Returns `true` if there
/// may be more after it.
pub async fn read(
    app: &App,
    caller: &AuthenticatedCaller,
    mut after: Option<u64>,
    limit: usize,
) -> Result<(Vec<Equivocation>, bool), Problem> {
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < limit && bytes < REPORTS_BYTES {
        let requested = REPORTS_CHUNK.min(limit - page.len());
        let kept = app.log.store.reports(after, requested).await?;
        after = kept.last().map(|kept| kept.number).or(after);
        bytes += kept
            .iter()
            .filter_map(|kept| kept.report.statement.as_ref())
            .map(bytes::Bytes::len)
            .sum::<usize>();
        for mut report in kept.iter().cloned() {
            let registered = app.log.store.entry(report.report.registered.0).await?;
            if !registered.is_some_and(|entry| is_open(app, caller, &entry)) {
                report.report.statement = None;
            }
            page.push(Equivocation::of(&report));
        }
        if kept.len() < requested {
            return Ok((page, false));
        }
    }
    Ok((page, true))
}
