//! Rules of the operator's (C4), and questions to a person: the readings V-26, V-27, V-28 and V-38, in both eras.

use black_box::gateway::PAYMENT_RULES;
use black_box::mcp::McpAnswer;
use black_box::{Agent, Guarded, McpClient, Verdict};
use serde_json::{Value, json};
use testkit::McpServer;

fn guarded() -> Guarded {
    Guarded::with(PAYMENT_RULES)
}

/// A client that can ask its user.
fn asking(guarded: &Guarded, modern: bool) -> McpClient {
    let capabilities = json!({ "elicitation": { "form": {} } });
    if modern {
        return guarded.running.modern().that_can(capabilities);
    }
    let mut client = McpClient::legacy(guarded.running.url()).that_can(capabilities);
    client.initialize(json!({})).must_succeed();
    client
}

fn large() -> Value {
    json!({ "amount": 5000, "to": "somebody" })
}

/// Pays in the newer era, with whatever else belongs to a retry.
fn pay(agent: &Agent, client: &mut McpClient, arguments: &Value, more: &Value) -> McpAnswer {
    let intent = agent.signed(agent.intent("payments.send", arguments));
    let mut params = json!({ "name": "payments.send", "arguments": arguments, "_meta": { "vap": intent } });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.request("tools/call", params)
}

/// The retry that answers a question.
fn answer(asked: &McpAnswer, action: &str) -> Value {
    let requests = asked.result()["inputRequests"].as_object().unwrap();
    let content = if action == "accept" { json!({ "confirm": true }) } else { Value::Null };
    let answers: serde_json::Map<String, Value> = requests
        .keys()
        .map(|key| {
            (key.clone(), testkit::agent::with(json!({ "action": action }), &json!({ "content": content })))
        })
        .collect();
    json!({ "requestState": asked.result()["requestState"], "inputResponses": answers })
}

#[test]
fn a_rule_denies_by_what_the_arguments_say() {
    let guarded = guarded();
    guarded.in_both_eras(|agent, client| {
        agent.commit(client);
        agent
            .call(client, "payments.send", json!({ "amount": 1, "to": "nobody" }))
            .must_be_denied("policy:never");
        agent.call(client, "payments.send", json!({ "amount": 1, "to": "somebody" })).must_be_served();
        // Arguments that the rule cannot be asked about are not let through.
        let response = agent.call(client, "payments.send", json!({ "amount": "1e9" }));
        assert_ne!(response.verdict().word(), "served", "{response:?}");
    });
    assert_eq!(guarded.upstream.calls(), 2);
}

#[test]
fn in_the_newer_era_a_confirmed_call_is_made_once() {
    let guarded = guarded();
    let (agent, mut client) = (&guarded.agent, asking(&guarded, true));
    agent.commit_to(&mut client, json!({ "budget": { "max_calls": 2 } }));
    let asked = pay(agent, &mut client, &large(), &json!({}));
    assert_eq!(asked.result()["resultType"], "input_required", "{asked:?}");
    let question = asked.result()["inputRequests"].to_string();
    assert!(question.contains("payments.send") && question.contains("5000"), "{question}");
    assert!(!question.contains("the ticket says so"), "no word of the rationale: {question}");
    assert_eq!(guarded.upstream.calls(), 0);
    let retry = answer(&asked, "accept");
    let response = pay(agent, &mut client, &large(), &retry);
    response.must_be_served();
    // The server hears neither our state nor the answer to our question.
    let call = guarded.upstream.only_call();
    assert!(
        call.param("requestState").is_none() && call.param("inputResponses").is_none(),
        "{}",
        call.text()
    );
    // Neither is it used again, nor does the question count as a call.
    let again = pay(agent, &mut client, &large(), &retry);
    assert_ne!(again.message["result"]["_meta"]["vap"]["verdict"], "served", "{again:?}");
    assert_eq!(guarded.upstream.calls(), 1);
    agent.call(&mut client, "echo", json!({})).must_be_served();
    agent.call(&mut client, "echo", json!({})).must_be_denied("budget_exceeded");
}

#[test]
fn in_the_older_era_the_question_comes_on_the_open_stream() {
    let guarded = guarded();
    let agent = &guarded.agent;
    for (action, reason) in [("accept", ""), ("decline", "declined"), ("cancel", "declined")] {
        let mut client = asking(&guarded, false);
        let agent = agent.also_in(&format!("{}-{action}", agent.session));
        agent.commit(&mut client);
        let before = guarded.upstream.calls();
        let meta = json!({ "vap": agent.intent("payments.send", &large()) });
        let mut coming = client.begin_call("payments.send", large(), meta);
        let asked = coming.message().unwrap();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let schema = &asked["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!(["confirm"]), "{asked}");
        assert!(asked["params"]["message"].as_str().unwrap().contains("payments.send"), "{asked}");
        assert_eq!(guarded.upstream.calls(), before, "nothing is sent before there is an answer");
        let content = if action == "accept" { json!({ "confirm": true }) } else { json!({}) };
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": action, "content": content } });
        assert_eq!(client.send("", None, &answer.to_string()).status, 202);
        let response = coming.message().unwrap();
        let verdict = Verdict::of(&response);
        if reason.is_empty() {
            assert_eq!(verdict.word(), "served", "{response}");
            assert_eq!(guarded.upstream.calls(), before + 1);
        } else {
            assert_eq!((verdict.word(), verdict.reason()), ("denied", reason));
            assert_eq!((&response["result"]["isError"], guarded.upstream.calls()), (&json!(true), before));
        }
    }
    // The answers were ours: the server has seen none of them.
    assert!(guarded.upstream.seen().iter().all(|seen| !seen.text().contains("\"action\"")));
}

#[test]
fn a_confirmed_call_is_decided_under_the_rules_then_in_force() {
    let guarded = guarded();
    let agent = &guarded.agent;
    let mut older = asking(&guarded, false);
    agent.commit(&mut older);
    let meta = json!({ "vap": agent.intent("payments.send", &large()) });
    let mut coming = older.begin_call("payments.send", large(), meta);
    let asked = coming.message().unwrap();
    let newer = agent.also_in("a-session-of-the-newer-era");
    let mut client = asking(&guarded, true);
    newer.commit(&mut client);
    let pending = pay(&newer, &mut client, &large(), &json!({}));
    assert_eq!(pending.result()["resultType"], "input_required", "{pending:?}");

    // The operator closes payments; both questions are open.
    let file = guarded.gateway.path("gateway.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let closed =
        "[[route.rule]]\nname = \"closed\"\ntool = \"payments.*\"\nthen = \"deny\"\n\n[[route.rule]]";
    std::fs::write(&file, text.replacen("[[route.rule]]", closed, 1)).unwrap();
    guarded.running.signal(rustix::process::Signal::HUP);
    let begun = std::time::Instant::now();
    while newer
        .call(&mut client, "payments.send", json!({ "amount": 1, "to": "somebody" }))
        .verdict()
        .reason()
        != "policy:closed"
    {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{}", guarded.running.said());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }

    let before = guarded.upstream.calls();
    let accept = json!({ "action": "accept", "content": { "confirm": true } });
    let yes = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": accept }).to_string();
    assert_eq!(older.send("", None, &yes).status, 202);
    let response = coming.message().unwrap();
    assert_eq!(Verdict::of(&response).reason(), "policy:closed", "{response}");
    let response = pay(&newer, &mut client, &large(), &answer(&pending, "accept"));
    assert_eq!(response.verdict().word(), "denied", "{response:?}");
    assert_eq!(guarded.upstream.calls(), before);
}

#[test]
fn a_failing_judge_denies_and_its_text_stays_inside() {
    for (status, body) in [
        (500_u16, "judge on fire: SECRET-PROMPT"),
        (200, "{\"choices\":[{\"message\":{\"content\":\"served SECRET-PROMPT\"}}]}"),
    ] {
        let judge = McpServer::scripted(move |_, wire| {
            wire.answer(status, &[("Content-Type", "application/json")], body.as_bytes());
            true
        });
        let url = format!("http://{}/v1", judge.address());
        let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
            gateway.table(&format!(
                "[judge]\nurl = \"{url}\"\nmodel = \"m\"\nsample_rate = 1.0\ncommitments = true\ncost = \"1\"\ncap = \"100\""
            ))
        });
        guarded.in_both_eras(|agent, client| {
            let response = agent.commit(client);
            assert!(matches!(response.verdict().word(), "denied" | "clarify"), "{response:?}");
            assert!(!response.message.to_string().contains("SECRET"), "{response:?}");
            assert_eq!(agent.call(client, "echo", json!({})).verdict().word(), "denied");
        });
        assert_eq!(guarded.upstream.calls(), 0);
        assert!(!judge.seen().is_empty(), "it was asked");
    }
}

#[test]
fn a_risk_score_leaves_the_verdict_unchanged_without_a_judge() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        agent.commit(client);
        for _ in 0..20 {
            let verdict = agent.call(client, "echo", json!({ "same": "again" })).must_be_served();
            assert_ne!(verdict.0["verification"]["semantic_invoked"], true);
            assert!(verdict.0["verification"]["risk_score"].is_number(), "{verdict:?}");
        }
    });
}

#[test]
fn a_session_in_which_a_person_was_asked_is_decided_again_to_the_same() {
    let guarded = guarded();
    let newer = guarded.agent.also_in("asked-in-the-newer-era");
    let mut client = asking(&guarded, true);
    newer.commit(&mut client);
    for action in ["accept", "decline"] {
        let asked = pay(&newer, &mut client, &large(), &json!({}));
        let response = pay(&newer, &mut client, &large(), &answer(&asked, action));
        assert_eq!(response.verdict().word(), if action == "accept" { "served" } else { "denied" });
    }
    newer.call(&mut client, "echo", json!({})).must_be_served();
    let older = guarded.agent.also_in("asked-in-the-older-era");
    let mut client = asking(&guarded, false);
    older.commit(&mut client);
    for action in ["accept", "decline"] {
        let meta = json!({ "vap": older.intent("payments.send", &large()) });
        let mut coming = client.begin_call("payments.send", large(), meta);
        let asked = coming.message().unwrap();
        let result = json!({ "action": action, "content": { "confirm": action == "accept" } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        assert_eq!(client.send("", None, &answer.to_string()).status, 202);
        coming.message().unwrap();
    }
    guarded.running.stop();
    for session in [&newer.session, &older.session] {
        let replay = ["gateway", "replay", "--config", "gateway.toml", session, "--json"];
        let ran = guarded.gateway.tabellion(&replay);
        assert_eq!(ran.code, Some(0), "{ran}");
    }
}
