//! Who may come in: tokens for this gateway and no other, in one of two modes and never in either; and tokens as the
//! principal of a session (V-2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use black_box::{Agent, Answer, Gateway, GatewayProcess, McpClient};
use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};
use testkit::McpServer;

/// Who gives tokens.
const AS: &str = "https://as.example";
/// What the server behind the gateway calls itself.
const SERVER: &str = "https://server.example/mcp";

struct Issuer(SigningKey);

impl Issuer {
    fn new() -> Self {
        Self(SigningKey::from_bytes(&[3; 32]))
    }

    fn jwks(&self) -> Value {
        let x = BASE64URL_NOPAD.encode(self.0.verifying_key().as_bytes());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "as-1", "alg": "EdDSA", "use": "sig" }] })
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let input = format!("{}.{}", part(header), part(claims));
        let signature = self.0.sign(input.as_bytes()).to_bytes();
        format!("{input}.{}", BASE64URL_NOPAD.encode(&signature))
    }

    fn token(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": "EdDSA", "kid": "as-1", "typ": "at+jwt" }), claims)
    }
}

fn claims(aud: &str, changes: Value) -> Value {
    let usual = json!({
        "iss": AS, "sub": "user-1", "client_id": "client-1", "aud": aud,
        "exp": now() + 600, "iat": now(), "scope": "mcp:tools other",
    });
    testkit::agent::with(usual, &changes)
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// A gateway whose route has this protection, and knows an agent.
fn protected(upstream: &McpServer, oauth: &str) -> (Gateway, GatewayProcess) {
    let gateway = Gateway::before(&upstream.url()).route(&format!(
        "without_vap = \"advisory\"\n[route.oauth]\nissuer = \"{AS}\"\njwks = \"as.jwks.json\"\nscopes = [\"mcp:tools\"]\n{oauth}"
    ));
    std::fs::write(gateway.path("as.jwks.json"), Issuer::new().jwks().to_string()).unwrap();
    let running = gateway.start();
    (gateway, running)
}

fn tried(running: &GatewayProcess, token: Option<&str>) -> Answer {
    let client = running.modern();
    let mut client = match token {
        Some(token) => client.with_token(token),
        None => client,
    };
    client.call("echo", json!({}), json!({})).answer
}

#[track_caller]
fn must_be_challenged(answer: &Answer, status: u16, says: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    let challenge = answer.must_have("www-authenticate");
    assert!(challenge.starts_with("Bearer ") && challenge.contains("resource_metadata="), "{challenge}");
    assert!(challenge.contains(says), "{says} is not in {challenge}");
}

#[test]
fn a_token_must_be_valid_and_issued_for_this_gateway() {
    let upstream = McpServer::ordinary();
    let (gateway, running) = protected(&upstream, "mode = \"gateway\"");
    let (issuer, resource) = (Issuer::new(), gateway.url());
    must_be_challenged(&tried(&running, None), 401, "scope=\"mcp:tools\"");
    for wrong in [
        json!({ "aud": SERVER }),
        json!({ "aud": format!("{resource}/") }),
        json!({ "aud": format!("{resource}x") }),
        json!({ "aud": resource.trim_end_matches("/mcp") }),
        json!({ "aud": [SERVER, format!("x{resource}")] }),
        json!({ "aud": null }),
        json!({ "iss": "https://as.example/" }),
        json!({ "iss": "https://evil.example" }),
        json!({ "exp": now() - 120 }),
        json!({ "exp": null }),
        json!({ "exp": "tomorrow" }),
        json!({ "nbf": now() + 600 }),
    ] {
        let answer = tried(&running, Some(&issuer.token(&claims(&resource, wrong.clone()))));
        assert_eq!(answer.status, 401, "{wrong}");
        must_be_challenged(&answer, 401, "invalid_token");
    }
    let right = claims(&resource, json!({}));
    let stranger = Issuer(SigningKey::from_bytes(&[4; 32]));
    for token in [
        stranger.token(&right),
        issuer.signed(&json!({ "alg": "none" }), &right),
        issuer.signed(&json!({ "alg": "HS256", "kid": "as-1" }), &right),
        issuer.signed(&json!({ "alg": "EdDSA", "kid": "as-1", "jwk": stranger.jwks()["keys"][0] }), &right),
        format!("{}x", issuer.token(&right)),
        issuer.token(&right).rsplit_once('.').unwrap().0.to_owned() + ".",
        "nonsense".to_owned(),
    ] {
        must_be_challenged(&tried(&running, Some(&token)), 401, "invalid_token");
    }
    let narrow = issuer.token(&claims(&resource, json!({ "scope": "mcp:toolsmith" })));
    must_be_challenged(&tried(&running, Some(&narrow)), 403, "insufficient_scope");
    assert_eq!(upstream.seen().len(), 0);
    for aud in [json!(resource), json!([SERVER, resource])] {
        let token = issuer.token(&claims("", json!({ "aud": aud })));
        assert_eq!(tried(&running, Some(&token)).status, 200, "{aud}");
    }
    // The token ends here.
    assert!(upstream.seen().iter().all(|seen| seen.header("authorization").is_none()));
    // And is looked for in one place only.
    let answer = running.connection().send(
        "POST",
        &format!("/mcp?access_token={}", issuer.token(&right)),
        &[("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
    );
    assert_eq!(answer.status, 401);
    let metadata = running.connection().get("/.well-known/oauth-protected-resource/mcp").json();
    assert_eq!((&metadata["resource"], &metadata["authorization_servers"]), (&json!(resource), &json!([AS])));
}

#[test]
fn a_token_for_the_server_passes_where_the_route_says_so() {
    let metadata = json!({ "resource": SERVER, "authorization_servers": [AS], "theirs": true });
    let document = metadata.to_string();
    let upstream = McpServer::scripted(move |seen, wire| {
        let asked = seen.method() == "GET" && seen.head.contains("/.well-known/");
        if asked {
            wire.answer(200, &[("Content-Type", "application/json")], document.as_bytes());
        }
        asked
    });
    let theirs = format!("http://{}/.well-known/oauth-protected-resource/mcp", upstream.address());
    let oauth = format!("mode = \"upstream\"\nresource = \"{SERVER}\"\nmetadata = \"{theirs}\"");
    let (gateway, running) = protected(&upstream, &oauth);
    let issuer = Issuer::new();
    let token = issuer.token(&claims(SERVER, json!({})));
    assert_eq!(tried(&running, Some(&token)).status, 200);
    assert_eq!(upstream.only_call().header("authorization"), Some(format!("Bearer {token}").as_str()));
    // Never either.
    let ours = issuer.token(&claims(&gateway.url(), json!({})));
    must_be_challenged(&tried(&running, Some(&ours)), 401, "invalid_token");
    assert_eq!(upstream.calls(), 1);
    let shown = running.connection().get("/.well-known/oauth-protected-resource/mcp").json();
    assert_eq!(shown, metadata);
}

#[test]
fn a_session_belongs_to_the_token_that_committed() {
    let (upstream, agent) = (McpServer::ordinary(), Agent::new("one-by-token"));
    let (gateway, running) = protected(&upstream, "mode = \"gateway\"");
    let issuer = Issuer::new();
    let client =
        |changes: Value| running.modern().with_token(&issuer.token(&claims(&gateway.url(), changes)));
    let call = |client: &mut McpClient| {
        client.call("echo", json!({}), json!({ "vap": agent.intent("echo", &json!({})) }))
    };
    let mut owner = client(json!({}));
    assert_eq!(
        owner.carry(agent.commitment()).verdict().word(),
        "served",
        "unsigned: the token says who it is"
    );
    for other in [json!({ "sub": "user-2" }), json!({ "client_id": "client-2" })] {
        call(&mut client(other)).must_be_denied("wrong_principal");
    }
    // A newer token of the same is the same.
    call(&mut client(json!({ "exp": now() + 900, "jti": "another" }))).must_be_served();
    call(&mut owner).must_be_served();
}

#[test]
fn a_reload_keeps_the_issuers_keys_while_it_is_away() {
    let issuer = Issuer::new();
    let (keys, is_there) = (issuer.jwks().to_string(), Arc::new(AtomicBool::new(true)));
    let there = is_there.clone();
    let provider = McpServer::scripted(move |_, wire| {
        let status = if there.load(Ordering::SeqCst) { 200 } else { 503 };
        wire.answer(status, &[("Content-Type", "application/json")], keys.as_bytes());
        true
    });
    let upstream = McpServer::ordinary();
    let gateway = Gateway::before(&upstream.url()).route(&format!(
        "without_vap = \"advisory\"\n[route.oauth]\nmode = \"gateway\"\nissuer = \"{AS}\"\njwks_url = \"http://{}/jwks\"",
        provider.address()
    ));
    let running = gateway.start();
    let token = issuer.token(&claims(&gateway.url(), json!({})));
    assert_eq!(tried(&running, Some(&token)).status, 200);
    is_there.store(false, Ordering::SeqCst);
    let file = gateway.path("gateway.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let rule = "\n[[route.rule]]\nname = \"closed\"\nthen = \"deny\"\n";
    std::fs::write(&file, format!("{}{rule}", before.replace("\"advisory\"", "\"deny\""))).unwrap();
    running.signal(rustix::process::Signal::HUP);
    let begun = std::time::Instant::now();
    // Reloaded: the same call is denied, and its client is still let in.
    loop {
        let answer = tried(&running, Some(&token));
        assert_eq!(answer.status, 200, "{answer:?}");
        if answer.json()["result"]["isError"] == true {
            break;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{}", running.said());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(provider.seen().len(), 1, "the keys were fetched once");
}

#[test]
fn an_agent_that_is_known_by_a_token_is_named_by_that_token_alone() {
    let upstream = McpServer::ordinary();
    let agent = Agent::named("did:example:by-token", "one-that-is-known-by-its-token", 9);
    let gateway = Gateway::before(&upstream.url())
        .route(&format!("[route.oauth]\nissuer = \"{AS}\"\njwks = \"as.jwks.json\"\nmode = \"gateway\""))
        .table(&format!(
            "[[agent]]\nid = \"{}\"\noauth = {{ issuer = \"{AS}\", subject = \"user-1\" }}",
            agent.id
        ));
    std::fs::write(gateway.path("as.jwks.json"), Issuer::new().jwks().to_string()).unwrap();
    let running = gateway.start();
    let client = |sub: &str| {
        running.modern().with_token(&Issuer::new().token(&claims(&gateway.url(), json!({ "sub": sub }))))
    };
    client("user-2").carry(agent.commitment()).must_have_denied("token_not_of_agent");
    assert_eq!(client("user-1").carry(agent.commitment()).verdict().word(), "served");
    let intent = json!({ "vap": agent.intent("echo", &json!({})) });
    client("user-1").call("echo", json!({}), intent).must_be_served();
}
