//! The five bypasses that were demonstrated against the public reference of VAP (section 0 of the specification's digest),
//! in both eras. Each fails against a gateway without the rule.

use black_box::{Guarded, McpClient, vap};
use serde_json::{Value, json};
use testkit::McpServer;

#[test]
fn a_call_that_differs_from_its_declaration_is_denied() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        assert_eq!(agent.commit(client).verdict().word(), "served");
        let arguments = json!({ "amount": 1000 });
        let call = |client: &mut McpClient, declared: &str, meant: &Value, tool: &str, arguments: &Value| {
            let intent = agent.dressed(client, agent.intent(declared, meant));
            client.call(tool, arguments.clone(), json!({ "vap": intent }))
        };
        call(client, "echo", &arguments, "files.delete", &arguments).must_be_denied("call_mismatch");
        call(client, "echo", &arguments, "payments.send", &arguments).must_be_denied("call_mismatch");
        call(client, "echo", &json!({ "amount": 1 }), "echo", &arguments).must_be_denied("call_mismatch");
        call(client, "echo", &json!({}), "echo", &json!({ "more": null })).must_be_denied("call_mismatch");
        // Two numbers that are one as doubles.
        let (meant, sent) =
            (json!({ "n": 9_007_199_254_740_992_u64 }), json!({ "n": 9_007_199_254_740_993_u64 }));
        let response = call(client, "echo", &meant, "echo", &sent);
        assert_eq!(response.verdict().word(), "denied", "{response:?}");
        // And what was never in scope.
        agent.call(client, "files.delete", json!({})).must_be_denied("scope_escape");
    });
    assert_eq!(guarded.upstream.calls(), 0, "nothing of this reached the server");
}

#[test]
fn a_member_name_reserved_by_the_json_library_is_refused() {
    let rules = r#"without_vap = "restricted"
restricted = ["*"]
[[route.rule]]
name = "dry"
when = "input.arguments.options.dry_run == true"
then = "allow"
[[route.rule]]
name = "any"
then = "deny"
"#;
    let guarded = Guarded::with(rules);
    for mut client in [guarded.running.in_session(), guarded.running.modern()] {
        let hidden = json!({ "$serde_json::private::RawValue": "{\"dry_run\":true}" });
        for arguments in
            [json!({ "options": hidden }), json!({ "options": { "dry_run": true }, "more": [hidden] })]
        {
            let response = client.call("deploy", arguments, json!({}));
            assert_eq!(response.answer.status, 400, "{response:?}");
        }
        let beyond = json!({ "options": { "dry_run": true }, "account": 9_007_199_254_740_993_u64 });
        client.call("echo", beyond, json!({})).must_be_denied("policy_failed");
        client.call("echo", json!({ "options": { "dry_run": true } }), json!({})).must_succeed();
    }
    assert_eq!(guarded.upstream.calls(), 2, "one honest call of each client");
}

#[test]
fn a_rule_about_an_amount_denies_calls_without_one() {
    let rule = "[[route.rule]]\nname = \"large\"\ntool = \"payments.*\"\nwhen = \"input.arguments.amount > 1000\"\nthen = \"deny\"\n";
    let guarded = Guarded::with(rule);
    guarded.in_both_eras(|agent, client| {
        agent.commit(client);
        for arguments in
            [json!({}), json!({ "Amount": 5000 }), json!({ "amount": null }), json!({ "amount": 5000 })]
        {
            agent.call(client, "payments.send", arguments).must_be_denied("policy:large");
        }
        agent.call(client, "payments.send", json!({ "amount": 5 })).must_be_served();
    });
    assert_eq!(guarded.upstream.calls(), 2);
}

#[test]
fn a_second_commitment_in_a_session_is_denied() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let once = json!({ "budget": { "max_calls": 1 } });
        assert_eq!(agent.commit_to(client, once.clone()).verdict().word(), "served");
        agent.call(client, "echo", json!({})).must_be_served();
        agent.commit_to(client, once).must_have_denied("session_in_use");
        agent.commit_to(client, json!({ "budget": { "max_calls": 50 } })).must_have_denied("session_in_use");
        agent.call(client, "echo", json!({})).must_be_denied("budget_exceeded");
    });
    assert_eq!(guarded.upstream.calls(), 2);
    // The older era begins again with `initialize`: the same id is in use, and belongs to the session before.
    let agent = guarded.agent.also_in(&format!("{}-older", guarded.agent.session));
    let mut again = McpClient::legacy(guarded.running.url());
    let response = again.initialize(json!({ "vap": agent.signed(agent.commitment()) }));
    assert_eq!(response.verdict().word(), "denied", "{response:?}");
    response.must_succeed();
    agent.call(&mut again, "echo", json!({})).must_be_denied("wrong_principal");
    assert_eq!(guarded.upstream.calls(), 2);
}

#[test]
fn an_amendment_must_continue_the_commitment_and_be_signed() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let digest = agent.commit(client).verdict().digest().to_owned();
        let more = json!({ "add_scope": { "tools_allow": ["files.*"] } });
        let wrong = vap::digest(&json!({ "some": "other" }));
        agent.amend(client, &wrong, more.clone()).must_have_denied("chain_broken");
        client.carry(agent.amendment(&digest, more.clone())).must_have_denied("signature_required");
        let mut junk = agent.signed(agent.amendment(&digest, more.clone()));
        junk["signature"] = "eyJhbGciOiJFZERTQSJ9..AAAA".into();
        assert_eq!(client.carry(junk).verdict().word(), "denied");
        let mut altered = agent.signed(agent.amendment(&digest, more.clone()));
        altered["add_scope"] = json!({ "tools_allow": ["*"] });
        client.carry(altered).must_have_denied("invalid_signature");
        agent.call(client, "files.delete", json!({})).must_be_denied("scope_escape");
        // The real one is taken, once.
        let amended = agent.amend(client, &digest, more.clone()).verdict();
        assert_eq!(amended.word(), "served", "{amended:?}");
        assert_ne!(amended.digest(), digest);
        agent.amend(client, &digest, more).must_have_denied("chain_broken");
        agent.call(client, "files.delete", json!({})).must_be_served();
    });
    assert_eq!(guarded.upstream.calls(), 2);
}

#[test]
fn an_amendment_widens_the_scope_only_once_it_is_accepted() {
    // A judge that finds every commitment sound, and says of an amendment what the test wants to hear.
    for says in ["inconsistent", "unsure", "served, of course"] {
        let judge = McpServer::scripted(move |seen, wire| {
            let finding = if seen.text().contains("there is more to do") { says } else { "consistent" };
            let content = json!({ "finding": finding, "confidence": 0.9, "reason": "as told" }).to_string();
            let answer = json!({ "choices": [{ "message": { "role": "assistant", "content": content } }] });
            wire.answer(200, &[("Content-Type", "application/json")], answer.to_string().as_bytes());
            true
        });
        let url = format!("http://{}/v1", judge.address());
        let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
            gateway.table(&format!(
                "[judge]\nurl = \"{url}\"\nmodel = \"m\"\nsample_rate = 0.01\ncommitments = true\ncost = \"1\"\ncap = \"1000\""
            ))
        });
        guarded.in_both_eras(|agent, client| {
            let digest = agent.commit(client).verdict().digest().to_owned();
            let response =
                agent.amend(client, &digest, json!({ "add_scope": { "tools_allow": ["files.*"] } }));
            let verdict = response.verdict();
            assert!(matches!(verdict.word(), "denied" | "clarify"), "{says}: {verdict:?}");
            agent.call(client, "files.delete", json!({})).must_be_denied("scope_escape");
        });
        assert_eq!(guarded.upstream.calls(), 0);
    }
}

#[test]
fn a_commitment_with_a_malformed_deadline_is_denied() {
    let guarded = Guarded::new();
    for deadline in
        ["tomorrow", "2030-01-01", "2030-01-01T00:00:00", "1893456000", "2030-13-01T00:00:00Z", ""]
    {
        guarded.in_both_eras(|agent, client| {
            let agent = agent.also_in(&format!("{}-{deadline}", agent.session));
            let response =
                agent.commit_to(client, json!({ "budget": { "max_calls": 5, "deadline": deadline } }));
            response.must_have_denied("malformed_deadline");
            agent.call(client, "echo", json!({})).must_be_denied("no_commitment");
        });
    }
    assert_eq!(guarded.upstream.calls(), 0);
}
