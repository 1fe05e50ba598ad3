//! Statistics of an agent's verification receipts, in numbers only (VRF, section 11; reading 23).
//!
//! A number about few receipts reveals single ones, so small groups are not shown, and neither is a pass rate by which
//! few passed or few did not. Where a single value is hidden, which the total and the others would reveal, a second one
//! is hidden too. The counts of one verifier are rounded, because the difference of two exact summaries could reveal a
//! small group of another verifier.

// utoipa names the query type by its path.
#![allow(unused_qualifications)]

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use registration::LookupKind;
use serde::{Deserialize, Serialize};
use store::Order;
use utoipa::{IntoParams, ToSchema};

use crate::edge::problem::Problem;
use crate::index::{ReceiptGroup, ReceiptTally};
use crate::limits::SMALL_GROUP;
use crate::routes::app::App;

/// Whose receipts are counted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SummaryQuery {
    /// Count only the receipts of this verifier (`iss`), to the nearest five.
    issuer: Option<String>,
}

/// The verification receipts about an agent, in numbers.
#[derive(Debug, Serialize, ToSchema)]
pub struct Summary {
    /// The agent: the `sub` of the receipts.
    subject: String,
    /// The verifier whose receipts alone are counted, to the nearest five.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// Verification receipts that say their verdict; absent when they are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipts: Option<u64>,
    /// Receipts that the agent issued about itself, to the nearest five: they count in nothing else here.
    self_verified: u64,
    /// Receipts that are registered by their hash, to the nearest five: what they say is unknown to the log.
    redacted: u64,
    /// The share that passed; absent when the receipts are few, or when few of them passed, or few did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_rate: Option<f64>,
    /// By outcome.
    by_verdict: Groups,
    /// By tier.
    by_tier: Groups,
    /// By kind of task.
    by_task_type: Groups,
    /// By verifier.
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
    /// The share that passed; absent when it would tell of few receipts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_rate: Option<f64>,
}

/// What was verified about an agent, in numbers: by verdict, tier, kind of task and issuer. Groups of fewer than five
/// receipts are not shown. With `issuer`, the receipts of that verifier, to the nearest five.
#[utoipa::path(
    get,
    path = "/v1/agents/{sub}/summary",
    tag = "Log",
    params(("sub" = String, Path, description = "The sub of the receipts, percent-encoded"), SummaryQuery),
    responses((status = 200, description = "Counts of the registered statements about this agent", body = Summary), (status = 400, description = "A parameter is unknown"), (status = 404, description = "Nothing is registered about it"))
)]
pub async fn summary(
    State(app): State<App>,
    Path(sub): Path<String>,
    query: Result<Query<SummaryQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(SummaryQuery { issuer }) =
        query.map_err(|_| Problem::malformed("page", "The only parameter is `issuer`, once"))?;
    let reached = app.index.caught_up().await?;
    let about = (LookupKind::Subject, sub.as_str());
    let mut asked = vec![about];
    asked.extend(issuer.as_deref().map(|issuer| (LookupKind::Issuer, issuer)));
    if app.index.first(&asked, Order::OldestFirst).await?.is_none() {
        return Err(if reached.is_behind() { super::names::behind() } else { nothing() });
    }
    let all = app.index.tally(&[about]).await?;
    let summary = match &issuer {
        None => Summary::of(sub, &all, all.goes_on(reached)),
        Some(issuer) => {
            let own = app.index.tally(&asked).await?;
            let counting = all.goes_on(reached) || own.goes_on(reached);
            Summary::of_issuer(sub, issuer.clone(), (&all, &own), counting)
        }
    };
    Ok(([(CACHE_CONTROL, "no-cache")], Json(summary)).into_response())
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
    fn of(subject: String, tally: &ReceiptTally, counting: bool) -> Self {
        let groups = |kind| Groups::of(tally.receipts_by(kind));
        let verdicts = tally.receipts_by(LookupKind::Verdict);
        let passed = verdicts.get("pass").map_or(0, |group| group.count);
        let all = ReceiptGroup { count: tally.receipt_count, passed };
        let enough = all.count >= SMALL_GROUP;
        Self {
            subject,
            issuer: None,
            receipts: enough.then_some(all.count),
            self_verified: to_nearest_five(tally.self_verified),
            redacted: to_nearest_five(tally.redacted),
            pass_rate: (enough && !all.tells_of_few()).then(|| all.pass_rate()),
            by_verdict: groups(LookupKind::Verdict),
            by_tier: groups(LookupKind::Tier),
            by_task_type: groups(LookupKind::TaskType),
            by_issuer: groups(LookupKind::Issuer),
            smallest_group: SMALL_GROUP,
            tree_size: tally.size,
            counting,
            truncated: tally.truncated,
        }
    }

    /// Counts the receipts of one issuer (`own`). The total and its pass rate are those that the summary over `all`
    /// receipts shows of the issuer; the other counts are rounded, without pass rates.
    fn of_issuer(
        subject: String,
        issuer: String,
        (all, own): (&ReceiptTally, &ReceiptTally),
        counting: bool,
    ) -> Self {
        let groups = |kind| Groups::of(own.receipts_by(kind)).rounded();
        let mut by_issuer = Groups::of(all.receipts_by(LookupKind::Issuer));
        let shown = by_issuer.groups.remove(&issuer);
        Self {
            receipts: shown.as_ref().map(|group| group.receipts),
            pass_rate: shown.as_ref().and_then(|group| group.pass_rate),
            by_verdict: groups(LookupKind::Verdict),
            by_tier: groups(LookupKind::Tier),
            by_task_type: groups(LookupKind::TaskType),
            by_issuer: Groups {
                suppressed: usize::from(shown.is_none()),
                groups: shown.map(|group| (issuer.clone(), group)).into_iter().collect(),
            },
            tree_size: own.size.min(all.size),
            truncated: all.truncated || own.truncated,
            issuer: Some(issuer),
            ..Self::of(subject, own, counting)
        }
    }
}

/// Rounds a count, so that it tells of no single receipt.
fn to_nearest_five(count: u64) -> u64 {
    (count + 2) / 5 * 5
}

impl Groups {
    /// Rounds the counts, and hides the pass rates.
    fn rounded(mut self) -> Self {
        for group in self.groups.values_mut() {
            *group = GroupView { receipts: to_nearest_five(group.receipts), pass_rate: None };
        }
        self
    }

    fn of(counted: BTreeMap<&str, ReceiptGroup>) -> Self {
        let (mut shown, small): (Vec<_>, Vec<_>) =
            counted.into_iter().partition(|(_, group)| group.count >= SMALL_GROUP);
        let mut suppressed = small.len();
        if suppressed == 1
            && let Some(least) = (0..shown.len()).min_by_key(|at| shown[*at].1.count)
        {
            // The total and the other groups would reveal the only hidden one.
            shown.remove(least);
            suppressed += 1;
        }
        let veiled = veiled(&shown);
        let view = |(value, group): (&str, ReceiptGroup)| {
            let pass_rate = (!veiled.contains(value)).then(|| group.pass_rate());
            (value.to_owned(), GroupView { receipts: group.count, pass_rate })
        };
        Self { groups: shown.into_iter().map(view).collect(), suppressed }
    }
}

/// The values of the groups whose pass rate is hidden.
fn veiled<'a>(shown: &[(&'a str, ReceiptGroup)]) -> BTreeSet<&'a str> {
    let (few, others): (Vec<_>, Vec<_>) = shown.iter().partition(|(_, group)| group.tells_of_few());
    let mut veiled: BTreeSet<&str> = few.iter().map(|(value, _)| *value).collect();
    if veiled.len() == 1
        && let Some((least, _)) = others.iter().min_by_key(|(_, group)| group.count)
    {
        // The pass rates of all receipts and of the other groups would reveal the only hidden one.
        veiled.insert(least);
    }
    veiled
}

impl ReceiptGroup {
    /// Returns `true` if 1 to `SMALL_GROUP - 1` receipts passed, or as many did not.
    fn tells_of_few(&self) -> bool {
        let few = 1..SMALL_GROUP;
        few.contains(&self.passed) || few.contains(&self.count.saturating_sub(self.passed))
    }

    /// The share of receipts that passed, to three digits.
    fn pass_rate(&self) -> f64 {
        (self.passed as f64 / self.count.max(1) as f64 * 1000.0).round() / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(counts: &[(&'static str, u64)]) -> (Vec<String>, usize) {
        let counted =
            counts.iter().map(|(value, count)| (*value, ReceiptGroup { count: *count, passed: 1 })).collect();
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

    /// The groups, given as name, count and passed, whose pass rate is shown.
    fn with_pass_rate(counts: &[(&'static str, u64, u64)]) -> Vec<String> {
        let counted = counts
            .iter()
            .map(|(value, count, passed)| (*value, ReceiptGroup { count: *count, passed: *passed }));
        let groups = Groups::of(counted.collect()).groups;
        groups.into_iter().filter(|(_, group)| group.pass_rate.is_some()).map(|(value, _)| value).collect()
    }

    #[test]
    fn a_share_that_tells_of_few_receipts_is_not_told_nor_can_it_be_reckoned_from_the_others() {
        assert_eq!(
            with_pass_rate(&[("a", 20, 20), ("b", 20, 0), ("c", 20, 15), ("d", 20, 5)]),
            ["a", "b", "c", "d"]
        );
        for passed in [1, 4, 16, 19] {
            assert_eq!(with_pass_rate(&[("a", 20, passed)]), [""; 0], "{passed} of 20");
            assert_eq!(
                with_pass_rate(&[("a", 20, passed), ("b", 30, 15), ("c", 25, 15)]),
                ["b"],
                "{passed} of 20"
            );
        }
        assert_eq!(with_pass_rate(&[("a", 20, 1), ("b", 30, 1), ("c", 25, 15)]), ["c"]);
    }

    #[test]
    fn of_one_issuer_the_counts_are_rounded_and_the_total_is_the_one_that_is_shown_anyway() {
        let tally = |passed: u64, failed: u64, issuer: &str| {
            let mut tally = ReceiptTally::default();
            for n in 0..passed + failed {
                let verdict = if n < passed { "pass" } else { "fail" };
                tally.count_receipt_of(verdict, issuer);
            }
            tally
        };
        let (mut all, own) = (tally(13, 8, "verifier"), tally(13, 8, "verifier"));
        for _ in 0..7 {
            all.count_receipt_of("pass", "other");
        }
        let summary =
            |issuer: &str, own| Summary::of_issuer("agent".into(), issuer.into(), (&all, own), false);
        let shown = summary("verifier", &own);
        assert_eq!((shown.receipts, shown.pass_rate), (Some(21), Some(0.619)));
        let pass = &shown.by_verdict.groups["pass"];
        assert_eq!((pass.receipts, pass.pass_rate), (15, None));
        assert_eq!(shown.by_verdict.groups["fail"].receipts, 10);
        assert_eq!(shown.by_issuer.groups.into_keys().collect::<Vec<_>>(), ["verifier"]);
        let hidden = summary("third", &tally(3, 0, "third"));
        assert_eq!((hidden.receipts, hidden.by_issuer.suppressed), (None, 1));
    }

    #[test]
    fn all_receipts_together_do_not_tell_of_the_few_either() {
        let summary = |passed: u64, failed: u64| {
            let mut tally = ReceiptTally::default();
            for n in 0..passed + failed {
                let verdict = if n < passed { "pass" } else { "fail" };
                tally.count_receipt(verdict);
            }
            let summary = Summary::of("agent".into(), &tally, false);
            (summary.receipts, summary.pass_rate, summary.by_verdict.suppressed)
        };
        assert_eq!(summary(19, 1), (Some(20), None, 2));
        assert_eq!(summary(3, 17), (Some(20), None, 2));
        assert_eq!(summary(15, 5), (Some(20), Some(0.75), 0));
        assert_eq!(summary(20, 0), (Some(20), Some(1.0), 0));
        assert_eq!(summary(4, 0), (None, None, 1));
    }
}
