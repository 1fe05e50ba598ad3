//! The real monitor and a log that lies: what is wrong is found in one round, called by its name, and shown to others by a
//! file that speaks for itself when the log is gone.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{LyingLog, Watch, until};

/// Exit codes of the monitor.
const UNREACHABLE: i32 = 7;
const MISBEHAVIOUR: i32 = 8;
const STALE: i32 = 9;
/// A diff of evidence that rests on the monitor's word for the order of events.
const ON_WORD: i32 = 4;
const DAY: i64 = 86_400;

/// A log, and a monitor that has seen it honest.
fn watched(entries: u64) -> (LyingLog, Watch) {
    let log = LyingLog::of(entries);
    let watch = watching(&log, "");
    watch.look().must_be_well();
    (log, watch)
}

fn watching(log: &LyingLog, settings: &str) -> Watch {
    let witness = format!("witnesses = [\"{}\"]\nstale_after = \"10m\"\n{settings}", log.witness_vkey());
    Watch::of(&log.url(), &log.vkey(), &witness)
}

/// The log is gone; the file remains, and the key that somebody knows.
#[track_caller]
fn shows_alone(log: &LyingLog, watch: &Watch, evidence: &Path, code: i32, verdict: &str) {
    log.die();
    let ran = watch.convinces(evidence, &["--key", &log.vkey()]);
    assert_eq!((ran.code, ran.json()["verdict"].as_str()), (Some(code), Some(verdict)), "{ran}");
    let stranger = LyingLog::of(1).witness_vkey();
    assert_ne!(
        watch.convinces(evidence, &["--key", &stranger]).code,
        Some(code),
        "another key shows nothing"
    );
}

#[test]
fn an_honest_log_that_grows_is_never_accused_however_often_its_monitor_is_restarted() {
    let (log, watch) = watched(1);
    for more in [0, 1, 0, 5, 249, 1, 300, 0, 1000] {
        log.grow(more);
        let looked = watch.look();
        looked.must_be_well();
        for name in ["signature", "growth", "freshness", "consistency"] {
            assert_eq!(looked.check(name).0, "ok", "{looked:#?}");
        }
    }
    // And by one process that goes on, while the log grows.
    let mut child = watch.run();
    for _ in 0..8 {
        log.grow(37);
        sleep(Duration::from_millis(400));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let alarms = watch.alarms();
    assert_eq!((alarms.code, alarms.json()["alarms"].as_array().unwrap().len()), (Some(0), 0), "{alarms}");
    watch.look().must_be_well();
}

#[test]
fn r64_a_log_that_truncates_is_found_in_one_round_and_what_it_signed_shows_it() {
    for (entries, left) in [(300, 299), (300, 40), (513, 256), (5, 1), (300, 0)] {
        let (log, watch) = watched(entries);
        log.truncate(left);
        let looked = watch.look();
        looked.must_accuse(MISBEHAVIOUR, "rollback");
        // Growing again as if nothing had been forgotten: the accusation stands until somebody looks.
        shows_alone(&log, &watch, &looked.evidence(), ON_WORD, "on-word");
    }
}

#[test]
fn r64_a_log_that_forks_at_its_last_leaf_is_found_in_one_round_and_the_proof_needs_nobody_s_word() {
    for entries in [1, 2, 255, 256, 257, 700] {
        let (log, watch) = watched(entries);
        log.fork_at(entries as usize - 1);
        let looked = watch.look();
        looked.must_accuse(MISBEHAVIOUR, "fork");
        shows_alone(&log, &watch, &looked.evidence(), MISBEHAVIOUR, "contradiction");
    }
}

#[test]
fn r64_a_log_that_forks_deep_and_grows_is_found_in_one_round_and_the_proof_needs_nobody_s_word() {
    for (entries, leaf, more) in [(700, 3, 1), (700, 699, 300), (256, 0, 1), (512, 256, 512), (3, 1, 600)] {
        let (log, watch) = watched(entries);
        log.grow(more);
        log.fork_at(leaf);
        let looked = watch.look();
        looked.must_accuse(MISBEHAVIOUR, "fork");
        shows_alone(&log, &watch, &looked.evidence(), MISBEHAVIOUR, "contradiction");
    }
}

#[test]
fn r64_a_log_that_freezes_is_stale_in_one_round_though_its_tree_is_as_it_was() {
    let (log, watch) = watched(20);
    log.freeze(3600);
    log.grow(10);
    let looked = watch.look();
    looked.must_accuse(STALE, "stale");
    assert_eq!(looked.check("consistency").0, "ok", "{looked:#?}");
    assert_eq!(looked.check("freshness").0, "failed", "{looked:#?}");
}

#[test]
fn r64_a_log_that_shows_an_older_checkpoint_of_its_own_is_stale_and_no_rollback() {
    for (entries, older) in [(300, 299), (300, 256), (20, 1)] {
        let log = LyingLog::of(entries);
        let watch = watching(&log, "lag = \"1s\"");
        watch.look().must_be_well();
        log.show_checkpoint_of(older);
        let looked = watch.look(); // For a moment a cache may be behind: no alarm, and not fine either.
        assert_ne!(looked.check("growth").0, "ok", "{looked:#?}");
        becomes(&watch, STALE, "stale");
        log.recover();
        let looked = watch.look();
        assert_eq!(looked.check("growth").0, "ok", "{looked:#?}");
    }
}

#[test]
fn r64_a_log_that_drops_one_tile_is_not_believed_and_becomes_an_alarm() {
    let log = LyingLog::of(300);
    let watch = watching(&log, "unreachable_after = \"1s\"");
    watch.look().must_be_well();
    log.grow(50);
    log.drop_path("tile/0/001");
    let looked = watch.look();
    assert_eq!((looked.code(), looked.kinds()), (Some(UNREACHABLE), vec![]), "{looked:#?}");
    assert_eq!(looked.check("consistency").0, "unanswered", "never ok for what was not checked: {looked:#?}");
    becomes(&watch, UNREACHABLE, "missing-tile");
    log.recover();
    watch.reset();
    let looked = watch.look();
    looked.must_be_well();
    assert_eq!(looked.check("consistency").0, "ok");
}

#[test]
fn r64_a_log_that_answers_500_is_unreachable_and_becomes_an_alarm() {
    let log = LyingLog::of(300);
    let watch = watching(&log, "unreachable_after = \"1s\"");
    watch.look().must_be_well();
    for status in [500, 503, 404] {
        log.answer(status);
        let looked = watch.look();
        assert_eq!((looked.code(), looked.kinds()), (Some(UNREACHABLE), vec![]), "{status}: {looked:#?}");
        assert_eq!(looked.check("reachable").0, "unanswered", "{status}: {looked:#?}");
        becomes(&watch, UNREACHABLE, "unreachable");
        log.recover();
        watch.reset();
        watch.look().must_be_well();
    }
}

/// What lasts longer than it may is an alarm, with this exit code.
#[track_caller]
fn becomes(watch: &Watch, code: i32, kind: &str) {
    let begun = Instant::now();
    loop {
        let looked = watch.look();
        if looked.kinds() == [kind] {
            assert_eq!(looked.code(), Some(code), "{looked:#?}");
            return;
        }
        assert_eq!(looked.kinds(), [""; 0], "{looked:#?}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{looked:#?}");
        sleep(Duration::from_millis(300));
    }
}

#[test]
fn a_log_that_shows_one_tree_here_and_another_there_is_a_split_view_and_both_notes_show_it() {
    let log = LyingLog::of(300);
    let vantage = format!("[[log.vantage]]\nurl = \"{}checkpoint\"", log.other_url());
    let watch = watching(&log, &vantage);
    watch.look().must_be_well();
    log.split();
    log.grow(5);
    watch.look().must_be_well(); // The other client is behind, in the same tree.
    log.split();
    log.fork_at(304);
    let fresh = watching(&log, &vantage); // It has no past that would show a fork.
    let looked = fresh.look();
    looked.must_accuse(MISBEHAVIOUR, "split-view");
    shows_alone(&log, &fresh, &looked.evidence(), MISBEHAVIOUR, "contradiction");
}

#[test]
fn a_checkpoint_by_another_key_is_never_taken() {
    let (log, watch) = watched(10);
    log.grow(1);
    log.sign_with_other_key();
    let looked = watch.look();
    looked.must_accuse(MISBEHAVIOUR, "unknown-key");
    assert_eq!(looked.round()["verified"], 10, "{looked:#?}");
}

#[test]
fn r37_a_clock_that_is_a_day_off_is_called_a_clock_and_never_a_fork() {
    for ahead in [DAY, -DAY] {
        // Ours is off: the log's server and the witness agree with each other, and not with us.
        let (log, watch) = watched(10);
        log.grow(3);
        log.set_clocks(ahead, ahead);
        let looked = watch.look();
        looked.must_accuse(STALE, "clock");
        assert!(looked.check("freshness").1.contains("clock"), "{looked:#?}");
        assert_eq!(looked.check("consistency").0, "ok", "{looked:#?}");
    }
    // The witness's is ahead: its cosignature is from the future.
    let (log, watch) = watched(10);
    log.set_clocks(0, DAY);
    let looked = watch.look();
    looked.must_accuse(STALE, "clock");
    assert!(looked.check("freshness").1.contains("witness"), "{looked:#?}");
    // The witness's is behind: that cannot be told from a log that withholds what is new.
    let (log, watch) = watched(10);
    log.set_clocks(0, -DAY);
    watch.look().must_accuse(STALE, "stale");
}

#[test]
fn r63_a_monitor_that_lost_its_state_says_that_it_begins_anew_and_believes_nothing_before() {
    let (log, watch) = watched(10);
    fs::remove_dir_all(watch.path("state/log")).unwrap();
    log.fork_at(4); // What was forgotten cannot be compared, and must not be said to have been.
    let looked = watch.look();
    looked.must_be_well();
    let (outcome, words) = looked.check("consistency");
    assert_eq!(outcome, "not-checked", "{looked:#?}");
    assert!(words.contains("watching begins at size"), "{words}");
}

#[test]
fn r63_an_older_state_is_gone_on_from_and_still_shows_a_fork() {
    let (log, watch) = watched(10);
    let older = fs::read(watch.path("state/log/state.json")).unwrap();
    log.grow(300);
    watch.look().must_be_well();
    fs::write(watch.path("state/log/state.json"), &older).unwrap();
    watch.look().must_be_well();
    fs::write(watch.path("state/log/state.json"), &older).unwrap();
    log.fork_at(9);
    watch.look().must_accuse(MISBEHAVIOUR, "fork");
}

#[test]
fn r63_a_state_of_another_log_or_of_nobody_is_refused() {
    let (log, watch) = watched(10);
    let other = LyingLog::of(3);
    let state = watch.path("state/log/state.json");
    let honest = fs::read_to_string(&state).unwrap();
    let config =
        format!("[[log]]\nname = \"log\"\nurl = \"{}\"\nvkey = \"{}\"\n", other.url(), other.witness_vkey());
    watch.configure(&config);
    refused(&watch, None);
    let config = format!("[[log]]\nname = \"log\"\nurl = \"{}\"\nvkey = \"{}\"\n", log.url(), log.vkey());
    watch.configure(&config);
    for damaged in [
        "{}".to_owned(),
        "not JSON".to_owned(),
        honest.replace("\"size\": 10", "\"size\": 9"),
        honest[..40].to_owned(),
    ] {
        assert_ne!(damaged, honest);
        fs::write(&state, damaged).unwrap();
        refused(&watch, Some("monitor-state"));
    }
    fs::write(&state, honest).unwrap();
    watch.look().must_be_well();
}

#[track_caller]
fn refused(watch: &Watch, code: Option<&str>) {
    let ran = watch.look().ran;
    assert!(!matches!(ran.code, Some(0 | MISBEHAVIOUR | STALE)) && ran.stdout.is_empty(), "{ran}");
    assert!(code.is_none_or(|code| ran.stderr.contains(code)), "{ran}");
}

#[test]
fn r63_two_monitors_never_work_in_one_folder() {
    let (_log, watch) = watched(10);
    let mut first = watch.run();
    until(
        Duration::from_secs(30),
        || "it does not start",
        || fs::read_to_string(watch.path("run.log")).unwrap_or_default().contains("watching"),
    );
    refused(&watch, Some("monitor-in-use"));
    assert_eq!(watch.alarms().code, Some(0), "looking at what is kept disturbs nobody");
    first.kill().unwrap();
    first.wait().unwrap();
    watch.look().must_be_well();
}

/// The configuration of a monitor after the log's key was replaced by the other one from this size on.
fn after_rotation(log: &LyingLog, retired_size: u64) -> String {
    let retired = format!("[{{ vkey = \"{}\", retired_size = {retired_size} }}]", log.vkey());
    let witness = format!("witnesses = [\"{}\"]\nstale_after = \"10m\"", log.witness_vkey());
    let named = format!("name = \"log\"\nurl = \"{}\"\nvkey = \"{}\"", log.url(), log.other_vkey());
    format!("[[log]]\n{named}\n{witness}\nretired_keys = {retired}\n")
}

#[test]
fn r52_a_checkpoint_that_a_retired_key_signed_after_its_retirement_is_an_accusation() {
    let (log, watch) = watched(5);
    watch.configure(&after_rotation(&log, 8));
    watch.look().must_be_well();
    log.grow(2);
    watch.look().must_be_well();
    log.sign_with_other_key();
    log.grow(2);
    watch.look().must_be_well();
    log.recover();
    log.grow(1);
    watch.look().must_accuse(MISBEHAVIOUR, "retired-key");
}

#[test]
fn r52_a_checkpoint_beyond_the_size_at_which_its_key_was_compromised_is_an_accusation() {
    let (log, watch) = watched(5);
    watch.configure(&after_rotation(&log, 8));
    log.grow(2);
    watch.look().must_be_well();
    // That the key was compromised at a smaller size is found out later.
    watch.configure(&after_rotation(&log, 6));
    watch.look().must_accuse(MISBEHAVIOUR, "retired-key");
}
