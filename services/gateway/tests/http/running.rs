//! A gateway as it is started and read again: its documents, its doors, its metrics, what a mistake changes (nothing).

use std::path::Path;

use evidence_postgres::testing::Database;
use gateway::decision_writer::Clock;
use gateway::replay::{self, Hypothesis, ReplayedSession};
use gateway::{Config, Gateway};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use testkit::McpServer;
use testkit::agentroa::{registry_table, write_registry};

use crate::client::{Agent, Answer};
use crate::front::until;
use crate::world::silent;

fn text(upstream: &str, more: &str) -> String {
    format!(
        "issuer = \"https://gw.example\"\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\nstate = \"state\"\n\
         [log]\nurl = \"http://127.0.0.1:9\"\n[[route]]\npath = \"/mcp\"\nupstream = \"{upstream}\"\n{more}"
    )
}

fn config(folder: &Path, text: &str) -> Config {
    Config::from_toml(text, folder).unwrap()
}

struct Site {
    folder: tempfile::TempDir,
    gateway: Gateway,
    http: Client,
    server: McpServer,
}

impl Site {
    async fn new(more: &str) -> Self {
        let server = McpServer::ordinary();
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(config(folder.path(), &text(&server.url(), more))).await.unwrap();
        Self { folder, gateway, http: Client::new(), server }
    }

    async fn get(&self, path: &str) -> Response {
        self.http.get(format!("http://{}{path}", self.gateway.address())).send().await.unwrap()
    }

    async fn admin(&self, path: &str) -> String {
        let address = self.gateway.admin_address().unwrap();
        self.http.get(format!("http://{address}{path}")).send().await.unwrap().text().await.unwrap()
    }

    /// A client of the legacy era, which names a session of its own choice.
    fn client(&self, path: &str) -> Agent {
        let url = format!("http://{}{path}", self.gateway.address());
        Agent { mcp: Some("s-1".into()), session: SESSION.into(), ..Agent::nobody(url) }
    }

    /// A call without VAP.
    async fn call(&self, path: &str) -> Answer {
        self.client(path).plain("t", json!({})).await
    }

    async fn reload(&mut self, text: &str) -> bool {
        let config = Config::from_toml(text, self.folder.path());
        self.gateway.reload(config).await
    }
}

#[tokio::test]
async fn published_documents_agree_with_the_gateways_keys() {
    let site = Site::new("").await;
    let posture: Value = site.get("/.well-known/vap").await.json().await.unwrap();
    assert_eq!(
        (&posture["issuer"], &posture["routes"][0]["path"]),
        (&json!("https://gw.example"), &json!("/mcp"))
    );
    let jwks: Value = site.get("/.well-known/jwks.json").await.json().await.unwrap();
    assert_eq!(jwks["keys"][0]["kid"], site.gateway.keys().verdict_kid());
    let kept = std::fs::read(site.folder.path().join("state/jwks.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), jwks);
    site.gateway.stop().await;
}

/// What a gateway with its evidence in PostgreSQL, whose clock is ahead by so many milliseconds, says of that clock: in
/// `/readyz` and in the metric.
async fn clock_of_a_gateway(ahead: u64) -> (Value, f64) {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let evidence = format!("evidence = \"{}\"\n[log]", database.url());
    let text = text("http://127.0.0.1:9/", "").replace("[log]", &evidence);
    let clock = Clock::of(move || Clock::system().milliseconds() + ahead);
    let gateway = Gateway::start_with_clock(config(folder.path(), &text), clock).await.unwrap();
    until("the clocks are compared", || gateway.writer().status().clock_difference.is_some()).await;
    let admin = format!("http://{}", gateway.admin_address().unwrap());
    let response = reqwest::get(format!("{admin}/readyz")).await.unwrap();
    assert_eq!(response.status(), 200, "calls are decided all the same");
    let readiness: Value = response.json().await.unwrap();
    let metrics = reqwest::get(format!("{admin}/metrics")).await.unwrap().text().await.unwrap();
    let metric = metrics.lines().find_map(|line| line.strip_prefix("gateway_clock_ahead_seconds "));
    let metric = metric.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap();
    gateway.stop().await;
    (readiness["clock"].clone(), metric)
}

#[tokio::test]
async fn a_clock_that_differs_from_the_database_servers_is_shown_to_operators() {
    let (clock, metric) = clock_of_a_gateway(3_600_000).await;
    assert!(clock.as_str().unwrap().ends_with("s ahead of the database server's"), "{clock}");
    assert!((3_500.0..3_601.0).contains(&metric), "{metric}");
}

#[tokio::test]
async fn a_clock_that_agrees_with_the_database_servers_is_reported_as_such() {
    let (clock, metric) = clock_of_a_gateway(0).await;
    assert_eq!(clock, "agrees");
    assert!(metric.abs() <= 5.0, "{metric}");
}

#[tokio::test]
async fn a_call_without_vap_is_denied_in_band_and_counted() {
    let site = Site::new("").await;
    let answer = site.call("/mcp").await;
    let denied = answer.denied("no_envelope").reply();
    assert_eq!((&denied["id"], &denied["result"]["isError"]), (&json!(1), &json!(true)));
    assert_eq!(site.server.calls(), 0);
    let metrics = site.admin("/metrics").await;
    assert!(
        metrics.contains("gateway_decisions_total{decision=\"denied\",rule=\"no_envelope\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains(
        "mcp_server_operation_duration_seconds_count{error_type=\"\",mcp_method_name=\"tools/call\"} 1"
    ));
    // The log is out of reach: what was decided waits for it, and calls go on.
    assert!(site.admin("/readyz").await.contains("\"ready\":true"));
    site.gateway.stop().await;
}

/// The words of the error for a `ping` in a new session, under this configuration.
async fn words_of_a_ping(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(config(folder.path(), text)).await.unwrap();
    let client = Agent::nobody(format!("http://{}/mcp", gateway.address())).initialized(&json!({})).await;
    let error = client.ask("ping", json!({})).await.reply()["error"].clone();
    gateway.stop().await;
    assert_eq!(error["code"], -31001, "{error}");
    error["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_request_ends_at_the_request_timeout_of_its_route_and_names_its_server() {
    let (without_ping, ordinary) = (McpServer::scripted(silent(&["ping"], false)), McpServer::ordinary());
    let limit = "request_timeout = \"2s\"\n";
    let words = words_of_a_ping(&text(&without_ping.url(), limit)).await;
    assert!(words.starts_with("the server behind /mcp gave no answer within 2s;"), "{words}");
    let server = |prefix: &str, server: &McpServer| {
        format!("[[route.server]]\nprefix = \"{prefix}\"\nupstream = \"{}\"\n", server.url())
    };
    let servers = format!("{limit}{}{}", server("quick", &ordinary), server("silent", &without_ping));
    let words = words_of_a_ping(&text("", &servers).replace("upstream = \"\"\n", "")).await;
    assert!(words.starts_with("the server silent gave no answer within 2s;"), "{words}");
}

#[tokio::test]
async fn a_reload_changes_the_rules_of_later_calls() {
    let mut site = Site::new("").await;
    assert!(site.reload(&text(&site.server.url(), "without_vap = \"advisory\"\n")).await);
    assert_eq!(site.call("/mcp").await.reply()["result"]["isError"], Value::Null);
    assert_eq!(site.server.calls(), 1);
    let second = format!("[[route]]\npath = \"/two\"\nupstream = \"{}\"\n", site.server.url());
    assert!(site.reload(&text(&site.server.url(), &second)).await);
    assert_eq!(site.call("/two").await.status, 200);
    assert_eq!(site.call("/mcp").await.reply()["result"]["isError"], true);
    site.gateway.stop().await;
}

#[tokio::test]
async fn a_refused_reload_keeps_the_configuration() {
    let mut site = Site::new("").await;
    let broken = text(&site.server.url(), "without_vap = \"sometimes\"\n");
    assert!(!site.reload(&broken).await);
    let renamed =
        text(&site.server.url(), "without_vap = \"advisory\"\n").replace("gw.example", "other.example");
    assert!(!site.reload(&renamed).await);
    let no_keys =
        "[route.oauth]\nmode = \"gateway\"\nissuer = \"https://as.example\"\njwks = \"missing.json\"\n";
    assert!(!site.reload(&text(&site.server.url(), no_keys)).await);
    assert_eq!(site.call("/mcp").await.reply()["result"]["isError"], true);
    let metrics = site.admin("/metrics").await;
    assert!(metrics.contains("gateway_config_reloads_total{result=\"refused\"} 3"), "{metrics}");
    site.gateway.stop().await;
}

#[tokio::test]
async fn r_27_a_guarded_route_challenges_and_says_where_its_metadata_are() {
    let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"k"}]}"#;
    let mut site = Site::new("").await;
    std::fs::write(site.folder.path().join("jwks.json"), key).unwrap();
    let guarded = "[route.oauth]\nmode = \"gateway\"\nissuer = \"https://as.example\"\njwks = \"jwks.json\"\nscopes = [\"mcp\"]\n";
    assert!(site.reload(&text(&site.server.url(), guarded)).await);
    let refused = site.call("/mcp").await;
    assert_eq!(refused.status, 401);
    let challenge = refused.headers["www-authenticate"].to_str().unwrap().to_owned();
    assert!(challenge.contains("scope=\"mcp\""), "{challenge}");
    assert!(challenge.contains("https://gw.example/.well-known/oauth-protected-resource/mcp"), "{challenge}");
    let metadata: Value = site.get("/.well-known/oauth-protected-resource/mcp").await.json().await.unwrap();
    assert_eq!(metadata["resource"], "https://gw.example/mcp");
    assert_eq!(site.server.calls(), 0);
    site.gateway.stop().await;
}

#[tokio::test]
async fn one_gateway_at_a_time_runs_on_a_state_and_keeps_its_keys() {
    let site = Site::new("").await;
    let kid = site.gateway.keys().verdict_kid();
    let again = config(site.folder.path(), &text(&site.server.url(), ""));
    assert!(Gateway::start(again.clone()).await.is_err());
    site.gateway.stop().await;
    let second = Gateway::start(again).await.unwrap();
    assert_eq!(second.keys().verdict_kid(), kid);
    second.stop().await;
}

const SESSION: &str = "a-session-of-its-own";
const RULE: &str =
    "[[route.rule]]\nname = \"large\"\nwhen = \"input.arguments.amount > 10\"\nthen = \"deny\"\n";

/// What is left of a gateway that recorded a session and stopped.
struct StoppedGateway {
    folder: tempfile::TempDir,
    /// The URL of its server.
    upstream: String,
}

impl StoppedGateway {
    /// The configuration of the stopped gateway, with more in its route.
    fn config(&self, more: &str) -> Config {
        config(self.folder.path(), &text(&self.upstream, more))
    }
}

/// Records a session with two calls that are served and one over the budget, and stops the gateway.
async fn recorded_session() -> StoppedGateway {
    let site = Site::new("").await;
    let agent = site.client("/mcp").initialized(&json!({})).await;
    let commitment = agent.commitment_of_a_stranger(json!({ "max_calls": 2 }));
    agent.carry("tools/list", &commitment).await.served();
    agent.call("pay", json!({ "amount": 5 })).await.served();
    agent.call("pay", json!({ "amount": 50 })).await.served();
    agent.call("pay", json!({ "amount": 5 })).await.denied("budget_exceeded");
    let Site { gateway, folder, server, .. } = site;
    gateway.stop().await;
    StoppedGateway { folder, upstream: server.url() }
}

#[tokio::test]
async fn a_recorded_session_is_decided_again_as_it_was() {
    let stopped = recorded_session().await;
    let config = stopped.config("");
    let records = replay::records(&config, SESSION).await.unwrap();
    let compared = replay::replay(&mut ReplayedSession::under(&config), &records).unwrap();
    assert!(compared.iter().all(|decision| !decision.differs), "{compared:#?}");
    let verdicts: Vec<&str> = compared.iter().map(|decision| decision.then.verdict.as_str()).collect();
    assert_eq!(verdicts, ["served", "served", "served", "denied"]);
}

#[tokio::test]
async fn a_replay_under_other_rules_marks_the_answers_that_differ() {
    let stopped = recorded_session().await;
    let config = stopped.config(RULE);
    let records = replay::records(&config, SESSION).await.unwrap();
    let compared = replay::replay(&mut ReplayedSession::under(&config), &records).unwrap();
    let now = |index: usize| compared[index].now.clone().unwrap();
    // The large call is denied, and so leaves room in the budget for the one after it.
    assert_eq!((now(2).verdict.as_str(), now(2).reason.as_deref()), ("denied", Some("policy:large")));
    assert_eq!((now(3).verdict.as_str(), compared[3].differs), ("served", true));
    assert_eq!(compared.iter().filter(|decision| decision.differs).count(), 2);
}

#[tokio::test]
async fn a_replay_under_a_route_that_requires_chains_decides_no_call_without_one() {
    let stopped = recorded_session().await;
    write_registry(stopped.folder.path(), |_| ());
    let required = format!("server_id = \"crm\"\nroa = \"required\"\n{}", registry_table());
    let config = stopped.config(&required);
    let records = replay::records(&config, SESSION).await.unwrap();
    let compared = replay::replay(&mut ReplayedSession::under(&config), &records).unwrap();
    assert!(compared[0].now.is_some(), "the commitment needs no chain");
    assert_eq!(compared[1].now, None);
    assert!(compared[1].note.as_ref().unwrap().contains("AgentROA"), "{compared:#?}");
}

#[tokio::test]
async fn a_hypothetical_call_is_explained_in_its_recorded_session() {
    let stopped = recorded_session().await;
    let config = stopped.config("");
    let records = replay::records(&config, SESSION).await.unwrap();
    let mut session = ReplayedSession::under(&config);
    replay::replay(&mut session, &records).unwrap();
    let call = Hypothesis {
        route: "/mcp",
        session: Some(SESSION),
        tool: "pay",
        arguments: "{}",
        envelope: None,
        tool_fault: None,
        now: jiff::Timestamp::now(),
    };
    let explained = replay::explain(&mut session, &call).unwrap();
    assert_eq!(explained.decided.reason.as_deref(), Some("budget_exceeded"));
    let explained = replay::explain(&mut session, &Hypothesis { tool: "other", ..call.clone() }).unwrap();
    assert_eq!(explained.decided.reason.as_deref(), Some("scope_escape"));
    assert!(replay::explain(&mut session, &Hypothesis { arguments: "[]", ..call }).is_err());
    assert!(replay::records(&config, "another").await.is_err());
}
