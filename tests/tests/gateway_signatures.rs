//! Signatures that are none, somebody else's, old, or used before: the readings V-19 to V-22.
#![allow(clippy::unwrap_used)]

use black_box::gateway::GATEWAY;
use black_box::{Agent, Guarded, McpClient, Told, Upstream};
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn call(client: &mut McpClient, intent: Value) -> Told {
    let arguments = intent["call"]["arguments"].clone();
    client.call("echo", arguments, json!({ "vap": intent }))
}

#[test]
fn a_header_outside_the_profile_is_no_signature() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    let kid = agent.kid();
    let mut client = guarded.running.modern();
    for header in [
        json!({ "alg": "none", "kid": kid }),
        json!({ "alg": "HS256", "kid": kid }),
        json!({ "alg": "RS256", "kid": kid }),
        json!({ "alg": "eddsa", "kid": kid }),
        json!({ "alg": "EdDSA" }),
        json!({ "kid": kid }),
        json!({ "alg": "EdDSA", "kid": kid, "jwk": agent.jwk() }),
        json!({ "alg": "EdDSA", "kid": kid, "jku": "http://127.0.0.1:9/keys" }),
        json!({ "alg": "EdDSA", "kid": kid, "x5u": "http://127.0.0.1:9/chain" }),
        json!({ "alg": "EdDSA", "kid": kid, "crit": ["exp"], "exp": 1 }),
        json!({ "alg": "EdDSA", "kid": kid, "crit": ["b64"], "b64": false }),
    ] {
        let told = client.carry(agent.signed_under(agent.commitment(), &header));
        assert_eq!(told.verdict().word(), "denied", "{header}: {told:?}");
    }
    // Nor is one with an empty signature, or with the payload of something else.
    for signature in
        ["", "..", "e30..", "e30.e30.e30", &format!("{}..", BASE64URL_NOPAD.encode(b"{\"alg\":\"none\"}"))]
    {
        let mut commitment = agent.commitment();
        commitment["signature"] = signature.into();
        assert_eq!(client.carry(commitment).verdict().word(), "denied", "{signature}");
    }
    let signed = agent.signed(agent.commitment_with(json!({ "goal": "another" })));
    let mut moved = agent.commitment();
    moved["signature"] = signed["signature"].clone();
    client.carry(moved).must_have_denied("invalid_signature");
    assert_eq!(agent.commit(&mut client).verdict().word(), "served", "the right one is taken");
}

#[test]
fn a_key_signs_for_its_own_agent_only() {
    let other = Agent::named("did:example:b", "", 8);
    let unknown = Agent::named("did:example:a", "", 11);
    let guarded = Guarded::built(Upstream::ordinary(), |gateway| gateway.knowing(&other));
    let agent = &guarded.agent;
    let mut client = guarded.running.modern();
    let told = client.carry(other.signed(agent.commitment()));
    assert_eq!(told.verdict().reason(), "key_not_authorised", "{told:?}");
    // A stranger's key under the agent's name for its own.
    client.carry(unknown.signed(agent.commitment())).must_have_denied("invalid_signature");
    let header = json!({ "alg": "EdDSA", "kid": "did:example:a#2" });
    client.carry(unknown.signed_under(agent.commitment(), &header)).must_have_denied("unknown_key");
}

#[test]
fn an_envelope_is_used_once_where_it_says_so_and_in_its_time() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    let mut client = guarded.running.modern();
    agent.commit(&mut client);
    let intent = agent.intent("echo", &json!({}));
    let under = |more: Value| {
        let mut header = json!({ "alg": "EdDSA", "kid": agent.kid() });
        header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        agent.signed_under(intent.clone(), &header)
    };
    let once = under(json!({ "jti": "only-once" }));
    call(&mut client, once.clone()).must_be_served();
    call(&mut client, once).must_be_denied("replayed");
    call(&mut client, under(json!({ "iat": now() - 3600 }))).must_be_denied("stale");
    call(&mut client, under(json!({ "iat": now() + 3600 }))).must_be_denied("stale");
    call(&mut client, under(json!({ "aud": "https://elsewhere.example" }))).must_be_denied("wrong_audience");
    call(&mut client, under(json!({ "iat": now(), "jti": "two", "aud": GATEWAY }))).must_be_served();
    // Without any of them a repeat is valid, and only looks like a loop.
    for _ in 0..2 {
        call(&mut client, under(json!({}))).must_be_served();
    }
}

#[test]
fn a_signed_message_with_a_number_that_no_double_holds_is_denied_and_an_unsigned_one_is_not() {
    let guarded = Guarded::new();
    let agent = &guarded.agent;
    let arguments = json!({ "n": 9_007_199_254_740_993_u64 });
    let mut client = guarded.running.modern();
    agent.commit(&mut client);
    agent.call(&mut client, "echo", arguments.clone()).must_be_denied("not_canonical");
    let mut client = guarded.running.in_session();
    let agent = agent.also_in("unsigned");
    agent.commit(&mut client);
    agent.call(&mut client, "echo", arguments).must_be_served();
    assert!(guarded.upstream.only_call().text().contains("9007199254740993"));
}

#[test]
fn a_configured_approver_may_sign_an_amendment_and_nothing_else() {
    let approver = Agent::named("did:example:approver", "", 12);
    let guarded = Guarded::built(Upstream::ordinary(), |gateway| {
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
    let told = call(&mut client, approver.signed(agent.intent("echo", &json!({}))));
    assert_eq!(told.verdict().word(), "denied", "{told:?}");
}
