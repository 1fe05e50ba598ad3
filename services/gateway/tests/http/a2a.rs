//! A2A through a running gateway, before a scripted agent: refusals, receipts, streams, and what goes wrong.

use evidence::EvidenceStore;
use gateway::{Config, Gateway};
use roa::chain::Chain;
use scitt::SignedStatement;
use serde_json::{Value, json};
use testkit::agentroa::{AGENTS, proof, registry_table, root, write_registry};
use testkit::{McpRequest, McpServer, Responder};

const ISSUER: &str = "https://gw.example";
const ROA: &str = "https://tabellion.dev/a2a/agentroa/v1/roa";
const PROOF: &str = "https://tabellion.dev/a2a/agentroa/v1/roa-proof";
const AER: &str = "https://tabellion.dev/a2a/agentroa/v1/aer";
const REQUIRED: &str = "without_vap = \"roa\"\nroa = \"required\"\n";
const METHODS: [&str; 4] = ["message/send", "message/stream", "SendMessage", "GetTask"];
/// An answer that readers could disagree about.
const TWICE: &str = r#"{"jsonrpc":"2.0","id":"r-1","result":1,"result":2}"#;
const ARTIFACT: &str =
    r#"{"kind":"artifact-update","taskId":"t-1","artifact":{"artifactId":"a","parts":[]}}"#;
const TASK: &str = r#"{"kind":"task","id":"t-1","contextId":"c","status":{"state":"completed"}}"#;

/// A gateway before a scripted agent, whose identifier is `crm`.
struct Site {
    folder: tempfile::TempDir,
    gateway: Gateway,
    agent: McpServer,
    http: reqwest::Client,
}

impl Site {
    async fn answering(script: impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static) -> Self {
        Self::with(REQUIRED, McpServer::answering(script)).await
    }

    async fn with(route: &str, agent: McpServer) -> Self {
        Self::at(&format!("http://{}/", agent.address()), route, agent).await
    }

    async fn at(url: &str, route: &str, agent: McpServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let with_methods = |members: &mut Value| {
            members["servers"] = json!([{ "server_id": "crm", "tools": METHODS }]);
        };
        write_registry(folder.path(), with_methods);
        let text = config_text(url, route);
        let gateway = Gateway::start(Config::from_toml(&text, folder.path()).unwrap()).await.unwrap();
        Self { folder, gateway, agent, http: reqwest::Client::new() }
    }

    fn url(&self) -> String {
        format!("http://{}/a2a", self.gateway.address())
    }

    async fn post(&self, message: &Value) -> (u16, String) {
        let sent = self.http.post(self.url()).header("content-type", "application/json");
        let answer = sent.body(message.to_string()).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// A request by the first agent under a chain; the answer is one response.
    async fn ask(&self, chain: &Chain, method: &str) -> Value {
        let (status, text) = self.post(&request(chain, method)).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
    }

    /// Stops the gateway, and returns how its only admitted request ended.
    async fn outcome(self) -> String {
        self.gateway.stop().await;
        let path = self.folder.path().join("state/evidence.db");
        let settings = evidence_sqlite::Settings { path, instance: "reader".into(), readers: 1 };
        let store = evidence_sqlite::Sqlite::open(settings).await.unwrap();
        for listed in store.list(None, 100).await.unwrap() {
            for stored in store.records(&listed.stream, 0, 100).await.unwrap() {
                if stored.record.kind.as_str() == "outcome" {
                    let statement = SignedStatement::parse(stored.record.statement.clone()).unwrap();
                    let payload: Value = serde_json::from_slice(statement.payload().unwrap()).unwrap();
                    return payload["status"].as_str().unwrap().to_owned();
                }
            }
        }
        panic!("no request was admitted")
    }
}

fn config_text(agent: &str, route: &str) -> String {
    let agentroa = registry_table();
    format!(
        "issuer = \"{ISSUER}\"\nlisten = \"127.0.0.1:0\"\nstate = \"state\"\n\
         [log]\nurl = \"http://127.0.0.1:9\"\n{agentroa}\
         [[route]]\npath = \"/a2a\"\nprotocol = \"a2a\"\nserver_id = \"crm\"\nupstream = \"{agent}\"\n{route}"
    )
}

fn params() -> Value {
    json!({ "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [] } })
}

fn request(chain: &Chain, method: &str) -> Value {
    let mut params = params();
    let proof = proof(chain, AGENTS[0], method, &params, ISSUER);
    let chain: Value = serde_json::from_slice(&chain.canonical()).unwrap();
    params["metadata"] = json!({ ROA: chain, PROOF: proof });
    json!({ "jsonrpc": "2.0", "id": "r-1", "method": method, "params": params })
}

fn envelope() -> Chain {
    root(|members| members["authorized_scope"]["capabilities"] = json!(["mcp:crm.*"]))
}

#[tokio::test]
async fn a_request_without_a_chain_is_denied_with_a_receipt() {
    let site = Site::answering(|seen, agent| agent.result(seen, TASK)).await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params() });
    let (status, text) = site.post(&message).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-31002)));
    let receipt = &answer["error"]["data"][AER]["receipt"];
    assert_eq!(receipt["denial_detail"]["code"], "no_envelope");
    assert_eq!(receipt["action"]["capability"], "mcp:crm.message/send");
    assert!(site.agent.seen().is_empty());
}

#[tokio::test]
async fn a_refused_stream_is_an_event_as_its_reader_expects() {
    let site = Site::answering(|seen, agent| agent.result(seen, TASK)).await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params() });
    let (status, text) = site.post(&message).await;
    let event = text.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
    let answer: Value = serde_json::from_str(event).unwrap();
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-31002)));
}

#[tokio::test]
async fn a_client_that_activates_the_extension_reads_that_it_is_active() {
    let site = Site::answering(|seen, agent| agent.result(seen, TASK)).await;
    let body = request(&envelope(), "message/send").to_string();
    let sent = site.http.post(site.url()).header("content-type", "application/json").body(body);
    let listed = "https://other.example, https://tabellion.dev/a2a/agentroa/v1";
    let answer = sent.header("x-a2a-extensions", listed).send().await.unwrap();
    assert_eq!(answer.headers()["x-a2a-extensions"], "https://tabellion.dev/a2a/agentroa/v1");
}

#[tokio::test]
async fn a_proof_is_for_one_request_with_its_parameters() {
    let site = Site::answering(|seen, agent| agent.result(seen, TASK)).await;
    let chain = envelope();
    let mut altered = request(&chain, "message/send");
    let again = altered.clone();
    altered["params"]["message"]["messageId"] = "other".into();
    let (_, text) = site.post(&altered).await;
    assert!(text.contains("proof_mismatch"), "{text}");
    assert!(site.post(&again).await.1.contains("\"permit\""));
    assert!(site.post(&again).await.1.contains("replay_detected"));
    assert_eq!(site.agent.seen().len(), 1);
}

#[tokio::test]
async fn a_receipt_of_the_agents_own_is_removed_wherever_clients_would_look_for_it() {
    let forged = format!(
        r#"{{"kind":"task","id":"t","status":{{"state":"completed"}},"metadata":{{"{AER}":"forged","own":1}}}}"#
    );
    let site = Site::answering(move |seen, agent| agent.result(seen, &forged)).await;
    let answer = site.ask(&envelope(), "message/send").await;
    assert_eq!(answer["result"]["metadata"][AER]["receipt"]["enforcement_outcome"], "permit");
    assert_eq!(answer["result"]["metadata"]["own"], 1, "all else is the agent's");
    let error = json!({ "code": -32001, "message": "no", "data": { AER: "forged" } }).to_string();
    let site = Site::answering(move |seen, agent| agent.error(seen, &error)).await;
    let answer = site.ask(&envelope(), "message/send").await;
    assert_eq!(answer["error"]["data"][AER]["receipt"]["enforcement_outcome"], "permit");
    assert_eq!(site.outcome().await, "errored");
}

/// The type of the object with the receipt in an error of A2A 1.0.
const STRUCT: &str = "type.googleapis.com/google.protobuf.Struct";

#[tokio::test]
async fn an_error_of_a2a_1_0_has_the_gateways_receipt_in_its_details() {
    let info = json!({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND" });
    let forged = json!({ "@type": STRUCT, "value": { AER: "forged" } });
    let error = json!({ "code": -32001, "message": "no", "data": [forged, info] }).to_string();
    let site = Site::answering(move |seen, agent| agent.error(seen, &error)).await;
    let answer = site.ask(&envelope(), "SendMessage").await;
    let details = answer["error"]["data"].as_array().unwrap();
    assert_eq!((details.len(), &details[0], &details[1]["@type"]), (2, &info, &json!(STRUCT)), "{answer}");
    assert_eq!(details[1]["value"][AER]["receipt"]["enforcement_outcome"], "permit");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params() });
    let denied: Value = serde_json::from_str(&site.post(&message).await.1).unwrap();
    assert_eq!(denied["error"]["data"][0]["value"][AER]["receipt"]["enforcement_outcome"], "deny");
}

#[tokio::test]
async fn an_answer_without_a_place_for_its_receipt_names_it_in_a_header() {
    let answers = [
        json!({ "result": { "taskId": "t", "pushNotificationConfig": { "url": "http://c.example/" } } }),
        json!({ "result": [] }),
        json!({ "error": { "code": -32001, "message": "no", "data": "why" } }),
    ];
    for answer in answers {
        let text = answer.clone();
        let site = Site::answering(move |seen, agent| {
            let mut message = json!({ "jsonrpc": "2.0", "id": seen.json()["id"] });
            message.as_object_mut().unwrap().extend(text.as_object().unwrap().clone());
            let headers = [("content-type", "application/json"), ("agentroa-receipt", "\"forged\"")];
            agent.answer(200, &headers, message.to_string().as_bytes());
        })
        .await;
        let sent = site.http.post(site.url()).header("content-type", "application/json");
        let passed = sent.body(request(&envelope(), "message/send").to_string()).send().await.unwrap();
        let named: Vec<_> = passed.headers().get_all("agentroa-receipt").iter().cloned().collect();
        let [named] = &named[..] else { panic!("one header: {named:?}") };
        let (aer_id, entry) = named.to_str().unwrap().split_once("; ").unwrap();
        assert!(aer_id.starts_with("\"aer:") && aer_id.ends_with('"'), "{named:?}");
        assert!(entry.starts_with("entry=\"http://127.0.0.1:9/entries/"), "{named:?}");
        let body: Value = serde_json::from_str(&passed.text().await.unwrap()).unwrap();
        let members = answer.as_object().unwrap();
        assert!(members.iter().all(|(name, value)| body[name] == *value), "unchanged: {body}");
    }
}

#[tokio::test]
async fn an_error_with_null_as_its_data_has_its_receipt_there() {
    let error = json!({ "code": -32001, "message": "no", "data": null }).to_string();
    let site = Site::answering(move |seen, agent| agent.error(seen, &error)).await;
    let answer = site.ask(&envelope(), "message/send").await;
    assert_eq!(answer["error"]["data"][AER]["receipt"]["enforcement_outcome"], "permit");
}

#[tokio::test]
async fn a_request_without_metadata_presents_chain_and_proof_in_headers() {
    let site = Site::answering(|seen, agent| agent.result(seen, r#"{"id":"t","status":{}}"#)).await;
    let (chain, params) = (envelope(), json!({ "id": "t" }));
    let coded = data_encoding::BASE64URL_NOPAD.encode(&chain.canonical());
    let send = async |proof: String, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": "r-1", "method": "GetTask", "params": params });
        let sent = site.http.post(site.url()).header("content-type", "application/json");
        let sent = sent.header("AgentROA", &coded).header("AgentROA-Proof", proof).body(message.to_string());
        let text = sent.send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let proof_of = || proof(&chain, AGENTS[0], "GetTask", &params, ISSUER);
    let answer = send(proof_of(), params.clone()).await;
    assert_eq!(answer["result"]["metadata"][AER]["receipt"]["enforcement_outcome"], "permit", "{answer}");
    let [seen] = &site.agent.seen()[..] else { panic!("one request") };
    assert_eq!((seen.header("agentroa"), seen.header("agentroa-proof")), (None, None));
    // A proof in both places is one proof.
    let with_metadata = json!({ "id": "t", "metadata": { PROOF: proof_of() } });
    let answer = send(proof_of(), with_metadata).await;
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("roa:chain_integrity_violation"),
        "{answer}"
    );
    assert_eq!(site.agent.seen().len(), 1);
}

#[tokio::test]
async fn a_chain_may_be_a_string_since_a2a_1_0_changes_numbers() {
    let site = Site::answering(|seen, agent| agent.result(seen, TASK)).await;
    let mut message = request(&envelope(), "SendMessage");
    let chain = message["params"]["metadata"][ROA].to_string();
    message["params"]["metadata"][ROA] = chain.into();
    let (_, text) = site.post(&message).await;
    assert!(text.contains("\"permit\""), "{text}");
}

#[tokio::test]
async fn a_broken_stream_ends_with_an_error_and_an_unknown_outcome() {
    let site = Site::answering(|seen, agent| {
        agent.stream_with("");
        let id = seen.id().unwrap();
        let working = r#"{"kind":"task","id":"t","status":{"state":"working"}}"#;
        agent.event(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{working}}}"#));
        agent.hang_up();
    })
    .await;
    let (status, text) = site.post(&request(&envelope(), "message/stream")).await;
    assert_eq!(status, 200);
    assert!(text.contains("\"permit\""), "the receipt is in the first event: {text}");
    assert!(text.contains("-31001"), "{text}");
    assert_eq!(site.outcome().await, "unknown");
}

#[tokio::test]
async fn a_request_to_an_unreachable_agent_counts_as_refused() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = Site::at(&format!("http://{free}/"), REQUIRED, McpServer::ordinary()).await;
    let answer = site.ask(&envelope(), "message/send").await;
    assert_eq!(answer["error"]["code"], -31001, "{answer}");
    assert_eq!(site.outcome().await, "refused");
}

#[tokio::test]
async fn a_malformed_request_is_refused_before_a_decision() {
    let site = Site::answering(|seen, agent| agent.result(seen, TASK)).await;
    assert_eq!(site.http.get(site.url()).send().await.unwrap().status(), 405);
    for (message, code) in [
        (json!({ "jsonrpc": "2.0", "method": "message/send", "params": params() }), -32600),
        (json!([{ "jsonrpc": "2.0", "id": 1, "method": "message/send" }]), -32600),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": [1] }), -32602),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "metadata": [] } }), -32602),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "Metadata": {} } }), -32600),
    ] {
        let (status, text) = site.post(&message).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{message}");
    }
    assert!(site.agent.seen().is_empty());
}

#[tokio::test]
async fn an_answer_to_another_request_or_to_none_leaves_the_outcome_unknown() {
    let other = format!(r#"{{"jsonrpc":"2.0","id":"r-2","result":{TASK}}}"#);
    let site = Site::answering(move |_, agent| agent.json(&other)).await;
    let answer = site.ask(&envelope(), "message/send").await;
    assert!(answer["result"].get("metadata").is_none(), "its receipt is for another request: {answer}");
    assert_eq!(site.outcome().await, "unknown");
    let json = [("content-type", "application/json")];
    let site = Site::answering(move |_, agent| agent.answer(503, &json, br#"{"detail":"later"}"#)).await;
    let (status, text) = site.post(&request(&envelope(), "message/send")).await;
    assert_eq!((status, text.as_str()), (503, r#"{"detail":"later"}"#));
    assert_eq!(site.outcome().await, "unknown");
}

#[tokio::test]
async fn an_unreadable_answer_becomes_an_error_with_the_requests_id() {
    let site = Site::answering(|_, agent| agent.json(TWICE)).await;
    let answer = site.ask(&envelope(), "message/send").await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-31001), &json!("r-1")));
    assert_eq!(site.outcome().await, "unknown");
    let site = Site::answering(|_, agent| {
        agent.stream();
        agent.event(TWICE);
    })
    .await;
    let (status, text) = site.post(&request(&envelope(), "message/stream")).await;
    let answer: Value = serde_json::from_str(text.split_once("data: ").unwrap().1.trim_end()).unwrap();
    assert_eq!((status, &answer["error"]["code"], &answer["id"]), (200, &json!(-31001), &json!("r-1")));
    assert_eq!(site.outcome().await, "unknown");
}

/// Streams a task that works, then something that cannot be read, then this result if it is one.
fn spoiled(last: Option<&'static str>) -> impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static {
    move |seen, agent| {
        let id = seen.id().unwrap();
        let event = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        agent.stream();
        agent.event(&event(r#"{"kind":"task","id":"t","status":{"state":"working"}}"#));
        agent.event(TWICE);
        if let Some(last) = last {
            agent.event(&event(last));
        }
    }
}

#[tokio::test]
async fn an_unreadable_last_event_ends_its_stream_with_an_error() {
    let site = Site::answering(spoiled(None)).await;
    let (status, text) = site.post(&request(&envelope(), "message/stream")).await;
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| Some(serde_json::from_str(line.strip_prefix("data: ")?).unwrap()))
        .collect();
    assert_eq!((status, events.len()), (200, 2), "{text}");
    assert_eq!(events[0]["result"]["status"]["state"], "working");
    assert_eq!((&events[1]["error"]["code"], &events[1]["id"]), (&json!(-31001), &json!("r-1")), "{text}");
    assert_eq!(site.outcome().await, "unknown");
}

#[tokio::test]
async fn an_overdue_request_ends_with_an_error_and_an_unknown_outcome() {
    let agent = McpServer::answering(|seen, agent| {
        agent.stream();
        let id = seen.id().unwrap();
        let working = r#"{"kind":"task","id":"t","status":{"state":"working"}}"#;
        agent.event(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{working}}}"#));
        agent.is_hung_up_on();
        agent.hang_up();
    });
    let site = Site::with(&format!("{REQUIRED}call_timeout = \"500ms\"\n"), agent).await;
    let (status, text) = site.post(&request(&envelope(), "message/stream")).await;
    assert_eq!(status, 200);
    assert!(text.contains("-31001") && text.contains("exceeded the time limit"), "{text}");
    assert_eq!(site.outcome().await, "unknown");
}

#[tokio::test]
async fn a_readable_event_after_an_unreadable_one_settles_the_request() {
    let site = Site::answering(spoiled(Some(TASK))).await;
    let (_, text) = site.post(&request(&envelope(), "message/stream")).await;
    assert!(text.contains("completed") && !text.contains("-31001"), "{text}");
    assert_eq!(site.outcome().await, "executed");
}

#[tokio::test]
async fn a_result_after_the_last_one_is_withheld_since_the_record_has_another() {
    let site = Site::answering(|seen, agent| {
        let id = seen.id().unwrap();
        let event = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        agent.stream();
        agent.event(&event(r#"{"kind":"message","messageId":"harmless","role":"agent","parts":[]}"#));
        agent.event(&event(r#"{"kind":"status-update","final":true,"status":{"state":"failed"}}"#));
    })
    .await;
    let (_, text) = site.post(&request(&envelope(), "message/stream")).await;
    assert!(text.contains("harmless") && !text.contains("status-update"), "{text}");
    assert!(!text.contains("-31001"), "{text}");
    assert_eq!(site.outcome().await, "executed");
}

/// Streams these results.
fn streaming<const N: usize>(
    results: [&'static str; N],
) -> impl Fn(&McpRequest, &mut Responder) + Send + Sync + 'static {
    move |seen, agent| {
        let id = seen.id().unwrap();
        agent.stream();
        for result in results {
            agent.event(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
        }
    }
}

#[tokio::test]
async fn what_follows_an_ended_task_of_a2a_0_3_is_passed_on_and_recorded() {
    let last = r#"{"kind":"status-update","taskId":"t-1","final":true,"status":{"state":"failed"}}"#;
    let site = Site::answering(streaming([TASK, ARTIFACT, last])).await;
    let (_, text) = site.post(&request(&envelope(), "message/stream")).await;
    assert!(text.contains("completed") && text.contains("artifact-update"), "{text}");
    assert!(text.contains("status-update") && !text.contains("-31001"), "{text}");
    assert_eq!(site.outcome().await, "errored");
}

#[tokio::test]
async fn an_artifact_after_a_failed_task_does_not_change_its_outcome() {
    let failed = r#"{"kind":"task","id":"t-1","contextId":"c","status":{"state":"failed"}}"#;
    let site = Site::answering(streaming([failed, ARTIFACT])).await;
    let (_, text) = site.post(&request(&envelope(), "message/stream")).await;
    assert!(text.contains("artifact-update"), "{text}");
    assert_eq!(site.outcome().await, "errored");
}

#[tokio::test]
async fn a_stream_that_breaks_off_after_its_task_has_ended_has_the_outcome_of_the_task() {
    let site = Site::answering(|seen, agent| {
        agent.stream_with("");
        let id = seen.id().unwrap();
        agent.event(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{TASK}}}"#));
        agent.hang_up();
    })
    .await;
    let (_, text) = site.post(&request(&envelope(), "message/stream")).await;
    assert!(text.contains("completed") && !text.contains("-31001"), "{text}");
    assert_eq!(site.outcome().await, "executed");
}

#[tokio::test]
async fn an_extended_card_is_refused() {
    let site = Site::answering(|seen, agent| agent.result(seen, r#"{"url":"http://agent.example/"}"#)).await;
    let answer = site.ask(&envelope(), "agent/getAuthenticatedExtendedCard").await;
    assert_eq!(answer["error"]["code"], -32007);
    assert!(site.agent.seen().is_empty());
}

#[tokio::test]
async fn a_result_with_null_metadata_has_its_receipt_all_the_same() {
    let task = r#"{"kind":"task","id":"t","status":{"state":"completed"},"metadata":null}"#;
    let site = Site::answering(move |seen, agent| agent.result(seen, task)).await;
    let answer = site.ask(&envelope(), "message/send").await;
    assert_eq!(answer["result"]["metadata"][AER]["receipt"]["enforcement_outcome"], "permit");
}

#[tokio::test]
async fn an_advisory_route_forwards_everything_and_changes_no_answer() {
    let agent = McpServer::answering(|seen, agent| agent.result(seen, TASK));
    let site = Site::with("without_vap = \"advisory\"\nroa = \"advisory\"\n", agent).await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params() });
    let (_, text) = site.post(&message).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    let task: Value = serde_json::from_str(TASK).unwrap();
    assert_eq!(answer["result"], task);
}

#[tokio::test]
async fn an_advisory_route_passes_an_answer_with_another_id_as_it_is() {
    let other = json!({ "jsonrpc": "2.0", "id": "another", "result": {} }).to_string();
    let text = other.clone();
    let headers = [("Content-Type", "application/json")];
    let agent = McpServer::answering(move |_, agent| agent.answer(200, &headers, text.as_bytes()));
    let site = Site::with("without_vap = \"advisory\"\nroa = \"advisory\"\n", agent).await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params() });
    assert_eq!(site.post(&message).await, (200, other));
}

#[tokio::test]
async fn an_agent_without_a_card_gives_502_for_it() {
    let site = Site::answering(|_, agent| agent.answer(404, &[], b"")).await;
    let card = site.http.get(format!("{}/.well-known/agent-card.json", site.url())).send().await.unwrap();
    assert_eq!(card.status(), 502);
}

#[test]
fn a_route_before_an_agent_demands_agentroa_and_one_server_over_http() {
    let folder = tempfile::tempdir().unwrap();
    write_registry(folder.path(), |_| ());
    let mistakes = |route: &str| {
        let text = config_text("http://127.0.0.1:9/", route);
        Config::from_toml(&text, folder.path()).err().map(|mistakes| mistakes.to_string()).unwrap_or_default()
    };
    assert_eq!(mistakes(REQUIRED), "");
    assert!(mistakes("").contains("roa = \"required\" or \"advisory\""));
    assert!(mistakes("roa = \"required\"\n").contains("A2A carries no VAP"));
    assert!(mistakes(&format!("{REQUIRED}gated = [\"prompts/get\"]\n")).contains("are for MCP"));
    let command = config_text("", REQUIRED).replace("upstream = \"\"", "command = [\"agent\"]");
    let response = Config::from_toml(&command, folder.path()).unwrap_err().to_string();
    assert!(response.contains("an A2A agent is one server over HTTP"), "{response}");
}
