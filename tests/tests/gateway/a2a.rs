//! A2A through the gateway, with the public SDKs for A2A 0.3 and 1.0 as client and as agent, and a real log.

use black_box::audit_trail::{must_be_whole, of_kind};
use black_box::gateway::{GATEWAY, admitting_log};
use black_box::{Gateway, GatewayProcess, Log, Other, Service, run_python_on, run_python_with_a2a_1};
use serde_json::{Value, json};
use testkit::agentroa::{AGENTS, Chain, delegated, registry_table, root, write_registry};

const RECEIPT: &str = "https://tabellion.dev/a2a/agentroa/v1/aer";
const METHODS: [&str; 10] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "CreateTaskPushNotificationConfig",
];

/// An SDK's agent behind a gateway that demands chains and logs to a real log.
struct Agency {
    _agent: Other,
    _log: Log,
    service: Service,
    gateway: Gateway,
    running: GatewayProcess,
}

impl Agency {
    fn start() -> Self {
        Self::before(Other::a2a_agent())
    }

    fn before(agent: Other) -> Self {
        let log = admitting_log();
        let service = log.serve();
        let gateway = gateway_before(&agent.url).logging_to(service.url());
        let running = gateway.start();
        Self { _agent: agent, _log: log, service, gateway, running }
    }

    /// The results of the SDK's client for these steps, under a chain, by the chain's last agent.
    fn steps(&self, chain: &Chain, steps: &Value) -> Vec<Value> {
        let heard = self.heard(chain, steps);
        heard["steps"].as_array().unwrap().clone()
    }

    fn heard(&self, chain: &Chain, steps: &Value) -> Value {
        run_python_on("a2a_client.py", &[], &self.job(chain, steps))
    }

    /// As [`Agency::heard`], by the SDK for A2A 1.0.
    fn heard_by_1_0(&self, chain: &Chain, steps: &Value) -> Value {
        run_python_with_a2a_1("a2a_1_client.py", &self.job(chain, steps))
    }

    fn job(&self, chain: &Chain, steps: &Value) -> Value {
        let text: Value = serde_json::from_slice(&chain.canonical()).unwrap();
        json!({
            "url": self.gateway.url().replace("/mcp", "/a2a"),
            "server_id": "planner", "audience": GATEWAY, "agent": AGENTS[chain.hops().len()],
            "chain": text, "chain_digest": chain.digest().to_string(), "steps": steps,
        })
    }
}

fn gateway_before(agent: &str) -> Gateway {
    let gateway = Gateway::before("http://127.0.0.1:9/mcp");
    let with_planner = |members: &mut Value| {
        members["servers"] = json!([{ "server_id": "planner", "tools": METHODS }]);
    };
    write_registry(gateway.folder(), with_planner);
    gateway
        .table(&registry_table())
        .table(&format!(
            "[[route]]\npath = \"/a2a\"\nprotocol = \"a2a\"\nupstream = \"{agent}\"\nserver_id = \"planner\"\nroa = \"required\"\nwithout_vap = \"roa\""
        ))
}

/// A root envelope for requests to the agent.
fn envelope() -> Chain {
    root(|members| members["authorized_scope"]["capabilities"] = json!(["mcp:planner.*"]))
}

fn delegate(chain: &Chain, capabilities: &Value) -> Chain {
    delegated(chain, |members| members["delegated_scope"]["capabilities"] = capabilities.clone())
}

fn receipts(results: &Value) -> Vec<&Value> {
    let results = results["results"].as_array().unwrap_or_else(|| panic!("no results: {results}"));
    results.iter().filter_map(|result| result["metadata"].get(RECEIPT)).collect()
}

#[test]
fn each_request_of_the_sdk_under_a_chain_has_one_receipt_on_the_log() {
    let agency = Agency::start();
    let chain = delegate(&envelope(), &json!(["mcp:planner.*"]));
    let steps =
        json!([["send", "hello"], ["stream", "hello"], ["get"], ["send", "fail"], ["stream", "wait"]]);
    let heard = agency.heard(&chain, &steps);
    let taken = heard["steps"].as_array().unwrap();
    for (step, method) in taken.iter().zip(["message/send", "message/stream", "tasks/get", "message/send"]) {
        let [receipt] = receipts(step)[..] else { panic!("one receipt: {step}") };
        assert_eq!(receipt["receipt"]["enforcement_outcome"], "permit");
        assert_eq!(receipt["receipt"]["action"]["capability"], format!("mcp:planner.{method}"));
    }
    let answer = taken[0]["results"][0]["artifacts"][0]["parts"][0]["text"].as_str().unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["text"], "hello");
    let chain_alone = json!(["https://tabellion.dev/a2a/agentroa/v1/roa"]);
    assert_eq!(answer["metadata"], chain_alone, "the agent may delegate further, and cannot use the proof");
    let states = |step: &Value| -> Vec<Value> {
        step["results"].as_array().unwrap().iter().map(|event| event["status"]["state"].clone()).collect()
    };
    assert_eq!(states(&taken[1]), [json!("submitted"), json!("working"), Value::Null, json!("completed")]);
    assert_eq!(states(&taken[3]), [json!("failed")]);
    let records = agency.records(10);
    must_be_whole(&records);
    let outcomes = of_kind(&records, "outcome");
    let errored = outcomes.iter().filter(|outcome| outcome.payload["status"] == "errored");
    assert_eq!((outcomes.len(), errored.count()), (5, 1));
}

#[test]
fn the_card_that_clients_find_names_the_gateway_and_the_extension() {
    let agency = Agency::start();
    let card = &agency.heard(&envelope(), &json!([]))["card"];
    assert_eq!(card["url"], agency.gateway.url().replace("/mcp", "/a2a"));
    assert_eq!(card["name"], "echo");
    assert!(card.get("additionalInterfaces").is_none(), "ways around the gateway: {card}");
    let extension = &card["capabilities"]["extensions"][0];
    assert_eq!(extension["uri"], "https://tabellion.dev/a2a/agentroa/v1");
    assert_eq!(extension["required"], true);
}

#[test]
fn a_request_outside_the_chain_is_denied_at_the_hop_at_fault() {
    let agency = Agency::start();
    let only_send = delegate(&envelope(), &json!(["mcp:planner.message/send"]));
    let taken = agency.steps(&only_send, &json!([["stream", "no"], ["send", "yes"]]));
    let denied = &taken[0]["error"];
    assert!(denied["message"].as_str().unwrap().contains("roa:capability_not_in_scope"), "{denied}");
    let receipt = &denied["data"][RECEIPT]["receipt"];
    assert_eq!(receipt["enforcement_outcome"], "deny");
    assert_eq!(receipts(&taken[1]).len(), 1);
    let wider =
        delegate(&delegate(&only_send, &json!(["mcp:planner.message/send"])), &json!(["mcp:planner.*"]));
    let taken = agency.steps(&wider, &json!([["send", "no"]]));
    let detail = &taken[0]["error"]["data"][RECEIPT]["receipt"]["denial_detail"];
    assert_eq!((&detail["hop"], &detail["dimension"]), (&json!(3), &json!("capabilities")));
    let records = agency.records(4);
    must_be_whole(&records);
    assert_eq!(of_kind(&records, "outcome").len(), 1);
}

/// Returns the receipt that a step of A2A 1.0 got in the metadata of a result, if any.
fn receipt_in(step: &Value) -> Option<&Value> {
    let results = step["results"].as_array().unwrap_or_else(|| panic!("no results: {step}"));
    let mut places = results.iter().flat_map(|result| [result, &result["task"], &result["statusUpdate"]]);
    places.find_map(|place| place["metadata"].get(RECEIPT))
}

/// Returns the `aer_id` of the one header with a reference.
fn referenced(step: &Value) -> &str {
    let [value] = &step["agentroa-receipt"].as_array().unwrap()[..] else { panic!("one header: {step}") };
    let (id, entry) = value.as_str().unwrap().split_once("; entry=").unwrap();
    assert!(entry.contains("/entries/"), "{entry}");
    id.trim_matches('"')
}

#[test]
fn each_answer_to_the_sdk_for_a2a_1_0_has_or_names_its_receipt() {
    let agency = Agency::before(Other::a2a_1_agent());
    let chain = delegate(&envelope(), &json!(["mcp:planner.*"]));
    let steps = json!([
        ["send", "hello"],
        ["stream", "hello"],
        ["get"],
        ["send", "fail"],
        ["list"],
        ["notify"],
        ["get", "unknown"],
        ["stream", "hello"],
        ["cancel"],
    ]);
    let heard = agency.heard_by_1_0(&chain, &steps);
    let taken = heard["steps"].as_array().unwrap();
    let named: Vec<&str> = taken.iter().map(referenced).collect();
    for (step, method) in taken.iter().zip(["SendMessage", "SendStreamingMessage", "GetTask", "SendMessage"])
    {
        let receipt = &receipt_in(step).unwrap_or_else(|| panic!("a receipt: {step}"))["receipt"];
        assert_eq!(receipt["enforcement_outcome"], "permit");
        assert_eq!(receipt["action"]["capability"], format!("mcp:planner.{method}"));
        assert_eq!(receipt["aer_id"], referenced(step));
    }
    assert_eq!(taken[0]["a2a-extensions"], json!(["https://tabellion.dev/a2a/agentroa/v1"]));
    let answer = taken[0]["results"][0]["task"]["artifacts"][0]["parts"][0]["text"].as_str().unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["metadata"], json!(["https://tabellion.dev/a2a/agentroa/v1/roa"]));
    assert_eq!(taken[3]["results"][0]["task"]["status"]["state"], "TASK_STATE_FAILED");
    // Results without `metadata`, and errors, whose data this SDK does not show.
    assert_eq!((receipt_in(&taken[4]), receipt_in(&taken[5])), (None, None));
    assert_eq!(taken[5]["results"][0]["url"], "http://127.0.0.1:9/");
    assert_eq!(taken[6]["error"]["kind"], "TaskNotFoundError");
    assert_eq!(taken[8]["error"]["kind"], "TaskNotCancelableError", "it is completed: {}", taken[8]);
    let records = agency.records(18);
    must_be_whole(&records);
    let decisions = of_kind(&records, "decision");
    let recorded: Vec<&str> =
        decisions.iter().map(|record| record.payload["aer_id"].as_str().unwrap()).collect();
    assert!(named.iter().all(|aer_id| recorded.contains(aer_id)), "{named:?} {recorded:?}");
    let outcomes = of_kind(&records, "outcome");
    let errored = outcomes.iter().filter(|outcome| outcome.payload["status"] == "errored");
    assert_eq!((outcomes.len(), errored.count()), (9, 3));
}

#[test]
fn the_sdk_for_a2a_1_0_finds_the_gateway_and_is_denied_at_the_hop_at_fault() {
    let agency = Agency::before(Other::a2a_1_agent());
    let only_send = delegate(&envelope(), &json!(["mcp:planner.SendMessage"]));
    let wider = delegate(&only_send, &json!(["mcp:planner.*"]));
    let heard = agency.heard_by_1_0(&wider, &json!([["send", "no"], ["stream", "no"], ["list"]]));
    let card = &heard["card"];
    let expected = json!([{
        "url": agency.gateway.url().replace("/mcp", "/a2a"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0",
    }]);
    assert_eq!(card["supportedInterfaces"], expected);
    assert_eq!(card["capabilities"]["extensions"][0]["required"], true);
    for step in heard["steps"].as_array().unwrap() {
        let words = step["error"]["message"].as_str().unwrap();
        assert!(words.contains("roa:scope_expansion_violation"), "{step}");
        assert!(referenced(step).starts_with("aer:"), "{step}");
    }
    let records = agency.records(3);
    must_be_whole(&records);
    assert_eq!(of_kind(&records, "outcome").len(), 0);
}

impl Agency {
    fn records(&self, count: usize) -> Vec<black_box::audit_trail::Record> {
        black_box::gateway::records_when(&self.service, &self.running, count)
    }
}
