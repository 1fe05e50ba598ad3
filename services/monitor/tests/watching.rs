//! What the monitor says about logs that lie, and about one that does not. Over real HTTP.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Log, Nowhere, Shows, Tree, config, kinds};
use monitor::alarm_list::AlarmList;
use monitor::clock::now;
use monitor::evidence::Evidence;
use monitor::state::MonitorStateDir;
use monitor::{
    Alarm, AlarmKind, AlarmSubject, CheckName, Depth, LogWatcher, Monitor, MonitorExit, Outcome, Round,
    RoundRecorder, Vantage, WatchedLog,
};
use tempfile::TempDir;
use tlog::note::NoteSigner;

const NEVER: u64 = u64::MAX;

/// One round of a new process.
async fn once(folder: &Path, target: &WatchedLog) -> Round {
    let mut monitor = Monitor::begin(&config(folder, target.clone())).unwrap();
    monitor.once(&Nowhere).await.pop().unwrap()
}

/// One round of a new process that cannot save its alarms.
async fn once_unsaved(folder: &Path, target: &WatchedLog) -> Round {
    struct Unsaved;
    #[async_trait::async_trait]
    impl monitor::Sink for Unsaved {
        async fn round(&self, _: &Round) {}
        async fn keep(&self, _: &Round) -> bool {
            false
        }
    }
    let mut monitor = Monitor::begin(&config(folder, target.clone())).unwrap();
    monitor.once(&Unsaved).await.pop().unwrap()
}

/// A log whose tree of 512 leaves is verified, and that then showed these trees and answered for no tile.
async fn log_with_unproven(folder: &Path, trees: impl IntoIterator<Item = Tree>) -> Log {
    let log = Log::of(512).await;
    once(folder, &log.target()).await;
    for tree in trees {
        log.change(|shows| {
            *shows = Shows::tree(tree);
            shows.tiles_status = Some(503);
        });
        let round = once(folder, &log.target()).await;
        assert_eq!((kinds(&round), round.exit().code()), (vec![], 7), "{round:?}");
    }
    log
}

fn remembers_unproven(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("log/state.json")).unwrap().contains("unproven")
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Whether the evidence of the only alarm is a proof that needs nobody's word.
fn is_proof(round: &Round) -> bool {
    let [alarm] = &round.alarms[..] else { panic!("{:?}", round.alarms) };
    is_proven(alarm)
}

/// Whether the evidence of an alarm is a proof that needs nobody's word.
fn is_proven(alarm: &Alarm) -> bool {
    let Some(Evidence::Contradiction { vkey, older, newer, path, .. }) = &alarm.evidence else {
        return false;
    };
    let key = vkey.parse().unwrap();
    let open = |note: &str| {
        let origin = common::ORIGIN.parse().unwrap();
        tlog::checkpoint::Checkpoint::open(note.as_bytes(), &origin, std::slice::from_ref(&key)).unwrap()
    };
    let (older, newer) = (open(&older.note), open(&newer.note));
    let Some(path) = path else { return older.size() == newer.size() && older.root() != newer.root() };
    let siblings: Vec<merkle::Hash> = path.siblings.iter().map(|hash| hash.parse().unwrap()).collect();
    let start = path.start.parse().unwrap();
    let roots = merkle::verify::implied_roots(older.size(), newer.size(), start, &siblings).unwrap();
    roots.1 == newer.root() && roots.0 != older.root()
}

#[tokio::test]
async fn an_honest_log_that_grows_is_verified_by_tiles_and_by_its_own_proofs() {
    for makes_proofs in [false, true] {
        let (log, folder) = (Log::of(5).await, folder());
        log.change(|shows| shows.makes_proofs = makes_proofs);
        let first = once(folder.path(), &log.target()).await;
        assert_eq!(first.exit(), MonitorExit::Success);
        assert_eq!(
            first.outcome(CheckName::Consistency),
            Some(Outcome::NotChecked),
            "nothing to compare with"
        );
        assert!(first.checks.iter().any(|check| check.words.contains("watching begins at")));
        for size in [5, 6, 256, 257, 700] {
            log.change(|shows| {
                shows.tree.grow(size, NEVER, 0);
                shows.size = size;
            });
            let round = once(folder.path(), &log.target()).await;
            assert_eq!((round.exit(), round.alarms.len()), (MonitorExit::Success, 0), "{round:?}");
            assert_eq!(round.outcome(CheckName::Consistency), Some(Outcome::Ok), "{size}");
            assert_eq!(round.verified, Some(size));
            assert_eq!(round.outcome(CheckName::Freshness), Some(Outcome::NotChecked));
        }
    }
}

#[tokio::test]
async fn a_lean_monitor_asks_once() {
    let (log, folder) = (Log::of(300).await, folder());
    log.change(|shows| shows.makes_proofs = true);
    let target = WatchedLog { lean: true, ..log.target() };
    once(folder.path(), &target).await;
    log.change(|shows| {
        shows.tree.grow(1000, NEVER, 0);
        shows.size = 1000;
    });
    let round = once(folder.path(), &target).await;
    assert_eq!((round.outcome(CheckName::Consistency), round.verified), (Some(Outcome::Ok), Some(1000)));
    assert_eq!(round.cost.requests, 1);
    assert!(round.cost.hashes <= 20, "{:?}", round.cost);
}

#[tokio::test]
async fn r64_a_log_that_truncates_is_a_rollback_and_the_larger_checkpoint_is_kept() {
    for (makes_proofs, left) in [(false, 650), (true, 650), (false, 0), (true, 0)] {
        let (log, folder) = (Log::of(700).await, folder());
        log.change(|shows| shows.makes_proofs = makes_proofs);
        once(folder.path(), &log.target()).await;
        let larger = log.checkpoint();
        log.change(|shows| shows.size = left);
        for _ in 0..2 {
            let round = once(folder.path(), &log.target()).await;
            assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Rollback], 8), "{round:?}");
            assert_eq!(round.verified, Some(700), "what was verified is not forgotten");
            let Some(Evidence::Rollback { larger: kept, smaller, .. }) = &round.alarms[0].evidence else {
                panic!("{:?}", round.alarms)
            };
            assert_eq!((&kept.note, &smaller.note), (&larger, &log.checkpoint()));
        }
    }
}

#[tokio::test]
async fn r64_a_log_that_forks_is_shown_to_by_a_proof_wherever_it_forks() {
    // At the last leaf, deep, and at the first leaf; with sizes that are powers of two and others.
    for (size, fork, next) in
        [(700, 699, 900), (700, 3, 701), (512, 511, 513), (512, 0, 1024), (1, 0, 2), (300, 299, 300)]
    {
        for makes_proofs in [false, true] {
            let (log, folder) = (Log::of(size).await, folder());
            once(folder.path(), &log.target()).await;
            log.change(|shows| {
                *shows = Shows::tree(Tree::of(next, fork, 1));
                shows.makes_proofs = makes_proofs;
            });
            let round = once(folder.path(), &log.target()).await;
            assert_eq!(
                (kinds(&round), round.exit().code()),
                (vec![AlarmKind::Fork], 8),
                "{size} {fork} {next}: {round:?}"
            );
            assert!(is_proof(&round), "{size} {fork} {next}");
            assert_eq!(round.verified, Some(size));
        }
    }
}

#[tokio::test]
async fn a_smaller_fork_is_a_fork_if_the_log_still_shows_the_larger_tree() {
    let (log, folder) = (Log::of(700).await, folder());
    once(folder.path(), &log.target()).await;
    let small = Shows::tree(Tree::of(500, 400, 1)).checkpoint();
    std::fs::write(folder.path().join("fork"), &small).unwrap();
    let vantages = vec![Vantage::File(folder.path().join("fork"))];
    let round = once(folder.path(), &WatchedLog { vantages, ..log.target() }).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::SplitView], 8));
    assert!(is_proof(&round));
}

#[tokio::test]
async fn a_fork_that_was_shown_without_a_proof_is_remembered_and_found_once_the_log_answers() {
    for size in [650, 800] {
        let (log, folder) = (Log::of(600).await, folder());
        once(folder.path(), &log.target()).await;
        log.change(|shows| {
            *shows = Shows::tree(Tree::of(size, 601, 1));
            shows.tiles_status = Some(503);
        });
        let round = once(folder.path(), &log.target()).await;
        assert_eq!((kinds(&round), round.exit().code()), (vec![], 7), "{round:?}");
        // The other branch, as if the first one had never been.
        log.change(|shows| *shows = Shows::tree(Tree::of(900, NEVER, 0)));
        for _ in 0..2 {
            let round = once_unsaved(folder.path(), &log.target()).await;
            assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Fork], 8), "{round:?}");
            assert_eq!(round.outcome(CheckName::Consistency), Some(Outcome::Failed));
            assert!(is_proof(&round));
        }
        assert_eq!(kinds(&once(folder.path(), &log.target()).await), [AlarmKind::Fork]);
        assert!(!remembers_unproven(folder.path()), "the alarm is saved, and has the evidence");
        let round = once(folder.path(), &log.target()).await;
        assert_eq!((kinds(&round), round.exit()), (vec![], MonitorExit::Success), "{round:?}");
    }
}

#[tokio::test]
async fn a_tile_that_is_withheld_does_not_hide_that_a_comparison_with_an_earlier_checkpoint_is_open() {
    let folder = folder();
    let log = log_with_unproven(folder.path(), [Tree::of(700, 600, 1)]).await;
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(1024, NEVER, 0));
        shows.dropped = Some("tile/0/002".into());
    });
    let mut target = log.target();
    for _ in 0..2 {
        let round = once(folder.path(), &target).await;
        assert_eq!((kinds(&round), round.exit().code(), round.verified), (vec![], 7, Some(1024)));
        assert_eq!(round.outcome(CheckName::Consistency), Some(Outcome::Unanswered), "{round:?}");
    }
    target.unreachable_after = Duration::ZERO;
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::MissingTile], 7), "{round:?}");
    log.change(|shows| shows.dropped = None);
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Fork], 8), "{round:?}");
    assert!(is_proof(&round));
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_compared_does_not_delay_the_comparison_of_later_ones() {
    let folder = folder();
    let log = log_with_unproven(folder.path(), [Tree::of(700, NEVER, 0), Tree::of(800, 790, 1)]).await;
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(1024, NEVER, 0));
        shows.dropped = Some("tile/0/002".into());
    });
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Fork], 8), "{round:?}");
    assert!(is_proof(&round));
    assert!(round.checks.iter().any(|check| check.outcome == Outcome::Unanswered), "{round:?}");
    log.change(|shows| shows.dropped = None);
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit()), (vec![], MonitorExit::Success), "{round:?}");
}

#[tokio::test]
async fn hashes_that_do_not_prove_an_earlier_checkpoint_are_inconsistent() {
    let folder = folder();
    let log = log_with_unproven(folder.path(), [Tree::of(700, NEVER, 0)]).await;
    let earlier = log.checkpoint();
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(1024, NEVER, 0));
        shows.damaged = Some("tile/0/002".into());
    });
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Inconsistent], 8), "{round:?}");
    let Some(Evidence::Checkpoint { seen, .. }) = &round.alarms[0].evidence else { panic!("{round:?}") };
    assert_eq!(seen.note, earlier);
    log.change(|shows| shows.damaged = None);
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit()), (vec![], MonitorExit::Success), "{round:?}");
}

#[tokio::test]
async fn a_log_that_takes_back_a_larger_tree_that_it_did_not_prove_is_in_trouble() {
    let folder = folder();
    let log = log_with_unproven(folder.path(), [Tree::of(800, 600, 1)]).await;
    log.change(|shows| *shows = Shows::tree(Tree::of(700, NEVER, 0)));
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code(), round.verified), (vec![], 7, Some(700)), "{round:?}");
    let target = WatchedLog { unreachable_after: Duration::ZERO, ..log.target() };
    assert_eq!(kinds(&once(folder.path(), &target).await), [AlarmKind::MissingTile]);
}

#[tokio::test]
async fn a_log_cannot_displace_a_fork_by_signing_more_trees_without_a_proof() {
    let folder = folder();
    let honest = (601..616).map(|size| Tree::of(size, NEVER, 0));
    let log = log_with_unproven(folder.path(), honest.chain([Tree::of(700, 600, 1)])).await;
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(616, NEVER, 0));
        shows.tiles_status = Some(503);
    });
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::MissingTile], 7), "{round:?}");
    let Some(Evidence::Checkpoint { seen, .. }) = &round.alarms[0].evidence else { panic!("{round:?}") };
    assert_eq!(seen.note, log.checkpoint());
    log.change(|shows| *shows = Shows::tree(Tree::of(1024, NEVER, 0)));
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Fork], 8), "{round:?}");
    assert!(is_proof(&round));
}

#[tokio::test]
async fn the_alarm_of_a_checkpoint_that_is_not_remembered_stands_when_the_log_proves_all_others() {
    let folder = folder();
    let log = log_with_unproven(folder.path(), (601..617).map(|size| Tree::of(size, NEVER, 0))).await;
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(700, 600, 1));
        shows.tiles_status = Some(503);
    });
    let round = once(folder.path(), &log.target()).await;
    assert_eq!(kinds(&round), [AlarmKind::MissingTile], "{round:?}");
    let found_by = round.alarms[0].found_by.clone().unwrap();
    log.change(|shows| *shows = Shows::tree(Tree::of(1024, NEVER, 0)));
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit()), (vec![], MonitorExit::Success), "{round:?}");
    assert!(!round.was_made(&found_by), "only a reset ends it: {round:?}");
}

#[tokio::test]
async fn a_checkpoint_without_a_proof_by_a_key_that_is_no_longer_configured_stops_no_monitor() {
    let folder = folder();
    let log = log_with_unproven(folder.path(), [Tree::of(700, 600, 1)]).await;
    let old = common::vkey();
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(1024, NEVER, 0));
        shows.other_key = true;
        shows.dropped = Some("tile/0/002".into());
    });
    let vkey = common::other_log_key().key().clone();
    let retired = vec![(old, merkle::TreeSize::new(1000))];
    let both = WatchedLog { vkey: vkey.clone(), retired, ..log.target() };
    assert_eq!(once(folder.path(), &both).await.verified, Some(1024));
    let alone = WatchedLog { vkey, ..log.target() };
    let round = once(folder.path(), &alone).await;
    assert_eq!((kinds(&round), round.exit()), (vec![], MonitorExit::Success), "{round:?}");
    log.change(|shows| shows.dropped = None);
    assert_eq!(kinds(&once(folder.path(), &both).await), [AlarmKind::Fork], "it is not forgotten");
}

#[tokio::test]
async fn what_was_shown_without_a_proof_is_forgotten_once_it_is_proven() {
    let (log, folder) = (Log::of(300).await, folder());
    once(folder.path(), &log.target()).await;
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(600, NEVER, 0));
        shows.tiles_status = Some(503);
    });
    once(folder.path(), &log.target()).await;
    assert!(remembers_unproven(folder.path()));
    log.change(|shows| *shows = Shows::tree(Tree::of(700, NEVER, 0)));
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((round.exit(), round.verified), (MonitorExit::Success, Some(700)), "{round:?}");
    assert!(!remembers_unproven(folder.path()));
}

#[tokio::test]
async fn a_smaller_checkpoint_that_a_retry_supersedes_is_compared_too() {
    for (branch, expected) in [(1, vec![AlarmKind::Fork]), (0, vec![])] {
        let (log, folder) = (Log::of(700).await, folder());
        once(folder.path(), &log.target()).await;
        log.change(|shows| {
            *shows = Shows::tree(Tree::of(710, NEVER, 0));
            shows.first_checkpoint = Some(Shows::tree(Tree::of(650, 600, branch)).checkpoint());
        });
        let round = once(folder.path(), &log.target()).await;
        assert_eq!((kinds(&round), round.verified), (expected.clone(), Some(710)), "{round:?}");
        assert!(expected.is_empty() || is_proof(&round));
        assert!(!remembers_unproven(folder.path()), "it is proven, or the alarm is saved");
    }
}

#[tokio::test]
async fn a_smaller_checkpoint_is_not_forgotten_if_the_retry_is_not_answered() {
    let (log, folder) = (Log::of(700).await, folder());
    once(folder.path(), &log.target()).await;
    log.change(|shows| {
        shows.status = Some(503);
        shows.first_checkpoint = Some(Shows::tree(Tree::of(650, 600, 1)).checkpoint());
    });
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![], 7), "{round:?}");
    log.change(|shows| shows.status = None);
    let round = once(folder.path(), &log.target()).await;
    assert_eq!(kinds(&round), [AlarmKind::Fork]);
    assert!(is_proof(&round));
}

#[tokio::test]
async fn a_checkpoint_of_another_key_or_log_is_not_believed() {
    let (log, folder) = (Log::of(10).await, folder());
    log.change(|shows| shows.other_key = true);
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::UnknownKey], 8));
    assert_eq!(round.verified, None);
    log.change(|shows| shows.other_key = false);
    let mut target = log.target();
    target.origin = "other.example".parse().unwrap();
    let round = once(tempfile::tempdir().unwrap().path(), &target).await;
    assert_eq!(kinds(&round), [AlarmKind::OtherLog]);
}

#[tokio::test]
async fn an_error_page_in_the_place_of_a_checkpoint_accuses_nobody() {
    let (log, folder) = (Log::of(10).await, folder());
    log.change(|shows| shows.page = Some("<html>Try again later</html>".into()));
    let mut target = log.target();
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![], 7));
    target.unreachable_after = Duration::ZERO;
    assert_eq!(kinds(&once(folder.path(), &target).await), [AlarmKind::Unreachable]);
}

#[tokio::test]
async fn tiles_that_are_not_the_signed_tree_are_inconsistent() {
    let (log, folder) = (Log::of(300).await, folder());
    once(folder.path(), &log.target()).await;
    let other = Shows::tree(Tree::of(600, 450, 1));
    log.change(|shows| {
        // The signed tree is one, the tiles are another's that has the same beginning.
        shows.tree.grow(600, NEVER, 0);
        shows.size = 600;
    });
    let honest = log.checkpoint();
    log.change(|shows| *shows = other);
    let folder_of_note = tempfile::tempdir().unwrap();
    std::fs::write(folder_of_note.path().join("note"), honest).unwrap();
    let vantages = vec![Vantage::File(folder_of_note.path().join("note"))];
    let round = once(folder.path(), &WatchedLog { vantages, ..log.target() }).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::SplitView], 8), "{round:?}");
    assert!(is_proof(&round));
}

#[tokio::test]
async fn what_another_place_is_shown_is_compared() {
    let (log, folder) = (Log::of(700).await, folder());
    let file = folder.path().join("elsewhere");
    let mut target = WatchedLog { vantages: vec![Vantage::File(file.clone())], ..log.target() };
    let round = once(folder.path(), &target).await;
    assert_eq!(round.outcome(CheckName::Vantage), Some(Outcome::NotChecked), "there is no file");
    std::fs::write(&file, Shows::tree(Tree::of(600, NEVER, 0)).checkpoint()).unwrap();
    let round = once(folder.path(), &target).await;
    assert_eq!((round.outcome(CheckName::Vantage), round.exit()), (Some(Outcome::Ok), MonitorExit::Success));
    // Ahead of the log: that may come, for a while.
    std::fs::write(&file, Shows::tree(Tree::of(900, NEVER, 0)).checkpoint()).unwrap();
    let round = once(folder.path(), &target).await;
    assert_eq!((round.outcome(CheckName::Vantage), kinds(&round)), (Some(Outcome::NotChecked), vec![]));
    target.lag = Duration::ZERO;
    let round = once(folder.path(), &target).await;
    assert_eq!(
        (kinds(&round), round.exit().code()),
        (vec![AlarmKind::Stale], 9),
        "an old view is shown here"
    );
}

#[tokio::test]
async fn a_log_that_publishes_late_is_not_accused_while_it_follows() {
    let (log, folder) = (Log::of(700).await, folder());
    let file = folder.path().join("elsewhere");
    let target = WatchedLog { vantages: vec![Vantage::File(file.clone())], ..log.target() };
    let dir = MonitorStateDir::take(folder.path()).unwrap();
    let mut watcher = LogWatcher::new(target.clone(), dir.log("log").unwrap(), now()).unwrap();
    let (start, lag) = (now(), target.lag.as_secs());
    // Always ahead by one step, for much longer than the lag that is allowed, and never by the same tree.
    for step in 0..6 {
        let size = 700 + 10 * step;
        log.change(|shows| *shows = Shows::tree(Tree::of(size, NEVER, 0)));
        std::fs::write(&file, Shows::tree(Tree::of(size + 10, NEVER, 0)).checkpoint()).unwrap();
        let round = watcher.round(start + step * lag * 2 / 3).await;
        assert_eq!((kinds(&round), round.exit()), (vec![], MonitorExit::Success), "{step}: {round:?}");
    }
    // Then it follows no more.
    let round = watcher.round(start + 10 * lag).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Stale], 9));
}

#[tokio::test]
async fn a_log_that_is_ahead_elsewhere_and_proves_it_shows_an_old_view_here_once_that_lasts() {
    let (log, folder) = (Log::of(700).await, folder());
    let file = folder.path().join("elsewhere");
    std::fs::write(&file, Shows::tree(Tree::of(900, NEVER, 0)).checkpoint()).unwrap();
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(900, NEVER, 0));
        shows.size = 700;
        shows.tiles_up_to = Some(900);
    });
    let mut target = WatchedLog { vantages: vec![Vantage::File(file)], ..log.target() };
    let round = once(folder.path(), &target).await;
    assert_eq!((round.outcome(CheckName::Vantage), kinds(&round)), (Some(Outcome::Ok), vec![]));
    target.lag = Duration::ZERO;
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Stale], 9), "{round:?}");
}

#[tokio::test]
async fn a_place_that_was_once_ahead_is_compared_when_the_log_has_grown_past_it() {
    let (log, folder) = (Log::of(700).await, folder());
    let file = folder.path().join("elsewhere");
    std::fs::write(&file, Shows::tree(Tree::of(900, NEVER, 0)).checkpoint()).unwrap();
    let mut target = WatchedLog { vantages: vec![Vantage::File(file)], ..log.target() };
    for vantages in [target.vantages.clone(), Vec::new()] {
        let state = tempfile::tempdir().unwrap();
        log.change(|shows| {
            *shows = Shows::tree(Tree::of(900, NEVER, 0));
            shows.size = 700;
            shows.tiles_up_to = Some(900);
        });
        let round = once(state.path(), &target).await;
        assert_eq!((round.outcome(CheckName::Vantage), kinds(&round)), (Some(Outcome::Ok), vec![]));
        log.change(|shows| *shows = Shows::tree(Tree::of(1000, 800, 1)));
        // The monitor has seen both trees itself. The place may show the other one still, or nothing.
        let expected: &[AlarmKind] = match vantages.is_empty() {
            false => &[AlarmKind::Fork, AlarmKind::SplitView],
            true => &[AlarmKind::Fork],
        };
        let round = once(state.path(), &WatchedLog { vantages, ..target.clone() }).await;
        assert_eq!((&kinds(&round)[..], round.exit().code()), (expected, 8), "{round:?}");
        assert!(round.alarms.iter().all(is_proven));
    }
    // A log that keeps its promise agrees, and nothing is left to compare.
    target.name = "honest".into();
    log.change(|shows| {
        *shows = Shows::tree(Tree::of(900, NEVER, 0));
        shows.size = 700;
        shows.tiles_up_to = Some(900);
    });
    once(folder.path(), &target).await;
    log.change(|shows| *shows = Shows::tree(Tree::of(1000, NEVER, 0)));
    let round = once(folder.path(), &target).await;
    assert_eq!((round.outcome(CheckName::Vantage), round.exit()), (Some(Outcome::Ok), MonitorExit::Success));
    assert!(!std::fs::read_to_string(folder.path().join("honest/state.json")).unwrap().contains("unproven"));
}

#[tokio::test]
async fn a_log_in_trouble_is_not_accused_of_what_another_place_is_shown() {
    let (log, folder) = (Log::of(700).await, folder());
    let file = folder.path().join("elsewhere");
    std::fs::write(&file, Shows::tree(Tree::of(900, NEVER, 0)).checkpoint()).unwrap();
    let mut target = WatchedLog { vantages: vec![Vantage::File(file)], lag: Duration::ZERO, ..log.target() };
    log.change(|shows| shows.tiles_status = Some(503));
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![], 7), "{round:?}");
    target.unreachable_after = Duration::ZERO;
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::MissingTile], 7), "{round:?}");
}

#[tokio::test]
async fn an_empty_tree_elsewhere_agrees_with_nothing() {
    let (log, folder) = (Log::of(700).await, folder());
    let file = folder.path().join("elsewhere");
    std::fs::write(&file, Shows::tree(Tree::of(0, NEVER, 0)).checkpoint()).unwrap();
    let target = WatchedLog { vantages: vec![Vantage::File(file)], ..log.target() };
    let round = once(folder.path(), &target).await;
    assert_eq!(round.outcome(CheckName::Vantage), Some(Outcome::NotChecked), "{round:?}");
}

#[tokio::test]
async fn a_witness_or_another_server_that_shows_another_tree_proves_a_split_view() {
    let (here, there, folder) = (Log::of(700).await, Log::of(700).await, folder());
    let there_at = |path: &str| format!("http://{}/{path}", there.address).parse().unwrap();
    let places = [Vantage::Url(there_at("checkpoint")), Vantage::Witness(there_at(""))];
    for vantage in places {
        let target = WatchedLog { vantages: vec![vantage], ..here.target() };
        there.change(|shows| *shows = Shows::tree(Tree::of(700, NEVER, 0)));
        let round = once(folder.path(), &target).await;
        assert_eq!(
            (round.outcome(CheckName::Vantage), round.exit()),
            (Some(Outcome::Ok), MonitorExit::Success)
        );
        for (size, fork) in [(700, 699), (650, 3)] {
            there.change(|shows| *shows = Shows::tree(Tree::of(size, fork, 1)));
            let round = once(folder.path(), &target).await;
            assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::SplitView], 8));
            assert!(is_proof(&round), "{size}");
        }
    }
}

#[tokio::test]
async fn a_witness_that_cosigned_lately_vouches_for_a_checkpoint_without_its_line() {
    let (log, witness, folder) = (Log::of(10).await, Log::of(10).await, folder());
    witness.change(|shows| shows.cosigned = Some(now()));
    let vantage = Vantage::Witness(format!("http://{}/", witness.address).parse().unwrap());
    let witnesses = vec![common::witness_key().key().clone()];
    let alone = WatchedLog { witnesses, ..log.target() };
    let round = once(folder.path(), &alone).await;
    assert_eq!(round.outcome(CheckName::Freshness), Some(Outcome::NotChecked));
    let round = once(folder.path(), &WatchedLog { vantages: vec![vantage], ..alone }).await;
    assert_eq!(round.outcome(CheckName::Freshness), Some(Outcome::Ok));
}

#[tokio::test]
async fn a_stale_checkpoint_is_not_over_because_the_log_answers_no_more() {
    let (log, folder) = (Log::of(10).await, folder());
    let target = WatchedLog { witnesses: vec![common::witness_key().key().clone()], ..log.target() };
    let config = config(folder.path(), target);
    let recorder = RoundRecorder::open(&config, Box::new(|_| ())).unwrap();
    let mut monitor = Monitor::begin(&config).unwrap();
    let mut after = async |cosigned: u64, status: Option<u16>| {
        log.change(|shows| (shows.cosigned, shows.status) = (Some(cosigned), status));
        monitor.once(&recorder).await;
        let alarms = AlarmList::read(folder.path()).unwrap();
        (alarms.standing().len(), alarms.over().len())
    };
    assert_eq!(after(now() - 86_400, None).await, (1, 0));
    assert_eq!(after(now(), Some(503)).await, (1, 0), "nothing was looked at");
    assert_eq!(after(now(), None).await, (0, 1));
}

#[tokio::test]
async fn a_monitor_that_runs_looks_again_and_again_and_stops_when_it_is_told_to() {
    use std::sync::{Arc, Mutex};
    struct Kept(Mutex<Vec<Round>>);
    #[async_trait::async_trait]
    impl monitor::Sink for Kept {
        async fn round(&self, round: &Round) {
            self.0.lock().unwrap().push(round.clone());
        }
    }
    let (log, folder) = (Log::of(10).await, folder());
    let mut config = config(folder.path(), WatchedLog { depth: Depth::Entries, ..log.target() });
    config.every = Duration::from_millis(50);
    let (kept, stop) = (Arc::new(Kept(Mutex::default())), tokio::sync::Notify::new());
    let running = Monitor::begin(&config).unwrap().run(kept.clone(), stop.notified());
    let until = async {
        let count = || kept.0.lock().unwrap().len();
        while count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        log.change(|shows| *shows = Shows::tree(Tree::of(20, 9, 1)));
        while kept.0.lock().unwrap().last().unwrap().alarms.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.notify_one();
    };
    let both = async { tokio::join!(running, until).0 };
    tokio::time::timeout(Duration::from_secs(60), both).await.expect("it stops").unwrap();
    assert_eq!(kinds(kept.0.lock().unwrap().last().unwrap()), [AlarmKind::Fork]);
    Monitor::begin(&config).expect("the folder is free again");
}

#[tokio::test]
async fn the_root_is_made_from_the_entries_and_a_wrong_entry_is_named() {
    let (log, folder) = (Log::of(700).await, folder());
    let target = WatchedLog { depth: Depth::Entries, ..log.target() };
    let round = once(folder.path(), &target).await;
    assert_eq!(
        (round.outcome(CheckName::Entries), round.exit()),
        (Some(Outcome::Ok), MonitorExit::Success),
        "{round:?}"
    );
    log.change(|shows| {
        shows.tree.grow(1000, NEVER, 0);
        shows.size = 1000;
        shows.other_entry = Some(900);
    });
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Inconsistent], 8), "{round:?}");
    assert!(round.alarms[0].words.contains("leaf 900"), "{}", round.alarms[0].words);
    log.change(|shows| shows.other_entry = None);
    let round = once(folder.path(), &target).await;
    assert_eq!((round.outcome(CheckName::Entries), round.exit()), (Some(Outcome::Ok), MonitorExit::Success));
}

#[tokio::test]
async fn wrong_entries_are_an_accusation_though_the_log_refuses_the_tile_that_would_tell_which() {
    let (log, folder) = (Log::of(700).await, folder());
    log.change(|shows| {
        shows.other_entry = Some(5);
        shows.dropped = Some("tile/0/000".into());
    });
    let target = WatchedLog { depth: Depth::Entries, ..log.target() };
    let round = once(folder.path(), &target).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Inconsistent], 8), "{round:?}");
    assert!(matches!(round.alarms[0].evidence, Some(Evidence::Checkpoint { .. })));
}

#[tokio::test]
async fn a_long_catch_up_goes_on_from_round_to_round_and_says_what_is_not_checked_yet() {
    let (log, folder) = (Log::of(700).await, folder());
    let dir = MonitorStateDir::take(folder.path()).unwrap();
    let target = WatchedLog { depth: Depth::Entries, ..log.target() };
    for (entries, outcome) in [(256, Outcome::NotChecked), (512, Outcome::NotChecked), (700, Outcome::Ok)] {
        // A new process each time: what was read is kept.
        let mut watcher = LogWatcher::new(target.clone(), dir.log("log").unwrap(), now()).unwrap();
        watcher.limit_deep_checks(Duration::ZERO);
        let round = watcher.round(now()).await;
        assert_eq!(round.outcome(CheckName::Entries), Some(outcome), "{entries}");
        assert_eq!(watcher.state().entries.as_ref().map(|edge| edge.size), Some(entries));
        assert_eq!(round.exit(), MonitorExit::Success);
    }
}

#[tokio::test]
async fn a_log_that_never_answers_for_its_entries_holds_up_no_accusation() {
    let (log, folder) = (Log::of(700).await, folder());
    log.change(|shows| shows.stalled = Some("tile/entries".into()));
    let file = folder.path().join("elsewhere");
    std::fs::write(&file, Shows::tree(Tree::of(500, 400, 1)).checkpoint()).unwrap();
    let vantages = vec![Vantage::File(file)];
    let target = WatchedLog { depth: Depth::Entries, vantages, ..log.target() };
    let dir = MonitorStateDir::take(folder.path()).unwrap();
    let mut watcher = LogWatcher::new(target, dir.log("log").unwrap(), now()).unwrap();
    watcher.limit_deep_checks(Duration::ZERO);
    watcher.set_grace(Duration::from_millis(200));
    let round = watcher.round(now()).await;
    assert_eq!(
        (kinds(&round), round.outcome(CheckName::Entries)),
        (vec![AlarmKind::SplitView], Some(Outcome::NotChecked))
    );
    assert!(round.checks.iter().any(|check| check.words.contains("out of time")), "{round:?}");
}

#[tokio::test]
async fn a_wrong_entry_is_an_accusation_though_there_is_no_time_to_find_it() {
    let (log, folder) = (Log::of(700).await, folder());
    log.change(|shows| {
        shows.other_entry = Some(5);
        // What proves the tree is there; what would tell the leaf is not.
        shows.makes_proofs = true;
        shows.stalled = Some("tile/0/000".into());
    });
    let target = WatchedLog { depth: Depth::Entries, ..log.target() };
    let dir = MonitorStateDir::take(folder.path()).unwrap();
    let mut watcher = LogWatcher::new(target, dir.log("log").unwrap(), now()).unwrap();
    watcher.limit_deep_checks(Duration::ZERO);
    watcher.set_grace(Duration::from_secs(10));
    let round = watcher.round(now()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Inconsistent], 8), "{round:?}");
    assert!(round.alarms[0].words.contains("ran out of time"), "{}", round.alarms[0].words);
}

#[tokio::test]
async fn another_place_that_is_silent_is_an_alarm_about_that_place_once_it_lasts() {
    let (log, folder) = (Log::of(10).await, folder());
    let vantages = vec![Vantage::Url("http://127.0.0.1:1/checkpoint".parse().unwrap())];
    let mut target = WatchedLog { vantages, ..log.target() };
    let round = once(folder.path(), &target).await;
    assert_eq!((round.outcome(CheckName::Vantage), kinds(&round)), (Some(Outcome::NotChecked), vec![]));
    target.unreachable_after = Duration::ZERO;
    let round = once(folder.path(), &target).await;
    assert_eq!(kinds(&round), [AlarmKind::Unreachable]);
    assert!(matches!(&round.alarms[0].about, AlarmSubject::Vantage(name) if name.contains("127.0.0.1:1")));
}

#[tokio::test]
async fn a_log_that_goes_back_and_does_not_answer_for_what_it_had_is_in_trouble_and_not_accused() {
    let (log, folder) = (Log::of(700).await, folder());
    once(folder.path(), &log.target()).await;
    log.change(|shows| {
        shows.size = 650;
        shows.tiles_status = Some(503);
    });
    let round = once(folder.path(), &log.target()).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![], 7));
    // Not for ever, though: who cannot show what it had for so long has it no more.
    let patient_no_more = WatchedLog { unreachable_after: Duration::ZERO, ..log.target() };
    let round = once(folder.path(), &patient_no_more).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Rollback], 8));
    log.change(|shows| shows.tiles_status = None);
    let round = once(folder.path(), &log.target()).await;
    assert_eq!(kinds(&round), [AlarmKind::Rollback]);
}

#[tokio::test]
async fn r63_a_given_checkpoint_is_what_a_lost_state_begins_with() {
    let (log, folder) = (Log::of(10).await, folder());
    let given = folder.path().join("given");
    std::fs::write(&given, log.checkpoint()).unwrap();
    log.change(|shows| *shows = Shows::tree(Tree::of(20, 9, 1)));
    let round = once(folder.path(), &WatchedLog { start: Some(given), ..log.target() }).await;
    assert_eq!((kinds(&round), round.exit().code()), (vec![AlarmKind::Fork], 8));
    assert!(is_proof(&round));
}

#[tokio::test]
async fn one_bad_log_does_not_stop_the_others() {
    let (good, bad, folder) = (Log::of(10).await, Log::of(10).await, folder());
    bad.change(|shows| shows.status = Some(500));
    let mut bad_target = bad.target();
    bad_target.name = "bad".into();
    let both = monitor::Config::new(folder.path().to_owned(), vec![bad_target, good.target()]);
    let rounds = Monitor::begin(&both).unwrap().once(&Nowhere).await;
    let exits: Vec<_> = rounds.iter().map(|round| (round.log.as_str(), round.exit().code())).collect();
    assert_eq!(exits, [("bad", 7), ("log", 0)]);
}
