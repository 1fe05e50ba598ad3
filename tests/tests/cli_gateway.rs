//! `tabellion gateway` and `tabellion verdict` from the command line: what they find, in words and in exit codes.

mod cli_support;

use cli_support::{Dev, Folder};
use serde_json::{Value, json};

/// A configuration for the log of a folder, with the key that it trusts.
fn config(log: &str, more: &str) -> String {
    format!(
        "issuer = \"https://gateway.dev.tabellion.example\"\nlisten = \"127.0.0.1:0\"\nstate = \"gw\"\n\
         public_url = \"https://gw.example\"\n[keys]\nevidence = \"tabellion-dev/gateway.key\"\n\
         [log]\nurl = \"{log}\"\n[[route]]\npath = \"/mcp\"\nupstream = \"http://127.0.0.1:9/mcp\"\n{more}"
    )
}

fn outcome<'a>(checks: &'a Value, what: &str) -> &'a str {
    let all = checks["checks"].as_array().expect("a list");
    let check = all.iter().find(|check| check["what"].as_str().is_some_and(|name| name.starts_with(what)));
    check.unwrap_or_else(|| panic!("no check {what}: {checks}"))["outcome"].as_str().expect("a word")
}

const RULE: &str = "[[route.rule]]\nname = \"large\"\ntool = \"pay\"\nwhen = \"input.arguments.amount > 1000\"\nthen = \"deny\"\n";

#[test]
fn every_mistake_of_a_configuration_is_told_with_its_line() {
    let folder = Folder::new();
    folder.write(
        "gateway.toml",
        config("http://127.0.0.1:9", "without_vap = \"maybe\"\nceiling = { max_calls = 0 }\n"),
    );
    let refused = folder.run(&["gateway", "check"]);
    let told = &refused.must_end_with(2).stderr;
    assert!(told.contains("[gateway-config]"), "{refused}");
    assert!(told.contains("line 12") && told.contains("without_vap"), "{refused}");
    assert!(told.contains("line 13") && told.contains("max_calls"), "{refused}");
    assert_eq!(folder.run(&["gateway", "check", "--json"]).error(), "gateway-config");
    folder.run(&["gateway", "check", "--config", "none.toml"]).must_end_with(5);
}

#[test]
fn a_check_asks_the_log_and_the_servers_and_registers_nothing() {
    let dev = Dev::start();
    dev.folder.write("gateway.toml", config(dev.url(), ""));
    let before = dev.folder.run(&["entry", "search", "--json"]).text();
    // The server does not answer: not checked is neither good nor bad.
    let told = dev.folder.run(&["gateway", "check", "--json"]);
    let told = told.must_end_with(4).json();
    assert_eq!((outcome(&told, "log takes audit"), outcome(&told, "server")), ("ok", "not_checked"));
    assert!(told["policies"][0]["digest"].as_str().expect("a digest").starts_with("sha256:"));

    dev.folder.run(&["issuer", "new", "-o", "stranger.key", "--alg", "EdDSA"]).must_end_with(0);
    let stranger = config(dev.url(), "").replace("tabellion-dev/gateway.key", "stranger.key");
    dev.folder.write("stranger.toml", stranger);
    let told = dev.folder.run(&["gateway", "check", "--config", "stranger.toml", "--json"]);
    assert_eq!(outcome(&told.must_end_with(3).json(), "log takes audit"), "failed");
    assert_eq!(dev.folder.run(&["entry", "search", "--json"]).text(), before);
    assert!(!dev.folder.has("gw"));
}

#[test]
fn a_call_is_explained_from_a_commitment_alone() {
    let folder = Folder::new();
    folder.write("gateway.toml", config("http://127.0.0.1:9", RULE));
    let commitment = json!({
        "vap": "0.1", "type": "scope_commitment", "session_id": "s-1", "goal": "a goal",
        "principal": { "agent_id": "did:example:a" }, "scope": { "tools_allow": ["pay"] }, "budget": { "max_calls": 3 },
    });
    folder.write("commitment.json", commitment.to_string());
    let explain = |tool: &str, arguments: &str| {
        let asked = [
            "gateway",
            "explain",
            "--commitment",
            "commitment.json",
            "--tool",
            tool,
            "--arguments",
            arguments,
            "--json",
        ];
        folder.run(&asked).must_end_with(0).json()["decided"].clone()
    };
    assert_eq!(explain("pay", "{\"amount\":10}")["verdict"], "served");
    assert_eq!(explain("pay", "{\"amount\":1200}")["reason"], "policy:large");
    assert_eq!(explain("delete", "{}")["reason"], "scope_escape");
    let unaware = folder.run(&["gateway", "explain", "--tool", "pay", "--json"]).json();
    assert_eq!(unaware["decided"]["reason"], "no_envelope");
    folder.run(&["gateway", "explain", "--tool", "pay", "--arguments", "[]"]).must_end_with(2);
    folder.write("commitment.json", commitment.to_string().replace("\"max_calls\":3", ""));
    let denied =
        folder.run(&["gateway", "explain", "--commitment", "commitment.json", "--tool", "pay", "--json"]);
    assert_eq!(denied.must_end_with(6).error(), "commitment-denied");
}

#[test]
fn what_is_not_there_is_not_found() {
    let folder = Folder::new();
    folder.run(&["gateway", "jwks", "--state", "nowhere"]).must_end_with(5);
    folder.run(&["gateway", "run", "--dev", "--upstream", "http://127.0.0.1:9/mcp"]).must_end_with(5);
    folder.run(&["gateway", "run"]).must_end_with(5);
    folder.write("answer.json", "{\"result\":{}}");
    folder.run(&["verdict", "show", "answer.json"]).must_end_with(4);
}

#[test]
fn a_verdict_is_read_and_checked_without_asking_anybody() {
    let folder = Folder::new();
    let verdict = testkit::signed_verdict_json(&testkit::verdict_json());
    folder.write(
        "answer.json",
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "_meta": { "vap": verdict } } }).to_string(),
    );
    let shown = folder.run(&["verdict", "show", "answer.json", "--json"]).must_end_with(0).json();
    assert_eq!(shown["verdict"], verdict);
    // Without keys nothing is proven, and that is not success.
    folder.run(&["verdict", "verify", "answer.json"]).must_end_with(4);
    folder.write("jwks.json", testkit::jwk_set_json().to_string());
    let verify = |file: &str| folder.run(&["verdict", "verify", "--jwks", "jwks.json", file, "--json"]);
    let told = verify("answer.json").must_end_with(0).json();
    assert_eq!((&told["verified"], outcome(&told, "statement")), (&json!(true), "not_checked"));
    let forged = String::from_utf8(folder.read("answer.json")).expect("text").replace("served", "denied");
    folder.write("forged.json", forged);
    assert_eq!(outcome(&verify("forged.json").must_end_with(3).json(), "signature"), "failed");
}
