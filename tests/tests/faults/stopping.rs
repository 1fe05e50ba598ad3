//! Stopping while there is work: whoever was answered can rely on it, whoever was not can ask again.

use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::{Load, Log, Recorder, Service, on_both_databases, until};
use rustix::process::Signal;

/// How long a stop may take (R56).
const STOP: Duration = Duration::from_secs(10);
/// How long it may take until there is load on a busy machine.
const LOADED: Duration = Duration::from_secs(60);

/// Stops under load with these signals, 100 ms apart.
fn stops_in_order(log: &Log, signals: &[Signal]) {
    let recorder = Recorder::new();
    let load = Load { log, recorder: &recorder, writers: 6 };
    let mut service = log.serve();
    let took = load.on(&service, || {
        until(LOADED, || format!("{:?}", recorder.answers()), || recorder.registered() > 10);
        let begun = Instant::now();
        for signal in signals {
            service.signal(*signal);
            sleep(Duration::from_millis(100));
        }
        while service.runs() && begun.elapsed() < 2 * STOP {
            sleep(Duration::from_millis(5));
        }
        begun.elapsed()
    });
    assert!(took < STOP, "{took:?}");
    assert_eq!(service.wait().code(), Some(0), "{}", service.said());
    assert!(recorder.registered() > 10, "{:?}", recorder.answers());
    assert!(
        recorder.answers().keys().all(|status| matches!(status, 200..=204 | 503)),
        "{:?}",
        recorder.answers()
    );
    recorder.verdict(log, log.serve());
}

#[test]
fn lines_of_a_log_in_json_have_numbers_as_numbers_and_the_role_as_a_word() {
    let log = Log::sqlite();
    let service = log.serve_with(&[("TABELLION_LOG_FORMAT", "json".to_owned())]);
    let said = service.said();
    service.stop();
    let lines: Vec<serde_json::Value> =
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let fields = |message: &str| {
        let line = lines.iter().map(|line| &line["fields"]).find(|fields| fields["message"] == message);
        line.unwrap_or_else(|| panic!("{message} is not in {said}"))
    };
    let role = fields("the role of this process changed");
    assert_eq!(role["role"], "leading");
    assert!(role["epoch"].is_u64(), "{role}");
    assert!(fields("policy in force")["leaf"].is_u64(), "{said}");
}

on_both_databases! {
    fn r56_sigterm_under_load_ends_in_time_with_every_answer_kept(log: Log) {
        stops_in_order(&log, &[Signal::TERM]);
    }

    fn r56_sigint_under_load_ends_in_time_with_every_answer_kept(log: Log) {
        stops_in_order(&log, &[Signal::INT]);
    }

    fn r56_signals_sent_twice_change_nothing(log: Log) {
        stops_in_order(&log, &[Signal::TERM, Signal::INT]);
    }

    fn r56_a_stop_during_the_start_leaves_a_log_that_starts(log: Log) {
        for pause in [0, 5, 20, 50, 100, 200] {
            let mut service = Service::spawn(&log, &[]);
            sleep(Duration::from_millis(pause));
            service.signal(Signal::TERM);
            let status = service.wait();
            // Before it listens for signals, the kernel ends it: then nothing was begun.
            assert!(matches!(status.code(), Some(0) | None), "{status}: {}", service.said());
        }
        let recorder = Recorder::new();
        Load { log: &log, recorder: &recorder, writers: 2 }.on(&log.serve(), || sleep(Duration::from_millis(200)));
        recorder.verdict(&log, log.serve());
    }
}
