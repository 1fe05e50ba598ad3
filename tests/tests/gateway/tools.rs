//! What servers say of their tools: pinned as it is first seen, denied once it changes, approved by an operator beside the gateway that
//! runs; and arguments, which have to fit what was pinned.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use black_box::audit_trail::{Record, must_be_whole, of_kind};
use black_box::{Agent, Database, Gateway, Guarded, McpAnswer, McpClient, Scene, rug_pull_over_stdio};
use serde_json::{Value, json};
use testkit::McpServer;

/// How long a check of hostile arguments may take, on a machine that does much else besides.
const SOON: Duration = Duration::from_secs(20);

/// The tools that a server lists, in pages, as a test changes them.
#[derive(Clone, Default)]
struct Catalogue(Arc<Mutex<Vec<Vec<Value>>>>);

impl Catalogue {
    fn of(tools: impl IntoIterator<Item = Value>) -> Self {
        Self(Arc::new(Mutex::new(vec![tools.into_iter().collect()])))
    }

    fn set_pages(&self, pages: Vec<Vec<Value>>) {
        *self.0.lock().unwrap() = pages;
    }

    /// A server that lists these, and does otherwise what any server does.
    fn server(&self) -> McpServer {
        let catalogue = self.clone();
        McpServer::scripted(move |seen, wire| {
            if seen.rpc() != "tools/list" {
                return false;
            }
            let page: usize =
                seen.json()["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let pages = catalogue.0.lock().unwrap();
            let mut result = json!({ "tools": pages[page] });
            if page + 1 < pages.len() {
                result["nextCursor"] = (page + 1).to_string().into();
            }
            if seen.is_modern() {
                result["resultType"] = "complete".into();
                result["ttlMs"] = 0.into();
                result["cacheScope"] = "private".into();
            }
            wire.result(seen, &result.to_string());
            true
        })
    }
}

fn tool(name: &str, words: &str) -> Value {
    json!({ "name": name, "description": words, "inputSchema": { "type": "object" } })
}

fn with_schema(name: &str, schema: Value) -> Value {
    json!({ "name": name, "description": "does it", "inputSchema": schema })
}

/// The tool of a list, as the client reads it.
fn described<'a>(response: &'a McpAnswer, name: &str) -> &'a Value {
    let tools = response.result()["tools"].as_array().unwrap_or_else(|| panic!("no list: {response:#?}"));
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}: {response:#?}"))
}

fn list(client: &mut McpClient) -> McpAnswer {
    client.request("tools/list", json!({}))
}

fn tools(gateway: &Gateway, arguments: &[&str]) -> Value {
    let ran = gateway
        .tabellion(&[&["gateway", "tools"], arguments, &["--config", "gateway.toml", "--json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    ran.json()
}

/// What the gateway lists about a tool.
struct ListedTool {
    state: String,
    digest: String,
}

fn listed(gateway: &Gateway, name: &str) -> ListedTool {
    let response = tools(gateway, &["list"]);
    let tool =
        response["tools"].as_array().unwrap().iter().find(|tool| tool["tool"] == name).unwrap().clone();
    let text = |member: &str| tool[member].as_str().unwrap().to_owned();
    ListedTool { state: text("state"), digest: text("digest") }
}

fn events(records: &[Record]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let event =
        |record: &&Record| (text(&record.payload["event"]), text(&record.payload["tools"][0]["tool"]));
    of_kind(records, "tools").iter().map(event).collect()
}

#[test]
fn a_changed_tool_is_denied_until_its_approval_and_both_are_on_the_log() {
    let catalogue = Catalogue::of([tool("echo", "says it"), tool("payments.send", "pays")]);
    let agent = Agent::new("one-under-whom-the-rug-is-pulled");
    let scene = Scene::built(catalogue.server(), |gateway| gateway.knowing(&agent));
    let mut client = scene.running.modern();
    agent.commit(&mut client);
    agent.call(&mut client, "echo", json!({})).must_be_served();
    let good = listed(&scene.gateway, "echo");
    assert_eq!(good.state, "first_use");

    catalogue.set_pages(vec![vec![tool("echo", "says it, and more"), tool("payments.send", "pays")]]);
    let shown = list(&mut client);
    assert_eq!(described(&shown, "echo")["description"], "says it, and more", "clients may look");
    agent.call(&mut client, "echo", json!({})).must_be_denied("tool_changed");
    agent.call(&mut client, "payments.send", json!({})).must_be_served();
    let evil = listed(&scene.gateway, "echo");
    assert_eq!(evil.state, "changed");
    assert_ne!(evil.digest, good.digest);

    catalogue.set_pages(vec![vec![tool("payments.send", "pays")]]);
    list(&mut client);
    catalogue.set_pages(vec![vec![tool("echo", "says it"), tool("payments.send", "pays")]]);
    list(&mut client);
    agent.call(&mut client, "echo", json!({})).must_be_denied("tool_changed");
    agent.call(&mut client, "payments.send", json!({})).must_be_served();

    let moved = scene.gateway.tabellion(&[
        "gateway",
        "tools",
        "approve",
        "/mcp",
        "echo",
        "--digest",
        &evil.digest,
        "--config",
        "gateway.toml",
    ]);
    assert_eq!(moved.code, Some(10), "it says something else than what was looked at: {moved}");
    let approved = tools(&scene.gateway, &["approve", "/mcp", "echo", "--digest", &good.digest]);
    assert_eq!(approved["approved"][0]["state"], "approved");
    agent.call(&mut client, "echo", json!({})).must_be_served();
    assert_eq!(scene.upstream.calls(), 4);

    // One commitment, six calls, four outcomes, one change, one approval.
    let records = scene.records(13);
    must_be_whole(&records);
    assert_eq!(events(&records), [("changed".into(), "echo".into()), ("approved".into(), "echo".into())]);
    let changed = &of_kind(&records, "tools")[0].payload;
    assert_eq!(changed["tools"], json!([{ "tool": "echo", "was": good.digest, "is": evil.digest }]));
    assert_eq!(changed["route"], "/mcp");
    scene.running.stop();
    let replayed =
        scene.gateway.tabellion(&["gateway", "replay", "--config", "gateway.toml", &agent.session]);
    assert_eq!(replayed.code, Some(0), "{replayed}");
}

#[test]
fn a_tool_is_the_same_in_both_revisions_of_mcp() {
    let upstream = McpServer::scripted(|seen, wire| {
        let is_list = seen.rpc() == "tools/list";
        if is_list {
            let mut echo = tool("echo", "says it");
            if !seen.is_modern() {
                echo["execution"] = json!({ "taskSupport": "optional" });
            }
            let result =
                json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [echo] });
            wire.result(seen, &result.to_string());
        }
        is_list
    });
    let gateway =
        Gateway::before(&upstream.url()).route("without_vap = \"restricted\"\nrestricted = [\"echo\"]");
    let running = gateway.start();
    let (mut older, mut newer) = (running.in_session(), running.modern());
    for is_newer in [false, true, false] {
        let client = if is_newer { &mut newer } else { &mut older };
        list(client).must_succeed();
        client.call("echo", json!({}), json!({})).must_succeed();
    }
    assert_eq!(upstream.calls(), 3);
    running.stop();
}

#[test]
fn an_approved_tool_is_served_until_its_next_change() {
    for evidence in ["", &format!("evidence = \"{}\"", Database::postgres().url())] {
        let catalogue = Catalogue::of([tool("echo", "one")]);
        let guarded = Guarded::built(catalogue.server(), |gateway| gateway.top(evidence));
        let Guarded { agent, gateway, running, .. } = guarded;
        let mut client = running.in_session();
        agent.commit(&mut client);
        catalogue.set_pages(vec![vec![tool("echo", "two")]]);
        list(&mut client);
        agent.call(&mut client, "echo", json!({})).must_be_denied("tool_changed");
        running.stop();
        let running = gateway.start();
        let mut client = running.modern();
        let agent = agent.also_in("one-after-the-restart");
        agent.commit(&mut client);
        agent.call(&mut client, "echo", json!({})).must_be_denied("tool_changed");
        running.stop();
        assert_eq!(tools(&gateway, &["approve", "--all"])["approved"].as_array().unwrap().len(), 1);
        assert_eq!(tools(&gateway, &["approve", "--all"])["approved"], json!([]), "once is enough");
        let running = gateway.start();
        let mut client = running.modern();
        agent.call(&mut client, "echo", json!({})).must_be_served();
        list(&mut client);
        agent.call(&mut client, "echo", json!({})).must_be_served();
        catalogue.set_pages(vec![vec![tool("echo", "one")]]);
        list(&mut client);
        agent.call(&mut client, "echo", json!({})).must_be_denied("tool_changed");
        running.stop();
    }
}

#[test]
fn a_tool_needs_an_operators_approval_where_the_route_demands_it() {
    let catalogue = Catalogue::of([tool("echo", "one"), tool("payments.send", "pays")]);
    let guarded = Guarded::built(catalogue.server(), |gateway| gateway.route("tool_pins = \"approved\""));
    let (agent, mut client) = (&guarded.agent, guarded.running.in_session());
    let missing = guarded.gateway.tabellion(&["gateway", "tools", "approve", "/mcp", "echo"]);
    assert_eq!(missing.code, Some(5), "{missing}");
    agent.commit(&mut client);
    agent.call(&mut client, "echo", json!({})).must_be_denied("tool_not_approved");
    assert_eq!(listed(&guarded.gateway, "echo").state, "waiting");
    tools(&guarded.gateway, &["approve", "/mcp", "echo"]);
    agent.call(&mut client, "echo", json!({})).must_be_served();
    agent.call(&mut client, "payments.send", json!({})).must_be_denied("tool_not_approved");
    assert_eq!(guarded.upstream.calls(), 1);
}

#[test]
fn the_first_list_pins_a_tool_that_was_called_before() {
    let catalogue = Catalogue::of([tool("echo", "one")]);
    let guarded = Guarded::built(catalogue.server(), |gateway| {
        gateway.route("without_vap = \"restricted\"\nrestricted = [\"echo\"]")
    });
    let mut client = guarded.running.modern();
    let served = |response: McpAnswer| assert_eq!(response.must_succeed().verdict().word(), "downgraded");
    served(client.call("echo", json!({}), json!({})));
    list(&mut client);
    served(client.call("echo", json!({}), json!({})));
    catalogue.set_pages(vec![vec![tool("echo", "two")]]);
    list(&mut client);
    client.call("echo", json!({}), json!({})).must_be_denied("tool_changed");
}

#[test]
fn in_advisory_mode_a_changed_tool_is_called_and_recorded_as_denied() {
    let catalogue = Catalogue::of([tool("echo", "one")]);
    let scene = Scene::new(catalogue.server(), "without_vap = \"advisory\"");
    let mut client = scene.running.in_session();
    list(&mut client);
    let answer = client.call("echo", json!({}), json!({}));
    assert!(answer.must_succeed().result()["_meta"].is_null());
    catalogue.set_pages(vec![vec![tool("echo", "two")]]);
    list(&mut client);
    client.call("echo", json!({}), json!({})).must_succeed();
    let records = scene.records(5);
    // As the stream counts them: the log takes what comes together in any order.
    let mut decisions = of_kind(&records, "decision");
    decisions.sort_by_key(|record| record.payload["seq"].as_u64());
    let advised: Vec<_> = decisions.iter().map(|record| record.payload["advised"].clone()).collect();
    assert_eq!(
        advised,
        [json!({ "verdict": "served" }), json!({ "verdict": "denied", "reason": "tool_changed" })]
    );
    assert_eq!(events(&records), [("changed".into(), "echo".into())]);
}

#[test]
fn tools_are_pinned_on_every_page_unless_pins_are_off() {
    let pages = |second: &str| vec![vec![tool("payments.send", "pays")], vec![tool("echo", second)]];
    for (route, reason) in [("", Some("tool_changed")), ("tool_pins = \"off\"", None)] {
        let catalogue = Catalogue::default();
        catalogue.set_pages(pages("one"));
        let guarded = Guarded::built(catalogue.server(), |gateway| gateway.route(route));
        let (agent, mut client) = (&guarded.agent, guarded.running.modern());
        agent.commit(&mut client);
        for words in ["one", "two"] {
            catalogue.set_pages(pages(words));
            let first = list(&mut client);
            let cursor = first.result()["nextCursor"].clone();
            let second = client.request("tools/list", json!({ "cursor": cursor }));
            assert_eq!(described(&second, "echo")["description"], words);
        }
        let response = agent.call(&mut client, "echo", json!({}));
        match reason {
            Some(reason) => drop(response.must_be_denied(reason)),
            None => drop(response.must_be_served()),
        }
        agent.call(&mut client, "payments.send", json!({})).must_be_served();
    }
}

#[test]
fn each_server_behind_an_endpoint_is_pinned_under_its_prefix() {
    let (one, other) = (Catalogue::of([tool("echo", "one")]), Catalogue::of([tool("echo", "one")]));
    let (first, second) = (one.server(), other.server());
    let server =
        |prefix: &str, url: &str| format!("[[route.server]]\nprefix = \"{prefix}\"\nupstream = \"{url}\"\n");
    let agent = Agent::new("one-with-several-servers");
    let route = format!("{}{}", server("a", &first.url()), server("b", &second.url()));
    let gateway = Gateway::routed(&route).knowing(&agent);
    let running = gateway.start();
    let mut client = running.modern();
    agent.commit_to(&mut client, json!({ "scope": { "tools_allow": ["*"] } }));
    other.set_pages(vec![vec![tool("echo", "two")]]);
    list(&mut client);
    agent.call(&mut client, "a__echo", json!({})).must_be_served();
    agent.call(&mut client, "b__echo", json!({})).must_be_denied("tool_changed");
    assert_eq!((first.calls(), second.calls()), (1, 0));
}

#[test]
fn an_ambiguous_list_of_tools_is_refused() {
    let upstream = McpServer::scripted(|seen, wire| {
        let list = seen.rpc() == "tools/list";
        if list {
            let tool = r#"{"name":"echo","description":"good","description":"evil","inputSchema":{"type":"object"}}"#;
            wire.result(seen, &format!(r#"{{"tools":[{tool}]}}"#));
        }
        list
    });
    let guarded = Guarded::built(upstream, |gateway| gateway);
    let mut client = guarded.running.in_session();
    let response = list(&mut client);
    assert_eq!(response.error(), -32603);
    assert!(!response.message.to_string().contains("evil"), "{response:#?}");
}

#[test]
fn a_server_on_the_public_sdk_that_changes_its_tool_is_denied() {
    let agent = Agent::new("one-with-a-server-of-python");
    let gateway = Gateway::before_command(&rug_pull_over_stdio()).knowing(&agent);
    let running = gateway.start();
    let mut client = running.in_session();
    let mut notifications = client.listen(None);
    let response = agent.commit_to(&mut client, json!({ "scope": { "tools_allow": ["send"] } }));
    assert_eq!(described(&response, "send")["description"], "Sends money.");
    assert_eq!(notifications.message().unwrap()["method"], "notifications/tools/list_changed");
    agent.call(&mut client, "send", json!({ "to": "bob", "amount": 5 })).must_be_served();
    let misfit = agent.call(&mut client, "send", json!({ "to": "bob", "amount": 500 }));
    misfit.must_be_denied("arguments_invalid");
    let shown = list(&mut client);
    assert!(described(&shown, "send")["description"].as_str().unwrap().contains("backup.example"));
    agent.call(&mut client, "send", json!({ "to": "bob", "amount": 5 })).must_be_denied("tool_changed");
    running.stop();
}

#[test]
fn arguments_outside_the_schema_are_denied_naming_only_their_place() {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string", "pattern": "^/tmp/" }, "lines": { "type": "array", "items": { "type": "integer" } } },
        "required": ["path"],
        "additionalProperties": false,
    });
    let catalogue = Catalogue::of([with_schema("echo", schema)]);
    let guarded = Guarded::built(catalogue.server(), |gateway| gateway);
    guarded.in_both_eras(|agent, client| {
        agent.commit(client);
        for (arguments, place) in [
            (json!({}), "required at \"\""),
            (json!({ "path": "/etc/secret-of-mine" }), "pattern at \"/path\""),
            (json!({ "path": "/tmp/a", "lines": [1, "secret-of-mine"] }), "type at \"/lines/1\""),
            (json!({ "path": "/tmp/a", "Path": "secret-of-mine" }), "additionalProperties at \"\""),
        ] {
            let response = agent.call(client, "echo", arguments);
            response.must_be_denied("arguments_invalid");
            let words = response.result()["content"][0]["text"].as_str().unwrap();
            assert!(words.contains(place) && !words.contains("secret"), "{words}");
        }
        agent.call(client, "echo", json!({ "path": "/tmp/a", "lines": [1] })).must_be_served();
    });
    assert_eq!(guarded.upstream.calls(), 2);
    let explained = |arguments: &str| {
        let arguments =
            ["gateway", "explain", "--config", "gateway.toml", "--tool", "echo", "--arguments", arguments];
        let session = format!("{}-older", guarded.agent.session);
        let ran = guarded.gateway.tabellion(&[&arguments[..], &["--session", &session, "--json"]].concat());
        ran.json()["decided"]["reason"].clone()
    };
    assert_eq!(explained("{}"), "arguments_invalid");
    assert_eq!(explained("{\"path\":\"/tmp/a\"}"), Value::Null);
}

#[test]
fn arguments_are_checked_unless_the_operator_turns_it_off() {
    let schema = json!({ "type": "object", "required": ["path"] });
    let catalogue = Catalogue::of([with_schema("echo", schema)]);
    let guarded = Guarded::built(catalogue.server(), |gateway| gateway.route("check_arguments = false"));
    let mut client = guarded.running.modern();
    guarded.agent.commit(&mut client);
    guarded.agent.call(&mut client, "echo", json!({})).must_be_served();
}

/// Schemas of a server that wants the gateway to ask around, to be kept busy, or to end.
fn hostile_schemas(elsewhere: &str) -> Vec<(&'static str, Value)> {
    let mut doubling = json!({});
    for level in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        doubling[format!("d{level}")] = json!({ "anyOf": [next.clone(), next] });
    }
    doubling["d60"] = json!({ "type": "object" });
    vec![
        ("outside", json!({ "$ref": elsewhere })),
        ("file", json!({ "$ref": "file:///etc/passwd" })),
        ("base", json!({ "properties": { "a": { "$id": elsewhere, "$ref": "x" } } })),
        ("dialect", json!({ "$schema": elsewhere })),
        ("itself", json!({ "$ref": "#" })),
        ("doubling", json!({ "$ref": "#/$defs/d0", "$defs": doubling })),
        ("backtracking", json!({ "properties": { "a": { "pattern": "(?=x)^(a|aa)+$" } } })),
        ("long", json!({ "description": "x".repeat(100_000) })),
        ("none", json!([])),
    ]
}

#[test]
fn a_hostile_schema_denies_only_its_own_tool() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let elsewhere = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let hostile = hostile_schemas(&elsewhere);
    let listed = hostile.iter().map(|(name, schema)| with_schema(name, schema.clone()));
    let catalogue = Catalogue::of(listed.chain([tool("echo", "says it")]));
    let guarded = Guarded::built(catalogue.server(), |gateway| gateway);
    let (agent, mut client) = (&guarded.agent, guarded.running.in_session());
    agent.commit_to(&mut client, json!({ "scope": { "tools_allow": ["*"] } }));
    for (name, _) in &hostile {
        let begun = Instant::now();
        let response = agent.call(&mut client, name, json!({ "a": "a".repeat(50_000) }));
        response.must_be_denied("tool_schema_unusable");
        assert!(begun.elapsed() < SOON, "{name} took {:?}", begun.elapsed());
    }
    agent.call(&mut client, "echo", json!({})).must_be_served();
    assert_eq!(guarded.upstream.calls(), 1);
    assert!(listener.accept().is_err(), "nobody asked for a schema");
}
