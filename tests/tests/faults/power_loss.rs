//! Machines whose power is lost: whatever was not flushed is gone, or there in part, and no promise is broken (R8).
//!
//! The witness's test is in `witness.rs`, beside the histories that it is shown.

use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{
    Cluster, Database, Load, Log, Loss, Lost, LyingLog, Power, Recorder, Watch, onslaught,
    resolve_what_was_left_open, seed,
};

/// Losses of power in one test.
const ROUNDS: u64 = 8;
/// The same where a server has to be started each time.
const ROUNDS_ON_POSTGRES: u64 = 2;
/// Calls that change or flush files until the power goes, at most: a start takes some 40, a batch some 20.
const CALLS: u64 = 500;
/// How long a process may take until its power goes, where that is decided by its calls.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// The worst that a disk may do, and anything else that it may do, in turn.
fn loss_in(round: u64) -> Loss {
    if round.is_multiple_of(2) { Loss::Everything } else { Loss::Some }
}

#[test]
fn r08_a_log_on_sqlite_whose_power_is_lost_keeps_every_promise() {
    seed();
    let log = Log::sqlite();
    log.serve().stop();
    let power = Power::of(log.folder());
    power.watch();
    let recorder = Recorder::new();
    let load = Load { log: &log, recorder: &recorder, writers: 4 };
    let mut writes = 0;
    for round in 0..ROUNDS {
        power.cut_after(fastrand::u64(0..CALLS));
        match log.try_serve_with(&power.variables()) {
            Ok(service) => {
                let begun = Instant::now();
                load.on(&service, || {
                    while service.runs() {
                        assert!(begun.elapsed() < LONG_ENOUGH, "the power is not lost");
                        sleep(Duration::from_millis(2));
                    }
                });
            }
            Err(ran) => assert_eq!(ran.code, None, "it starts until its power is lost: {ran}"),
        }
        writes += power.lose(loss_in(round)).writes;
        let service = log.serve();
        resolve_what_was_left_open(&recorder, &service);
        service.kill();
    }
    assert!(writes > 0 && recorder.registered() > 0, "nothing was at stake");
    recorder.verdict(&log, log.serve());
}

/// Database server and service are on one machine.
#[test]
fn r08_a_log_on_postgresql_whose_power_is_lost_keeps_every_promise() {
    seed();
    let (cluster, theirs) = Cluster::start_with_power();
    let log = Log::on(Database::Postgres(cluster.url().to_owned()));
    log.serve().stop();
    let ours = Power::of(log.folder());
    // What the server has not yet flushed of its beginning is not at stake.
    black_box::sql(cluster.url(), "CHECKPOINT");
    theirs.watch();
    ours.watch();
    let recorder = Recorder::new();
    let load = Load { log: &log, recorder: &recorder, writers: 4 };
    let mut lost = Vec::new();
    for round in 0..ROUNDS_ON_POSTGRES {
        let service = log.serve_with(&ours.variables());
        load.on(&service, || {
            sleep(Duration::from_millis(fastrand::u64(100..1500)));
            if round % 2 == 1 {
                black_box::sql(cluster.url(), "CHECKPOINT");
            }
            cluster.kill();
        });
        service.kill();
        lost.push(theirs.lose(loss_in(round)));
        ours.lose(loss_in(round));
        cluster.recover();
        let service = log.serve();
        resolve_what_was_left_open(&recorder, &service);
        service.kill();
    }
    assert!(
        lost.iter().any(|lost| lost.writes > 0) && recorder.registered() > 0,
        "nothing was at stake: {lost:?}"
    );
    recorder.verdict(&log, log.serve());
}

#[test]
fn r08_r47_a_gateway_whose_power_is_lost_forgets_no_verdict_and_invents_none() {
    seed();
    assert!(onslaught::survives_power_losses(ROUNDS, CALLS) > 0, "nothing was at stake");
}

/// Whichever of its changes and flushes is the last: the next look ends well or re-verifies, and accuses nobody.
#[test]
fn r08_r63_a_monitor_whose_power_is_lost_goes_on_and_accuses_nobody() {
    seed();
    let log = LyingLog::of(20);
    let watch = Watch::of(&log.url(), &log.vkey(), "");
    watch.look().must_be_well();
    let power = Power::of(watch.folder());
    power.watch();
    let mut lost = Lost::default();
    // Each cut once with all of what was not flushed lost, and once with a part of it.
    for turn in 0..2 {
        let mut whole = 0;
        for calls in 0.. {
            log.grow(3);
            power.cut_after(calls);
            let ran = watch.look_with(&power.variables()).ran;
            lost.writes += power.lose(loss_in(calls + turn)).writes;
            if ran.code == Some(0) {
                let status =
                    watch.tabellion(&["monitor", "status", "--config", "monitor.toml", "--json"]).json();
                let told = ran.json()["rounds"][0]["verified"].clone();
                assert_eq!(status["logs"][0]["verified_size"], told, "what it told outlives it: {ran}");
            }
            watch.look().must_be_well();
            whole += u64::from(ran.code == Some(0));
            if whole == 2 {
                assert!(calls > 4, "nothing was at stake: {calls} calls");
                break;
            }
        }
    }
    assert!(lost.writes > 0, "nothing was at stake: {lost:?}");
    log.fork_at(0);
    watch.look().must_accuse(8, "fork");
}
