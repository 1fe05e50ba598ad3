//! What was verified about an agent, in numbers only (VRF, section 11; reading 23).
//!
//! A number about few receipts tells of one of them, so small groups are not shown; and where one alone is missing, which
//! the others would tell, a second one goes with it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use registration::LookupKind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::index::{Group, Tally};
use crate::limits::SMALL_GROUP;
use crate::problem::Problem;

/// What was verified about an agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct Summary {
    /// The agent: the `sub` of the receipts.
    subject: String,
    /// Verification receipts that say their verdict; absent when they are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipts: Option<u64>,
    /// Receipts that are registered by their hash, to the nearest five: what they say is unknown to the log.
    redacted: u64,
    /// The share that passed; absent when the receipts are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_rate: Option<f64>,
    /// By outcome.
    by_verdict: Groups,
    /// By tier.
    by_tier: Groups,
    /// By kind of task.
    by_task_type: Groups,
    /// By who verified.
    by_issuer: Groups,
    /// Groups with fewer receipts are not shown.
    smallest_group: u64,
    /// The tree of which this was counted: whoever holds its entries finds the same.
    tree_size: u64,
    /// Whether the count goes on: then asking again counts more.
    counting: bool,
    /// Whether some values were left out because there were too many.
    truncated: bool,
}

/// Groups of receipts by a value they have in common.
#[derive(Debug, Serialize, ToSchema)]
pub struct Groups {
    /// By value.
    groups: BTreeMap<String, GroupView>,
    /// Groups that are not shown.
    suppressed: usize,
}

/// A group of receipts.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupView {
    /// How many.
    receipts: u64,
    /// The share that passed.
    pass_rate: f64,
}

/// What was verified about an agent, in numbers: by verdict, tier, kind of task and issuer. Groups of fewer than five
/// receipts are not shown.
#[utoipa::path(
    get,
    path = "/v1/agents/{sub}/summary",
    tag = "Log",
    params(("sub" = String, Path, description = "The sub of the receipts, percent-encoded")),
    responses((status = 200, body = Summary), (status = 404, description = "Nothing is registered about it"))
)]
pub async fn summary(State(app): State<App>, Path(sub): Path<String>) -> Result<Response, Problem> {
    let reached = app.index.caught_up().await?;
    let tally = app.index.tally(LookupKind::Subject, &sub).await?;
    if tally.entries == 0 {
        return Err(if reached.is_behind() { super::names::behind() } else { nothing() });
    }
    Ok(([(CACHE_CONTROL, "no-cache")], Json(Summary::of(sub, &tally))).into_response())
}

fn nothing() -> Problem {
    Problem::new(
        http::StatusCode::NOT_FOUND,
        "name-unknown",
        "Not Found",
        "The log holds no entry of this name",
    )
}

impl Summary {
    fn of(subject: String, tally: &Tally) -> Self {
        let groups = |kind| Groups::of(tally.receipts_by(kind));
        let verdicts = tally.receipts_by(LookupKind::Verdict);
        let passed = verdicts.get("pass").map_or(0, |group| group.count);
        let enough = tally.receipt_count >= SMALL_GROUP;
        Self {
            subject,
            receipts: enough.then_some(tally.receipt_count),
            redacted: (tally.redacted + 2) / 5 * 5,
            pass_rate: enough.then(|| share(passed, tally.receipt_count)),
            by_verdict: groups(LookupKind::Verdict),
            by_tier: groups(LookupKind::Tier),
            by_task_type: groups(LookupKind::TaskType),
            by_issuer: groups(LookupKind::Issuer),
            smallest_group: SMALL_GROUP,
            tree_size: tally.size,
            counting: !tally.complete,
            truncated: tally.crowded,
        }
    }
}

impl Groups {
    fn of(counted: BTreeMap<&str, Group>) -> Self {
        let (mut shown, small): (Vec<_>, Vec<_>) =
            counted.into_iter().partition(|(_, group)| group.count >= SMALL_GROUP);
        let mut suppressed = small.len();
        if suppressed == 1
            && let Some(least) = (0..shown.len()).min_by_key(|at| shown[*at].1.count)
        {
            // The total and the others would tell what the one is.
            shown.remove(least);
            suppressed += 1;
        }
        let view =
            |group: Group| GroupView { receipts: group.count, pass_rate: share(group.passed, group.count) };
        Self {
            groups: shown.into_iter().map(|(value, group)| (value.to_owned(), view(group))).collect(),
            suppressed,
        }
    }
}

/// To three digits.
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64 * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(counts: &[(&'static str, u64)]) -> (Vec<String>, usize) {
        let counted =
            counts.iter().map(|(value, count)| (*value, Group { count: *count, passed: 1 })).collect();
        let groups = Groups::of(counted);
        (groups.groups.into_keys().collect(), groups.suppressed)
    }

    #[test]
    fn a_small_group_is_not_shown_and_cannot_be_reckoned_from_the_others() {
        assert_eq!(groups(&[("a", 5), ("b", 9)]), (vec!["a".into(), "b".into()], 0));
        assert_eq!(groups(&[("a", 50), ("b", 9), ("c", 4)]), (vec!["a".into()], 2));
        assert_eq!(groups(&[("a", 50), ("b", 3), ("c", 4)]), (vec!["a".into()], 2));
        assert_eq!(groups(&[("a", 4)]), (vec![], 1));
        assert_eq!(groups(&[]), (vec![], 0));
    }
}
