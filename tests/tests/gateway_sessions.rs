//! Whose session it is, what it committed to, and how that may change: the readings V-1 to V-6, V-8 to V-10, V-15 to V-19,
//! V-23, V-32 to V-35 and X-1, each as somebody who tries.
#![allow(clippy::unwrap_used)]

use black_box::gateway::GATEWAY;
use black_box::{Agent, Guarded, McpClient, Upstream, vap};
use serde_json::{Value, json};

/// Tools that are outside what the agents here commit to.
const FORBIDDEN: &str = "files.delete";

#[test]
fn a_session_that_somebody_else_has_read_or_guessed_is_of_no_use_to_him() {
    let thief = Agent::named("did:example:thief", "", 9);
    let guarded = Guarded::built(Upstream::ordinary(), |gateway| gateway.knowing(&thief));
    guarded.in_both_eras(|agent, client| {
        let digest = agent.commit(client).verdict().digest().to_owned();
        let thief = thief.also_in(&agent.session);
        let mut other =
            if client.session().is_some() { guarded.running.in_session() } else { guarded.running.modern() };
        let spent = thief.call(&mut other, "echo", json!({}));
        assert_eq!(spent.verdict().word(), "denied", "{spent:?}");
        let widened = thief.amend(&mut other, &digest, json!({ "increase_budget": { "add_calls": 9 } }));
        assert_eq!(widened.verdict().word(), "denied", "{widened:?}");
        let replaced = thief.commit(&mut other);
        assert_eq!(replaced.verdict().word(), "denied", "{replaced:?}");
        agent.call(client, "echo", json!({})).must_be_served();
    });
    assert_eq!(guarded.upstream.calls(), 2, "only its owner's");
}

#[test]
fn in_the_older_era_the_mcp_session_counts_whatever_is_signed() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    let (mut one, mut other) = (guarded.running.in_session(), guarded.running.in_session());
    let signed = agent.signed(agent.commitment());
    assert_eq!(one.carry(signed).verdict().word(), "served");
    let intent = agent.signed(agent.intent("echo", &json!({})));
    other.call("echo", json!({}), json!({ "vap": intent })).must_be_denied("wrong_principal");
    one.call("echo", json!({}), json!({ "vap": intent })).must_be_served();
}

#[test]
fn nobody_is_an_agent_that_has_a_key_without_signing_as_it() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    for mut client in [guarded.running.in_session(), guarded.running.modern()] {
        client.carry(agent.commitment()).must_have_denied("signature_required");
        agent.call(&mut client, "echo", json!({})).must_be_denied("no_commitment");
    }
    assert_eq!(guarded.upstream.calls(), 0);
}

#[test]
fn in_the_newer_era_a_commitment_of_nobody_is_none() {
    let guarded = Guarded::new();
    let mut client = guarded.running.modern();
    let stranger = Agent::named("did:example:stranger", "a-session-of-nobody", 8);
    client.carry(stranger.commitment()).must_have_denied("no_principal");
    guarded.agent.call(&mut client, "echo", json!({})).must_be_denied("no_commitment");
    assert_eq!(guarded.upstream.calls(), 0);
}

#[test]
fn a_commitment_that_is_refused_leaves_the_host_session_alive() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    let mut client = McpClient::legacy(guarded.running.url());
    let told =
        client.initialize(json!({ "vap": agent.signed(agent.commitment_with(json!({ "budget": {} }))) }));
    told.must_succeed().must_have_denied("no_budget");
    assert!(client.session().is_some());
    agent.call(&mut client, "echo", json!({})).must_be_denied("no_commitment");
    assert_eq!(client.request("tools/list", json!({})).result()["tools"].as_array().unwrap().len(), 3);
    // A refused one has not taken the id.
    assert_eq!(agent.commit(&mut client).verdict().word(), "served");
    agent.call(&mut client, "echo", json!({})).must_be_served();
}

#[test]
fn a_commitment_takes_effect_only_if_its_carrier_does() {
    let upstream = Upstream::scripted(|seen, wire| {
        let fails = seen.rpc() == "tools/list" && seen.param("cursor").is_some();
        if fails && seen.param("cursor").unwrap().contains("gone") {
            wire.answer(500, &[], b"");
        } else if fails {
            wire.error(seen, "{\"code\":-32602,\"message\":\"no such cursor\"}");
        }
        fails
    });
    let guarded = Guarded::built(upstream, |gateway| gateway);
    guarded.in_both_eras(|agent, client| {
        for cursor in ["wrong", "gone"] {
            let commitment = agent.committed(client, agent.commitment());
            let told =
                client.request("tools/list", json!({ "cursor": cursor, "_meta": { "vap": commitment } }));
            assert!(told.message["result"].is_null(), "{told:?}");
            agent.call(client, "echo", json!({})).must_be_denied("no_commitment");
        }
        assert_eq!(agent.commit(client).verdict().word(), "served", "the id has stayed free");
    });
}

#[test]
fn what_carries_a_message_reaches_the_server_without_it() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let commitment = agent.committed(client, agent.commitment());
        let meta = json!({ "vap": commitment, "org.example/kept": { "n": 1 } });
        client.request("tools/list", json!({ "_meta": meta })).must_succeed();
        let passed = guarded.upstream.of("tools/list").last().unwrap().clone();
        assert!(passed.meta_keys().contains(&"org.example/kept".to_owned()), "{passed:?}");
        assert!(!passed.text().contains("scope_commitment"), "{passed:?}");
        agent.call(client, "echo", json!({ "a": 1 })).must_be_served();
        let passed = guarded.upstream.of("tools/call").last().unwrap().clone();
        assert!(!passed.text().contains("rationale") && !passed.meta_keys().contains(&"vap".to_owned()));
    });
}

#[test]
fn an_answer_with_a_verdict_in_it_is_for_its_caller_alone() {
    let guarded = Guarded::new();
    let mut client = guarded.running.modern();
    let told = guarded.agent.commit(&mut client);
    assert_eq!(
        (&told.result()["cacheScope"], &told.result()["ttlMs"]),
        (&json!("private"), &json!(0)),
        "{told:?}"
    );
    let told = client.request("tools/list", json!({}));
    assert_eq!((&told.result()["cacheScope"], &told.result()["ttlMs"]), (&json!("public"), &json!(60_000)));
}

#[test]
fn a_list_is_filtered_where_the_operator_wants_it_and_nowhere_else() {
    let names = |client: &mut McpClient| {
        let told = client.request("tools/list", json!({}));
        let tools = told.result()["tools"].as_array().unwrap().clone();
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
fn the_answer_has_the_shape_and_the_key_of_the_question() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    let mut client = guarded.running.in_session();
    for (round, key) in ["vap", "dev.tabellion/vap"].into_iter().enumerate() {
        let agent = agent.also_in(&format!("shape-{round}"));
        let told =
            client.request("tools/list", json!({ "_meta": { key: agent.signed(agent.commitment()) } }));
        assert_eq!(told.result()["_meta"][key]["type"], "verdict", "{told:?}");
        let nested = json!({ key: { "intent": agent.intent("echo", &json!({})) } });
        let told = client.call("echo", json!({}), nested);
        assert_eq!(told.result()["_meta"][key]["verdict"]["verdict"], "served", "{told:?}");
        let unasked = if key == "vap" { "dev.tabellion/vap" } else { "vap" };
        assert!(told.result()["_meta"][unasked].is_null(), "{told:?}");
    }
    let agent = agent.also_in("shape-0");
    // Two messages in one slot, or two spellings that differ.
    let both = json!({ "intent": agent.intent("echo", &json!({})), "amendment": agent.amendment("sha256:00", json!({})) });
    assert_eq!(client.call("echo", json!({}), json!({ "vap": both })).verdict().word(), "denied");
    let (one, other) = (agent.intent("echo", &json!({})), agent.intent("payments.send", &json!({})));
    let told = client.call("echo", json!({}), json!({ "vap": one, "dev.tabellion/vap": other }));
    assert_eq!(told.result()["isError"], true, "{told:?}");
    assert_eq!(guarded.upstream.calls(), 2);
}

#[test]
fn a_message_that_is_no_message_is_denied_in_band_and_not_forwarded() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        agent.commit(client);
        let intent = agent.intent("echo", &json!({}));
        for bad in [
            json!("served"),
            json!({}),
            json!([intent]),
            vap::with(intent.clone(), json!({ "more": 1 })),
            vap::with(intent.clone(), json!({ "intent": null })),
            vap::with(intent.clone(), json!({ "call": { "tool": "echo", "arguments": [] } })),
            vap::with(intent.clone(), json!({ "session_id": "s".repeat(257) })),
            vap::with(intent.clone(), json!({ "vap": "9.9" })),
            vap::with(intent.clone(), json!({ "type": "scope_commitment" })),
            agent.signed(agent.amendment("sha256:00", json!({ "add_scope": { "tools_allow": ["*"] } }))),
        ] {
            let told = client.call("echo", json!({}), json!({ "vap": bad }));
            assert_eq!((told.answer.status, &told.result()["isError"]), (200, &json!(true)), "{told:?}");
            let verdict = told.verdict();
            assert_eq!(
                (verdict.word(), &verdict.0["in_response_to"]),
                ("denied", &json!("intent_call")),
                "{bad}"
            );
        }
        for reserved in ["none", "unbound:anything"] {
            let told = agent.also_in(reserved).commit(client);
            assert_eq!(told.verdict().word(), "denied", "{reserved}");
        }
    });
    assert_eq!(guarded.upstream.calls(), 0);
}

#[test]
fn a_pattern_is_anchored_and_means_what_it_says() {
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
            let told = agent.call(client, escape, json!({}));
            // A name that no header can hold is refused before it is looked at.
            assert!(
                told.answer.status == 400 || told.must_be_denied("scope_escape").word() == "denied",
                "{escape}"
            );
        }
    });
}

#[test]
fn a_budget_without_any_limit_is_none() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        for budget in [json!({}), json!({ "limits": {} })] {
            agent.commit_to(client, json!({ "budget": budget })).must_have_denied("no_budget");
        }
        for bad in [
            json!({ "max_calls": 0 }),
            json!({ "max_calls": -1 }),
            json!({ "limits": { "usd": 0 } }),
            json!({ "limits": { "usd": "1" } }),
        ] {
            assert_eq!(agent.commit_to(client, json!({ "budget": bad })).verdict().word(), "denied", "{bad}");
        }
    });
}

#[test]
fn an_amendment_raises_what_is_limited_and_nothing_else() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let deadline = "2999-01-01T00:00:00Z";
        let scope = json!({ "tools_allow": ["echo"], "tools_deny": ["files.*"] });
        let commitment =
            json!({ "scope": scope, "budget": { "deadline": deadline, "limits": { "usd": 0.1 } } });
        let digest = agent.commit_to(client, commitment).verdict().digest().to_owned();
        for (changes, reason) in [
            (json!({ "increase_budget": { "add_limits": { "tokens": 1 } } }), "no_such_limit"),
            (json!({ "increase_budget": { "add_calls": 1 } }), "no_such_limit"),
            (
                json!({ "increase_budget": { "extend_deadline": "2998-01-01T00:00:00Z" } }),
                "deadline_not_later",
            ),
            (json!({ "increase_budget": { "extend_deadline": deadline } }), "deadline_not_later"),
            (json!({ "increase_budget": { "extend_deadline": "later" } }), "malformed_deadline"),
            (json!({ "add_scope": {} }), "nothing_to_add"),
            (json!({ "add_scope": { "tools_allow": [] } }), "nothing_to_add"),
        ] {
            agent.amend(client, &digest, changes).must_have_denied(reason);
        }
        // A deny outlives every amendment.
        let told = agent.amend(client, &digest, json!({ "add_scope": { "tools_allow": ["*"] } }));
        assert_eq!(told.verdict().word(), "served", "{told:?}");
        agent.call(client, "payments.send", json!({})).must_be_served();
        agent.call(client, FORBIDDEN, json!({})).must_be_denied("scope_escape");
    });
}

#[test]
fn anyone_can_compute_which_commitment_is_in_force() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let commitment = agent.commitment();
        let told = agent.commit(client);
        assert_eq!(told.verdict().digest(), vap::digest(&commitment));
        assert_eq!(told.result()["_meta"]["dev.tabellion/commitment"], commitment);
        let digest = told.verdict().digest().to_owned();
        let changes = json!({
            "add_scope": { "tools_allow": ["files.*", "echo"], "tools_deny": ["files.delete"] },
            "increase_budget": { "add_calls": 5 },
        });
        // Digests are compared without regard to case in their hex.
        let shouted = format!("sha256:{}", digest.trim_start_matches("sha256:").to_uppercase());
        let told = agent.amend(client, &shouted, changes);
        let mut amended = commitment;
        amended["scope"] =
            json!({ "tools_allow": ["echo", "payments.*", "files.*"], "tools_deny": ["files.delete"] });
        amended["budget"] = json!({ "max_calls": 105 });
        amended["prev_commitment_digest"] = digest.into();
        assert_eq!(told.result()["_meta"]["dev.tabellion/commitment"], amended);
        assert_eq!(told.verdict().digest(), vap::digest(&amended));
    });
}

#[test]
fn the_operators_ceiling_holds_whatever_is_declared() {
    let guarded = Guarded::with("ceiling = { max_calls = 2, limits = { usd = 1 } }");
    guarded.in_both_eras(|agent, client| {
        let told = agent.commit(client);
        let verdict = told.verdict();
        assert_eq!(verdict.word(), "downgraded", "{verdict:?}");
        assert_eq!(told.result()["_meta"]["dev.tabellion/commitment"]["budget"]["max_calls"], 2);
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
fn new_sessions_mint_no_budget_where_the_operator_counts_across_them() {
    let guarded = Guarded::with("principal_ceiling = { max_calls = 3 }");
    let mut served = 0;
    for n in 0..5 {
        let mut client = guarded.running.in_session();
        let agent = guarded.agent.also_in(&format!("again-{n}"));
        agent.commit(&mut client);
        served += usize::from(agent.call(&mut client, "echo", json!({})).verdict().word() == "served");
    }
    assert_eq!((served, guarded.upstream.calls()), (3, 3));
    // An MCP session is no name to count on.
    let stranger = Agent::named("did:example:nobody-knows", "a-session-without-a-key", 9);
    let told = guarded.running.in_session().carry(stranger.commitment());
    told.must_have_denied("no_principal");
}

#[test]
fn leaving_the_envelope_out_is_no_way_round_it() {
    let guarded = Guarded::new();
    for client in [&mut guarded.running.in_session(), &mut guarded.running.modern()] {
        client.call("echo", json!({}), json!({})).must_be_denied("no_envelope");
        // The host's session lives on.
        client.request("tools/list", json!({})).must_succeed();
    }
    assert_eq!(guarded.upstream.calls(), 0);
    // Nor where unaware callers are let through: who has committed is not unaware.
    let guarded = Guarded::with("without_vap = \"advisory\"");
    let mut client = guarded.running.in_session();
    let untouched = client.call("echo", json!({}), json!({}));
    assert!(untouched.must_succeed().result()["_meta"].is_null(), "{untouched:?}");
    guarded.agent.commit(&mut client);
    let told = client.call("echo", json!({}), json!({}));
    assert_eq!((&told.result()["isError"], guarded.upstream.calls()), (&json!(true), 1), "{told:?}");
    guarded.agent.call(&mut client, FORBIDDEN, json!({})).must_be_denied("scope_escape");
}

#[test]
fn a_restricted_caller_gets_what_is_listed_for_him_and_is_told_so() {
    let guarded = Guarded::with("without_vap = \"restricted\"\nrestricted = [\"ec*\"]");
    for client in [&mut guarded.running.in_session(), &mut guarded.running.modern()] {
        let told = client.call("echo", json!({}), json!({}));
        assert_eq!(told.must_succeed().verdict().word(), "downgraded", "{told:?}");
        let told = client.call(FORBIDDEN, json!({}), json!({}));
        assert_eq!(told.must_be_denied("restricted").word(), "denied");
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
    let told = McpClient::legacy(guarded.running.url()).initialize(json!({}));
    let vap = &told.result()["capabilities"]["experimental"]["vap"];
    assert!(vap.is_object(), "{told:?}");
    assert_eq!(told.result()["capabilities"]["experimental"]["other"], json!({ "kept": true }), "{told:?}");
    let told = guarded.running.modern().request("server/discover", json!({}));
    assert!(told.result()["capabilities"]["extensions"]["dev.tabellion/vap"].is_object(), "{told:?}");
    let mut client = guarded.running.in_session();
    client.carry(agent.commitment()).must_have_denied("signature_required");
    client.carry(agent.signed(agent.commitment())).must_have_denied("freshness_required");
    let header =
        |jti: &str| json!({ "alg": "EdDSA", "kid": agent.kid(), "iat": now(), "jti": jti, "aud": GATEWAY });
    let told = client.carry(agent.signed_under(agent.commitment(), &header("one")));
    assert_eq!(told.verdict().word(), "served", "{told:?}");
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
fn an_amendment_has_a_way_of_its_own_that_leads_to_no_server() {
    let guarded = Guarded::new();
    guarded.in_both_eras(|agent, client| {
        let digest = agent.commit(client).verdict().digest().to_owned();
        let amendment =
            agent.signed(agent.amendment(&digest, json!({ "add_scope": { "tools_allow": ["files.*"] } })));
        let told = client.request("vap/amend", json!({ "_meta": { "vap": amendment } }));
        assert_eq!(told.verdict().word(), "served", "{told:?}");
        agent.call(client, FORBIDDEN, json!({})).must_be_served();
    });
    assert_eq!(guarded.upstream.of("vap/amend").len(), 0);
}

#[test]
fn a_session_that_has_ended_is_not_begun_again() {
    let guarded = Guarded::new();
    let mut client = guarded.running.in_session();
    guarded.agent.commit(&mut client);
    guarded.agent.call(&mut client, "echo", json!({})).must_be_served();
    assert_eq!(client.delete().status, 200);
    let mut again = guarded.running.in_session();
    let told = guarded.agent.commit(&mut again).verdict();
    assert!(matches!(told.reason(), "session_closed" | "session_in_use"), "{told:?}");
    assert_eq!(guarded.agent.call(&mut again, "echo", json!({})).verdict().word(), "denied");
    assert_eq!(guarded.upstream.calls(), 1);
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
