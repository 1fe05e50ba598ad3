//! What a collector gets of a running witness and of a running monitor.

use black_box::cli::Folder;
use black_box::collector::{CLIENT_SPAN, CLIENT_TRACE, protobuf_field, traceparent};
use black_box::{Connection, LyingLog, MonitorProcess, SpanCollector, WitnessHome};

#[test]
fn a_request_to_a_witness_is_a_span_below_the_client_s_own_with_its_decision() {
    let (collector, log) = (SpanCollector::start(), LyingLog::of(3));
    let home = WitnessHome::of(&[&log.vkey()]);
    let witness = home.serve_with(&["--otlp", &collector.url]);
    let signed = Connection::to(&log.url()).get("/checkpoint").body;
    let request = [b"old 0\n\n", &signed[..]].concat();
    let traceparent = traceparent();
    let headers = [("traceparent", traceparent.as_str())];
    let add = || witness.connection().send("POST", "/add-checkpoint", &headers, &request);
    let (cosigned, refused) = (add(), add());
    assert_eq!((cosigned.status, refused.status), (200, 409));
    let id = cosigned.must_have("x-request-id").to_owned();
    witness.stop();
    collector.must_have(&[
        "tabellion-witness",
        "POST /add-checkpoint",
        "http.response.status_code",
        "log.origin",
        "lying.example/log",
        "error.type",
        "409",
        &id,
    ]);
    // Two requests, each with its decision, are in the trace; the client's span is above the requests alone.
    assert_eq!(collector.count(protobuf_field(0x0a, &CLIENT_TRACE)), 4, "{}", collector.text());
    assert_eq!(collector.count(protobuf_field(0x22, &CLIENT_SPAN)), 2, "{}", collector.text());

    let wrong = ["witness", "serve", "--state", "s", "--logs", "logs.txt", "--otlp", "localhost:4318"];
    let refused = home.tabellion(&wrong);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("--otlp") && refused.stderr.contains("http://127.0.0.1:4318"),
        "{refused}"
    );
}

#[test]
fn a_round_of_a_monitor_is_a_span_with_its_checks_and_says_how_it_ended() {
    let (collector, log, folder) = (SpanCollector::start(), LyingLog::of(20), Folder::new());
    let configure = |otlp: &str| {
        let settings = format!("state_dir = \"state\"\nevery = \"1s\"\notlp = \"{otlp}\"\n");
        let watched =
            format!("[[log]]\nname = \"theirs\"\nurl = \"{}\"\nvkey = \"{}\"\n", log.url(), log.vkey());
        folder.write("monitor.toml", settings + &watched);
    };
    configure(&collector.url);
    let mut monitor = MonitorProcess::start(&folder);
    monitor.next("round");
    log.fork_at(3);
    log.grow(1);
    monitor.next("raised");
    assert_eq!(monitor.stop(), Some(0));
    collector.must_have(&[
        "tabellion-monitor",
        "round",
        "theirs",
        "tree.size",
        "round.alarms",
        "consistency",
        "error.type",
        "misbehaviour",
    ]);
    collector.must_not_have(&["lying.example"]);

    configure("localhost:4318");
    let refused = folder.run(&["monitor", "run"]);
    assert!(refused.must_end_with(2).stderr.contains("otlp"), "{refused}");
}
