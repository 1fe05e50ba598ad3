//! The freshness check: the age of the newest cosignature by a known witness. A checkpoint itself carries no time.
//!
//! The check compares two clocks, and either may be wrong. A cosignature from the future raises [`AlarmKind::Clock`];
//! so does an old one if it is recent by the clock of the log's server and that clock differs from the monitor's. A
//! wrong clock is not a fork, and the checkpoint does not count as fresh.

use jiff::fmt::rfc2822;

use crate::alarm::{AlarmKind, AlarmSubject};
use crate::check_name::CheckName;
use crate::config::WatchedLog;
use crate::round_results::RoundResults;
use crate::state::LogState;

/// Trouble name (see `LogState::record_trouble`) of missing cosignatures.
const UNCOSIGNED: &str = "cosignatures";

/// The times by which a checkpoint's freshness is judged.
pub struct FreshnessTimes<'a> {
    /// Time of the newest cosignature by a known witness, in Unix seconds.
    pub cosigned_at: Option<u64>,
    /// Result of the witness policy (C2SP tlog-policy); `None` if no policy is configured.
    pub quorum: Option<bool>,
    /// The `Date` header of the log's HTTP response.
    pub date: Option<&'a str>,
}

/// Checks the age of the newest cosignature against `stale_after` and `clock_tolerance`.
pub fn check(
    target: &WatchedLog,
    state: &mut LogState,
    results: &mut RoundResults,
    times: &FreshnessTimes<'_>,
) {
    if target.witnesses.is_empty() {
        results.not_checked(
            CheckName::Freshness,
            "freshness not checked: no witness is configured, and a checkpoint carries no time",
        );
        return;
    }
    let Some(at) = times.cosigned_at.filter(|_| times.quorum != Some(false)) else {
        uncosigned(target, state, results, times);
        return;
    };
    state.end_trouble(UNCOSIGNED);
    let now = results.now;
    let (tolerance, limit) = (target.clock_tolerance.as_secs(), target.stale_after.as_secs());
    let server = times.date.and_then(seconds);
    if at > now.saturating_add(tolerance) {
        let words = format!(
            "a witness cosigned {} s in the future by this machine's clock: this clock is behind, or the witness's is ahead{}",
            at - now,
            clock_difference(server, now)
        );
        accuse(results, AlarmKind::Clock, words);
    } else if now.saturating_sub(at) <= limit {
        results.ok(CheckName::Freshness, format!("cosigned {} s ago", now.saturating_sub(at)));
    } else {
        old(target, results, at, server);
    }
}

/// Raises [`AlarmKind::Stale`], or [`AlarmKind::Clock`] if the log server's clock disagrees and the cosignature is
/// recent by it.
fn old(target: &WatchedLog, results: &mut RoundResults, at: u64, server: Option<u64>) {
    let now = results.now;
    let age = now.saturating_sub(at);
    let limit = target.stale_after.as_secs();
    let clocks_differ = server.is_some_and(|server| server.abs_diff(now) > target.clock_tolerance.as_secs());
    let fresh_there = server.is_some_and(|server| server.saturating_sub(at) <= limit);
    let words = format!(
        "the newest cosignature of a known witness is {age} s old by this machine's clock, and {limit} s are allowed{}",
        clock_difference(server, now)
    );
    match clocks_differ && fresh_there {
        true => {
            accuse(results, AlarmKind::Clock, format!("{words}: this clock is ahead, or the log's is behind"))
        }
        false => accuse(results, AlarmKind::Stale, words),
    }
}

/// Handles a checkpoint with too few cosignatures: [`AlarmKind::Stale`] if that lasts longer than `stale_after`.
fn uncosigned(
    target: &WatchedLog,
    state: &mut LogState,
    results: &mut RoundResults,
    times: &FreshnessTimes<'_>,
) {
    let lasts = state.record_trouble(UNCOSIGNED, results.now);
    let who = match times.cosigned_at {
        None => "no known witness",
        Some(_) => "fewer witnesses than the policy asks for have",
    };
    match lasts > target.stale_after.as_secs() {
        true => {
            let words = format!("{who} cosigned the log's checkpoints for {lasts} s");
            accuse(results, AlarmKind::Stale, words);
        }
        false => {
            let words = format!("freshness not checked: {who} cosigned this checkpoint");
            results.not_checked(CheckName::Freshness, words);
        }
    }
}

fn accuse(results: &mut RoundResults, kind: AlarmKind, words: String) {
    results.accuse(CheckName::Freshness, kind, AlarmSubject::Log, words, None);
}

/// Describes the difference between the log server's clock and the monitor's.
fn clock_difference(server: Option<u64>, now: u64) -> String {
    match server.map(|server| (server.abs_diff(now), server < now)) {
        Some((off, true)) if off > 1 => format!("; the log's server is {off} s behind this clock"),
        Some((off, false)) if off > 1 => format!("; the log's server is {off} s ahead of this clock"),
        Some(_) => "; the log's server has the same time as this clock".to_owned(),
        None => String::new(),
    }
}

/// Parses an HTTP date to Unix seconds.
fn seconds(date: &str) -> Option<u64> {
    let zoned = rfc2822::parse(date).ok()?;
    u64::try_from(zoned.timestamp().as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::Outcome;
    use crate::testing;

    const DAY: u64 = 86_400;
    const NOW: u64 = 1_800_000_000;
    const NONE: FreshnessTimes<'static> = FreshnessTimes { cosigned_at: None, quorum: None, date: None };

    fn judged(cosigned_at: Option<u64>, server: Option<u64>) -> (Outcome, Vec<AlarmKind>) {
        let target = testing::target_with_witness();
        let (mut state, mut results) = (LogState::new(&target), RoundResults::new("log", NOW));
        let date = server.map(|at| {
            let at = jiff::Timestamp::from_second(at as i64).unwrap();
            at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
        });
        let times = FreshnessTimes { cosigned_at, quorum: None, date: date.as_deref() };
        check(&target, &mut state, &mut results, &times);
        (results.checks[0].outcome, results.alarms.iter().map(|alarm| alarm.kind).collect())
    }

    #[test]
    fn a_cosignature_of_a_minute_ago_is_fresh() {
        assert_eq!(judged(Some(NOW - 60), Some(NOW)), (Outcome::Ok, vec![]));
        assert_eq!(judged(Some(NOW + 60), None), (Outcome::Ok, vec![]), "clocks may differ a little");
    }

    #[test]
    fn a_fresh_cosignature_of_too_few_is_not_enough_and_stale_in_the_end() {
        let target = testing::target_with_witness();
        let mut state = LogState::new(&target);
        let mut at = |now| {
            let mut results = RoundResults::new("log", now);
            let times = FreshnessTimes { cosigned_at: Some(now), quorum: Some(false), date: None };
            check(&target, &mut state, &mut results, &times);
            results.checks[0].outcome
        };
        assert_eq!((at(NOW), at(NOW + DAY)), (Outcome::NotChecked, Outcome::Failed));
    }

    #[test]
    fn an_old_cosignature_is_stale() {
        assert_eq!(judged(Some(NOW - DAY), Some(NOW)), (Outcome::Failed, vec![AlarmKind::Stale]));
        assert_eq!(judged(Some(NOW - DAY), None), (Outcome::Failed, vec![AlarmKind::Stale]));
    }

    #[test]
    fn r37_a_clock_that_is_a_day_off_is_named() {
        assert_eq!(judged(Some(NOW + DAY), Some(NOW + DAY)), (Outcome::Failed, vec![AlarmKind::Clock]));
        assert_eq!(judged(Some(NOW + DAY), Some(NOW)), (Outcome::Failed, vec![AlarmKind::Clock]));
        assert_eq!(judged(Some(NOW - DAY), Some(NOW - DAY)), (Outcome::Failed, vec![AlarmKind::Clock]));
    }

    #[test]
    fn without_a_witness_freshness_is_not_checked_and_said_to_be_not_checked() {
        let target = testing::target();
        let (mut state, mut results) = (LogState::new(&target), RoundResults::new("log", NOW));
        check(&target, &mut state, &mut results, &NONE);
        assert_eq!(results.checks[0].outcome, Outcome::NotChecked);
        assert!(results.checks[0].words.contains("freshness not checked"));
    }

    #[test]
    fn a_checkpoint_that_nobody_cosigned_is_not_checked_first_and_stale_in_the_end() {
        let target = testing::target_with_witness();
        let mut state = LogState::new(&target);
        let mut at = |now| {
            let mut results = RoundResults::new("log", now);
            check(&target, &mut state, &mut results, &NONE);
            results.checks[0].outcome
        };
        assert_eq!(at(NOW), Outcome::NotChecked);
        assert_eq!(at(NOW + DAY), Outcome::Failed);
    }
}
