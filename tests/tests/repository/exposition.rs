//! What each daemon serves at `/metrics`, as promtool reads it: well-formed, and named by Prometheus's conventions.

use std::io::Write as _;
use std::process::{Command, Stdio};

use black_box::cli::{Dev, Folder};
use black_box::{
    Connection, Gateway, Log, LyingLog, MonitorProcess, RegistryProcess, Service, VerificationProcess,
    WitnessHome, deployment_tool, sql,
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

/// Asserts that the metrics count at least so many operations of a database. `error_type` is empty for those that
/// succeeded.
#[track_caller]
fn must_count_operations(metrics: &str, system: &str, operation: &str, error_type: &str, at_least: u64) {
    let labels =
        format!("db_operation_name=\"{operation}\",db_system_name=\"{system}\",error_type=\"{error_type}\"");
    let series = format!("db_client_operation_duration_seconds_count{{{labels}}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&series));
    let count: u64 = count.unwrap_or_else(|| panic!("{series}: {metrics}")).parse().unwrap();
    assert!(count >= at_least, "{series}{count}: {metrics}");
}

/// Returns the metrics of a log.
fn metrics_of(service: &Service) -> String {
    String::from_utf8(service.admin().get("/metrics").body).unwrap()
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
    let metrics = metrics_of(&service);
    promtool_must_accept(&metrics, "tabellion_register_duration_seconds_bucket");
    service.stop();
}

#[test]
fn the_log_measures_the_operations_of_its_database_by_their_names() {
    for (log, system) in [(Log::sqlite(), "sqlite"), (Log::postgres(), "postgresql")] {
        let service = log.serve();
        log.register(&service, 3);
        assert_eq!(service.connection().get("/v1/entries").status, 200);
        let metrics = metrics_of(&service);
        // The policy is a batch, too.
        must_count_operations(&metrics, system, "commit", "", 4);
        must_count_operations(&metrics, system, "entries", "", 1);
        let commits = format!(
            "db_client_operation_duration_seconds_bucket{{db_operation_name=\"commit\",db_system_name=\"{system}\",\
             error_type=\"\",le=\""
        );
        let bounds = metrics.lines().filter_map(|line| line.strip_prefix(&commits)?.split('"').next());
        let bounds: Vec<&str> = bounds.collect();
        assert_eq!(bounds, ["0.001", "0.005", "0.01", "0.05", "0.1", "0.5", "1", "5", "10", "+Inf"]);
        assert!(!metrics.contains("SELECT") && !metrics.contains("thing-"), "{metrics}");
        promtool_must_accept(&metrics, "db_client_operation_duration_seconds_sum");
        service.stop();
    }
}

#[test]
fn a_failed_operation_of_a_database_is_a_series_with_the_class_of_its_error() {
    let log = Log::postgres();
    let service = log.serve();
    log.register(&service, 1);
    let url = log.database().url();
    sql(&url, "ALTER TABLE entry RENAME TO elsewhere");
    let failed = service.connection().get("/v1/entries");
    sql(&url, "ALTER TABLE elsewhere RENAME TO entry");
    assert!(failed.status >= 500, "{failed:?}");
    must_count_operations(&metrics_of(&service), "postgresql", "entries", "refused", 1);
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
    must_count_operations(&metrics, "sqlite", "commit", "", 1);
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
    must_count_operations(&metrics, "sqlite", "read", "", 1);
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
    server.stop();
}
