//! What each daemon serves at `/metrics`, as promtool reads it: well-formed, and named by Prometheus's conventions.

use std::io::Write as _;
use std::process::{Command, Stdio};

use black_box::cli::{Dev, Folder};
use black_box::{
    Connection, Gateway, Log, LyingLog, MonitorProcess, RegistryProcess, VerificationProcess, WitnessHome,
    deployment_tool,
};
use serde_json::json;
use testkit::McpServer;

/// Asserts that the metrics count so many requests for a route, with this status.
#[track_caller]
fn must_count_requests(metrics: &str, route: &str, status: u16, requests: u64) {
    let labels =
        format!("http_request_method=\"GET\",http_response_status_code=\"{status}\",http_route=\"{route}\"");
    let line = format!("http_server_request_duration_seconds_count{{{labels}}} {requests}");
    assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
}

/// Asserts that `promtool check metrics` finds nothing, in metrics of which this is one.
#[track_caller]
fn promtool_must_accept(metrics: &str, one_of_them: &str) {
    assert!(metrics.contains(one_of_them), "{metrics}");
    let mut promtool = Command::new(deployment_tool("promtool"));
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = promtool.spawn().unwrap();
    running.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let ended = running.wait_with_output().unwrap();
    let printed = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
    assert!(ended.status.success() && printed.is_empty(), "{printed}");
}

#[test]
fn promtool_accepts_the_metrics_of_the_log() {
    let log = Log::sqlite();
    let service = log.serve();
    log.register(&service, 2);
    let metrics = String::from_utf8(service.admin().get("/metrics").body).unwrap();
    promtool_must_accept(&metrics, "tabellion_register_duration_seconds_bucket");
    service.stop();
}

#[test]
fn promtool_accepts_the_metrics_of_the_gateway() {
    let upstream = McpServer::ordinary();
    let running = Gateway::before(&upstream.url()).start();
    running.modern().call("echo", json!({}), json!({}));
    assert_eq!(running.connection().get("/.well-known/vap").status, 200);
    assert_eq!(running.connection().get("/a/path/of/a/stranger").status, 404);
    let metrics = String::from_utf8(running.admin().get("/metrics").body).unwrap();
    must_count_requests(&metrics, "/.well-known/vap", 200, 1);
    must_count_requests(&metrics, "", 404, 1);
    assert!(metrics.contains("http_response_status_code=\"200\",http_route=\"/mcp\""), "{metrics}");
    assert!(!metrics.contains("stranger"), "{metrics}");
    promtool_must_accept(&metrics, "mcp_server_operation_duration_seconds_bucket");
    running.stop();
}

#[test]
fn promtool_accepts_the_metrics_of_the_witness_and_of_the_monitor() {
    let (log, folder) = (LyingLog::of(3), Folder::new());
    let witness = WitnessHome::of(&[&log.vkey()]);
    let serving = witness.serve();
    assert_eq!(serving.connection().get("/none/checkpoint").status, 404);
    let metrics = String::from_utf8(serving.admin().get("/metrics").body).unwrap();
    must_count_requests(&metrics, "/{log}/checkpoint", 404, 1);
    promtool_must_accept(&metrics, "witness_add_checkpoint_requests_total");
    serving.stop();

    let settings = "state_dir = \"state\"\nevery = \"1s\"\nlisten = \"127.0.0.1:0\"\n";
    let watched = format!("[[log]]\nname = \"theirs\"\nurl = \"{}\"\nvkey = \"{}\"\n", log.url(), log.vkey());
    folder.write("monitor.toml", format!("{settings}{watched}"));
    let mut monitor = MonitorProcess::start(&folder);
    monitor.next("round");
    assert_eq!(monitor.admin().get("/livez").status, 200);
    let metrics = monitor.metrics();
    must_count_requests(&metrics, "/livez", 200, 1);
    promtool_must_accept(&metrics, "tabellion_monitor_rounds_total");
    assert_eq!(monitor.stop(), Some(0));
}

#[test]
fn promtool_accepts_the_metrics_of_the_verification_service() {
    let dev = Dev::start();
    let service = VerificationProcess::start(&dev.folder);
    assert_eq!(Connection::to(service.url()).get("/jobs/none").status, 404);
    let metrics = service.metrics();
    must_count_requests(&metrics, "/jobs/{id}", 404, 1);
    promtool_must_accept(&metrics, "tabellion_verification_queued_requests");
    service.stop();
}

#[test]
fn promtool_accepts_the_metrics_of_the_registry_server() {
    let folder = Folder::new();
    let server = RegistryProcess::of_a_new_registry(&folder);
    assert_eq!(server.connection().get("/registry.json").status, 200);
    let metrics = server.metrics();
    must_count_requests(&metrics, "/registry.json", 200, 1);
    promtool_must_accept(&metrics, "tabellion_registry_file_usable");
    assert!(server.stop().success());
}
