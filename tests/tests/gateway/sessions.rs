//! Whose session it is, what it committed to, and how that may change: the readings V-1 to V-6, V-8 to V-10, V-15 to V-19,
//! V-23, V-32 to V-35 and X-1, each as somebody who tries.

use black_box::gateway::GATEWAY;
use black_box::{Agent, Guarded, McpClient, vap};
use serde_json::{Value, json};
use testkit::McpServer;

/// Tools that are outside what the agents here commit to.
const FORBIDDEN: &str = "files.delete";

#[test]
fn a_commitment_that_is_refused_leaves_the_host_session_alive() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    let mut client = McpClient::legacy(guarded.running.url());
    let response =
        client.initialize(json!({ "vap": agent.signed(agent.commitment_with(json!({ "budget": {} }))) }));
    response.must_succeed().must_have_denied("no_budget");
    assert!(client.session().is_some());
    agent.call(&mut client, "echo", json!({})).must_be_denied("no_commitment");
    assert_eq!(client.request("tools/list", json!({})).result()["tools"].as_array().unwrap().len(), 3);
    // A refused one has not taken the id.
    assert_eq!(agent.commit(&mut client).verdict().word(), "served");
    agent.call(&mut client, "echo", json!({})).must_be_served();
}

#[test]
fn a_list_is_filtered_only_where_the_route_says_so() {
    let names = |client: &mut McpClient| {
        let response = client.request("tools/list", json!({}));
        let tools = response.result()["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (route, seen) in [("", 3), ("filter_tools = true", 2)] {
        let guarded = Guarded::with(route);
        let mut client = guarded.running.in_session();
        guarded.agent.commit(&mut client);
        let listed = names(&mut client);
        assert_eq!((listed.len(), listed.contains(&FORBIDDEN.to_owned())), (seen, seen == 3), "{listed:?}");
    }
}

#[test]
fn a_pattern_matches_the_whole_name_and_is_case_sensitive() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let scope =
            json!({ "tools_allow": ["pay*.send", "lit?ral", "ech[o]"], "tools_deny": ["*.secret.send"] });
        agent.commit_to(client, json!({ "scope": scope }));
        for served in ["pay.send", "payments.send", "pay.a.b.send", "lit?ral", "ech[o]"] {
            agent.call(client, served, json!({})).must_be_served();
        }
        for escape in
            ["echo", "xpay.send", "pay.sendx", "PAY.send", "literal", "pay.secret.send", "pay.sen\u{501}"]
        {
            let response = agent.call(client, escape, json!({}));
            // A name that no header can hold is refused before it is looked at.
            assert!(
                response.answer.status == 400 || response.must_be_denied("scope_escape").word() == "denied",
                "{escape}"
            );
        }
    });
}

#[test]
fn anyone_can_compute_which_commitment_is_in_force() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let commitment = agent.commitment();
        let response = agent.commit(client);
        assert_eq!(response.verdict().digest(), vap::digest(&commitment));
        assert_eq!(response.result()["_meta"]["dev.tabellion/commitment"], commitment);
        let digest = response.verdict().digest().to_owned();
        let changes = json!({
            "add_scope": { "tools_allow": ["files.*", "echo"], "tools_deny": ["files.delete"] },
            "increase_budget": { "add_calls": 5 },
        });
        // Digests are compared without regard to case in their hex.
        let shouted = format!("sha256:{}", digest.trim_start_matches("sha256:").to_uppercase());
        let response = agent.amend(client, &shouted, changes);
        let mut amended = commitment;
        amended["scope"] =
            json!({ "tools_allow": ["echo", "payments.*", "files.*"], "tools_deny": ["files.delete"] });
        amended["budget"] = json!({ "max_calls": 105 });
        amended["prev_commitment_digest"] = digest.into();
        assert_eq!(response.result()["_meta"]["dev.tabellion/commitment"], amended);
        assert_eq!(response.verdict().digest(), vap::digest(&amended));
    });
}

#[test]
fn the_operators_ceiling_holds_whatever_is_declared() {
    let guarded = Guarded::with("ceiling = { max_calls = 2, limits = { usd = 1 } }");
    guarded.in_both_eras(|agent, client| {
        let response = agent.commit(client);
        let verdict = response.verdict();
        assert_eq!(verdict.word(), "downgraded", "{verdict:?}");
        assert_eq!(response.result()["_meta"]["dev.tabellion/commitment"]["budget"]["max_calls"], 2);
        let more = json!({ "increase_budget": { "add_calls": 50 } });
        let amended = agent.amend(client, verdict.digest(), more).verdict();
        assert!(matches!(amended.word(), "downgraded" | "denied"), "{amended:?}");
        for _ in 0..2 {
            agent.call(client, "echo", json!({})).must_be_served();
        }
        agent.call(client, "echo", json!({})).must_be_denied("budget_exceeded");
    });
}

#[test]
fn a_principal_ceiling_holds_across_sessions() {
    let guarded = Guarded::with("principal_ceiling = { max_calls = 3 }");
    let mut served = 0;
    for n in 0..5 {
        let mut client = guarded.running.in_session();
        let agent = guarded.agent.also_in(&format!("again-{n}"));
        agent.commit(&mut client);
        served += usize::from(agent.call(&mut client, "echo", json!({})).verdict().word() == "served");
    }
    assert_eq!((served, guarded.upstream.calls()), (3, 3));
    // An MCP session is not a name to count on.
    let stranger = Agent::named("did:example:nobody-knows", "a-session-without-a-key", 9);
    let response = guarded.running.in_session().carry(stranger.commitment());
    response.must_have_denied("no_principal");
}

#[test]
fn a_restricted_caller_is_served_the_listed_tools_as_downgraded() {
    let guarded = Guarded::with("without_vap = \"restricted\"\nrestricted = [\"ec*\"]");
    for client in [&mut guarded.running.in_session(), &mut guarded.running.modern()] {
        let response = client.call("echo", json!({}), json!({}));
        assert_eq!(response.must_succeed().verdict().word(), "downgraded", "{response:?}");
        let response = client.call(FORBIDDEN, json!({}), json!({}));
        assert_eq!(response.must_be_denied("restricted").word(), "denied");
    }
    assert_eq!(guarded.upstream.calls(), 2);
}

#[test]
fn what_the_gateway_demands_is_known_before_anything_is_sent() {
    let guarded = Guarded::with("signed = \"required\"\nfreshness = \"required\"");
    let agent = &guarded.agent;
    let posture = guarded.running.connection().get("/.well-known/vap").json();
    let routes = posture.to_string();
    assert!(routes.contains("\"deny\"") && routes.contains("required"), "{posture}");
    let response = McpClient::legacy(guarded.running.url()).initialize(json!({}));
    let vap = &response.result()["capabilities"]["experimental"]["vap"];
    assert!(vap.is_object(), "{response:?}");
    assert_eq!(
        response.result()["capabilities"]["experimental"]["other"],
        json!({ "kept": true }),
        "{response:?}"
    );
    let response = guarded.running.modern().request("server/discover", json!({}));
    assert!(response.result()["capabilities"]["extensions"]["dev.tabellion/vap"].is_object(), "{response:?}");
    let mut client = guarded.running.in_session();
    client.carry(agent.commitment()).must_have_denied("signature_required");
    client.carry(agent.signed(agent.commitment())).must_have_denied("freshness_required");
    let header =
        |jti: &str| json!({ "alg": "EdDSA", "kid": agent.kid(), "iat": now(), "jti": jti, "aud": GATEWAY });
    let response = client.carry(agent.signed_under(agent.commitment(), &header("one")));
    assert_eq!(response.verdict().word(), "served", "{response:?}");
    let intent = agent.intent("echo", &json!({}));
    let call =
        |client: &mut McpClient, intent: Value| client.call("echo", json!({}), json!({ "vap": intent }));
    call(&mut client, intent.clone()).must_be_denied("signature_required");
    let signed = agent.signed_under(intent, &header("two"));
    call(&mut client, signed.clone()).must_be_served();
    call(&mut client, signed).must_be_denied("replayed");
    assert_eq!(guarded.upstream.calls(), 1);
}

#[test]
fn an_approvers_key_signs_amendments_only() {
    let approver = Agent::named("did:example:approver", "", 12);
    let guarded = Guarded::built(McpServer::ordinary(), |gateway| {
        std::fs::write(gateway.path("approver.jwk"), approver.jwk().to_string()).unwrap();
        gateway.table("[[approver]]\nname = \"approver\"\njwk = \"approver.jwk\"")
    });
    let agent = &guarded.agent;
    let mut client = guarded.running.in_session();
    let digest = agent.commit(&mut client).verdict().digest().to_owned();
    let amendment = agent.amendment(&digest, json!({ "add_scope": { "tools_allow": ["files.*"] } }));
    // From another MCP session it counts for nothing.
    let mut elsewhere = guarded.running.in_session();
    elsewhere.carry(approver.signed(amendment.clone())).must_have_denied("wrong_principal");
    assert_eq!(client.carry(approver.signed(amendment)).verdict().word(), "served");
    agent.call(&mut client, "files.delete", json!({})).must_be_served();
    let intent = approver.signed(agent.intent("echo", &json!({})));
    let response = client.call("echo", json!({}), json!({ "vap": intent }));
    assert_eq!(response.verdict().word(), "denied", "{response:?}");
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
