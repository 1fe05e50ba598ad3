//! `tabellion gateway` and `tabellion verdict` from the command line: what they find, in words and in exit codes.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use black_box::cli::{Dev, Folder};
use black_box::{Agent, Connection, Log, McpAnswer, McpClient, OwnedChild, free_address, until};
use serde_json::{Value, json};
use testkit::McpServer;

/// How long a record may take to the log.
const SOON: Duration = Duration::from_secs(60);

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
    let text =
        config("http://127.0.0.1:9", &RULE.replace("\"deny\"", "\"maybe\"")).replace("\"/mcp\"", "\"mcp\"");
    folder.write("gateway.toml", text);
    let told = folder.run(&["gateway", "check"]).must_end_with(2).stderr.clone();
    assert!(told.contains("route.path") && told.contains("line 16  rule.then"), "{told}");
    folder.run(&["gateway", "check", "--config", "none.toml"]).must_end_with(5);
}

#[test]
fn a_check_names_every_setting_that_is_within_others_reach() {
    let folder = Folder::new();
    folder.write("token", "a token of ours");
    let set_mode = |mode| {
        std::fs::set_permissions(folder.path("token"), std::fs::Permissions::from_mode(mode))
            .expect("our own file");
    };
    let warned = |text: &str| -> Vec<String> {
        folder.write("gateway.toml", text);
        let told = folder.run(&["gateway", "check", "--offline", "--json"]).must_end_with(0).json();
        let warnings = told["warnings"].as_array().expect("a list").iter();
        warnings.map(|warning| warning["key"].as_str().expect("a setting").to_owned()).collect()
    };
    let sound = config("http://127.0.0.1:9", "without_vap = \"advisory\"\nupstream_token_file = \"token\"\n");
    set_mode(0o600);
    assert_eq!(warned(&sound), [""; 0]);
    let open = sound
        .replace("listen = \"127.0.0.1:0\"", "listen = \"0.0.0.0:7400\"\nadmin_listen = \"0.0.0.0:7401\"");
    assert_eq!(warned(&open), ["listen", "admin_listen", "route.without_vap"]);
    let oauth = "[route.oauth]\nmode = \"gateway\"\nissuer = \"https://id.example\"\n";
    let keys = |url: &str| format!("{sound}{oauth}jwks_url = \"{url}\"\n");
    assert_eq!(warned(&keys("http://id.example/keys")), ["route.oauth.jwks_url"]);
    assert_eq!(warned(&keys("https://id.example/keys")), [""; 0]);
    let plain = sound.replace("http://127.0.0.1:9/mcp", "http://tools.example/mcp");
    assert_eq!(warned(&plain), ["upstream_token_file"]);
    let judge = "[judge]\nurl = \"http://judge.example/v1\"\nmodel = \"m\"\nkey_file = \"token\"\n";
    assert_eq!(warned(&format!("{sound}{judge}")), ["judge.key_file"]);
    assert_eq!(
        warned(&sound.replace("[keys]", "evidence = \"postgres://me:secret@db.example/gw\"\n[keys]")),
        ["evidence", "evidence"],
        "others may read the file with the password, and the server need not prove who it is"
    );
    set_mode(0o644);
    assert_eq!(warned(&sound), ["upstream_token_file"]);
    set_mode(0o666);
    folder.write("gateway.toml", &sound);
    for command in ["check", "run"] {
        let refused = folder.run(&["gateway", command]);
        assert!(refused.must_end_with(2).stderr.contains("upstream_token_file"), "{refused}");
    }
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
fn a_gateway_that_an_mcp_client_starts_as_a_command_prints_nothing_to_standard_output() {
    let dev = Dev::start();
    let listen = free_address();
    let file = |name: &str| std::fs::File::create(dev.folder.path(name)).expect("our own folder");
    let arguments = ["gateway", "run", "--dev", "--listen", &listen.to_string(), "--", "cat"];
    let mut command = dev.folder.command(&arguments);
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    let mut child = command.spawn().expect("the program starts");
    let said = |name: &str| String::from_utf8_lossy(&dev.folder.read(name)).into_owned();
    until(
        SOON,
        || format!("it does not serve: {}", said("err")),
        || (said("out") + &said("err")).contains("Gateway (dev)"),
    );
    child.kill().expect("our own child");
    child.wait().expect("it ended");
    assert_eq!(said("out"), "");
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

/// `tabellion gateway run --dev` beside a log that is tried out. Killed when dropped.
struct Tried {
    _child: OwnedChild,
    url: String,
}

impl Tried {
    fn beside(dev: &Dev, upstream: &McpServer) -> Self {
        let (server, listen) = (upstream.url(), free_address().to_string());
        let arguments = [
            "gateway",
            "run",
            "--dev",
            "--upstream",
            &server,
            "--log",
            dev.url(),
            "--listen",
            &listen,
            "--json",
        ];
        let mut command = dev.folder.command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("asked for")).read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "it did not start: {:?}", child.wait());
        Self { _child: OwnedChild(child), url: format!("http://{listen}") }
    }
}

/// What the log has under the name that a Verdict gives.
fn statement_of(dev: &Dev, told: &McpAnswer) -> Vec<u8> {
    let begun = Instant::now();
    loop {
        let path = format!("/v1/entries/{}/statement", told.verdict().entry());
        let answer = Connection::to(dev.url()).get(&path);
        if answer.status == 200 {
            return answer.body;
        }
        assert!(begun.elapsed() < SOON, "{path}: {}", answer.status);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn record_key(told: &McpAnswer) -> &str {
    told.result()["_meta"]["dev.tabellion/evidence"]["key"].as_str().expect("a key")
}

#[test]
fn what_a_gateway_that_is_tried_out_answers_is_proven_beside_it() {
    let dev = Dev::start();
    let upstream = McpServer::ordinary();
    let tried = Tried::beside(&dev, &upstream);
    let agent = Agent::new("one-that-is-tried-out");
    let mut client = McpClient::in_session(&format!("{}/mcp", tried.url));
    agent.commit(&mut client);
    let [served, denied] =
        ["echo", "files.delete"].map(|tool| agent.call(&mut client, tool, json!({ "n": 1 })));
    served.must_be_served();
    denied.must_be_denied("scope_escape");

    let folder = &dev.folder;
    folder.write("served.cose", statement_of(&dev, &served));
    folder.write("denied.cose", statement_of(&dev, &denied));
    folder.write("served.json", served.verdict().0.to_string());
    let mut altered = denied.verdict().0;
    altered["verdict"] = "served".into();
    folder.write("altered.json", altered.to_string());
    folder.write("stranger.json", testkit::jwk_set_json().to_string());
    folder.write("jwks.json", folder.run(&["gateway", "jwks"]).must_end_with(0).text());
    let verify = |verdict: &str, jwks: &str, statement: &str, key: &str| {
        let evidence = ["--jwks", jwks, "--statement", statement, "--record-key", key];
        folder.run(&[&["verdict", "verify", verdict, "--json"], &evidence[..]].concat())
    };
    let told = verify("served.json", "jwks.json", "served.cose", record_key(&served)).must_end_with(0).json();
    assert!(
        told["checks"].as_array().expect("a list").iter().all(|check| check["outcome"] == "ok"),
        "{told}"
    );

    let others =
        verify("served.json", "jwks.json", "denied.cose", record_key(&denied)).must_end_with(3).json();
    assert_eq!(outcome(&others, "statement"), "failed");
    let key = verify("served.json", "jwks.json", "served.cose", record_key(&denied)).must_end_with(3).json();
    assert_eq!(outcome(&key, "commitment"), "failed");
    let altered =
        verify("altered.json", "jwks.json", "denied.cose", record_key(&denied)).must_end_with(3).json();
    assert_eq!((outcome(&altered, "signature"), outcome(&altered, "commitment")), ("failed", "failed"));
    let stranger =
        verify("served.json", "stranger.json", "served.cose", record_key(&served)).must_end_with(4).json();
    assert_eq!(outcome(&stranger, "signature"), "not_checked");

    // The evidence is open in another process, and only looked at.
    let again = folder.run(&["gateway", "replay", &agent.session, "--json"]).must_end_with(0).json();
    assert_eq!(again["differences"], 0);
    let asked = ["gateway", "explain", "--session", &agent.session, "--tool", "files.delete", "--json"];
    assert_eq!(folder.run(&asked).must_end_with(0).json()["decided"]["reason"], "scope_escape");
    agent.call(&mut client, "echo", json!({})).must_be_served();
    assert_eq!(folder.run(&["gateway", "replay", "nobody", "--json"]).must_end_with(5).error(), "no-session");
}

#[test]
fn an_operator_lists_the_keys_in_the_log_s_policy_before_the_first_start() {
    let folder = Folder::new();
    let log = Log::sqlite();
    folder.write("gateway.toml", config("http://127.0.0.1:9", "").replace("evidence = ", "# "));
    let told = folder.run(&["gateway", "keys", "--json"]).must_end_with(0).json();
    let made = |name: &str| {
        told["made"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|path| path.as_str().is_some_and(|path| path.ends_with(name)))
    };
    assert!(made("evidence.key") && made("verdict.key") && made("state.key"), "{told}");
    // The same again, in words; and that is what is pasted.
    let words = folder.run(&["gateway", "keys"]).must_end_with(0).text();
    assert!(words.contains(told["policy"].as_str().expect("TOML")), "{words}");
    folder.run(&["gateway", "jwks"]).must_end_with(0);
    // This policy has the types already, for every issuer that it lists.
    let (issuer, _) = words.split_once("# Where").expect("the types, apart");
    let policy = format!("{}\n{issuer}", testkit::policy_toml());
    folder.write("policy.toml", &policy);
    folder.run(&["policy", "validate", "policy.toml"]).must_end_with(0);
    log.set_policy(&policy);
    let service = log.serve();
    let text = String::from_utf8(folder.read("gateway.toml")).expect("text");
    folder.write("gateway.toml", text.replace("http://127.0.0.1:9\"", &format!("{}\"", service.url())));
    let checked = folder.run(&["gateway", "check", "--json"]).must_end_with(4).json();
    assert_eq!((outcome(&checked, "log takes audit"), outcome(&checked, "log takes key")), ("ok", "ok"));
}
