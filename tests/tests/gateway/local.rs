//! Clients that start their servers themselves: `gateway wrap` puts these behind `gateway stdio`, and each session has the
//! operator's commitment, without a change to client or server.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use black_box::cli::Dev;
use black_box::{Gateway, run_python_on};
use serde_json::{Value, json};

/// How long a record may take to the log.
const SOON: Duration = Duration::from_secs(60);

const CALL: [&str; 3] = ["UTC", "12:00", "Asia/Tokyo"];

fn call() -> Value {
    let [source, time, target] = CALL;
    json!([["convert_time", { "source_timezone": source, "time": time, "target_timezone": target }]])
}

/// The command line of a server in a client's configuration.
fn command_of(config: &Value, server: &str) -> Vec<String> {
    let entry = &config["mcpServers"][server];
    let args = entry["args"].as_array().cloned().unwrap_or_default();
    std::iter::once(&entry["command"]).chain(&args).map(|part| part.as_str().unwrap().to_owned()).collect()
}

/// Runs the Python SDK as a client of this server, and returns the results of its last calls.
fn results(command: &[String], calls: &Value) -> Vec<Value> {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let transcript = run_python_on("mcp_client.py", &[&["auto"][..], &command].concat(), calls);
    let results = transcript["results"].as_array().unwrap();
    results[results.len() - calls.as_array().unwrap().len()..].to_vec()
}

/// The entries that the log finds by this term, once they are enough. Until then the wrapped server is started again: what a
/// process could not deliver before its client ended it, the next one delivers.
fn found_until(
    dev: &Dev,
    [option, term]: [&str; 2],
    server: &[String],
    are_enough: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let answer = dev.folder.run(&["entry", "search", option, term, "--json"]).must_end_with(0).json();
        let entries = answer["entries"].as_array().unwrap().clone();
        if are_enough(&entries) {
            return entries;
        }
        results(server, &json!([]));
        assert!(begun.elapsed() < SOON, "{answer}");
    }
}

#[test]
fn an_advisory_wrap_keeps_answers_and_records_the_advice() {
    let dev = Dev::start();
    let server = black_box::python_server("mcp_server_time");
    let client = json!({ "mcpServers": { "time": { "command": server[0], "args": server[1..] } } });
    dev.folder.write("mcp.json", client.to_string());
    let wrap = ["gateway", "wrap", "mcp.json", "--dev", "--state", "state", "--advisory", "--json"];
    assert_eq!(dev.folder.run(&wrap).must_end_with(0).json()["wrapped"], json!(["time"]));
    let wrapped: Value = serde_json::from_slice(&dev.folder.read("mcp.json")).unwrap();
    let command = command_of(&wrapped, "time");
    let [direct, through] = [&server, &command].map(|command| results(command, &call()));
    assert_eq!(through[0]["content"], direct[0]["content"]);

    let is_decision = |entry: &Value| entry["facts"]["kind"] == "decision";
    let found =
        found_until(&dev, ["--tool", "convert_time"], &command, |found| found.iter().any(is_decision));
    let decision = found.iter().find(|entry| is_decision(entry)).unwrap();
    assert_eq!(decision["facts"]["verdict"], "served", "{decision}");
    assert_eq!(decision["facts"]["advised_verdict"], "served", "{decision}");
    assert!(decision["sub"].as_str().unwrap().starts_with("unbound:"), "no session is open: {decision}");
}

#[test]
fn a_wrapped_server_works_as_before_and_its_calls_are_on_the_log() {
    let dev = Dev::start();
    let server = black_box::python_server("mcp_server_time");
    let original = json!({
        "theme": "dark",
        "mcpServers": {
            "time": { "command": server[0], "args": server[1..], "env": { "TZ": "UTC" } },
            "web": { "url": "https://mcp.example/mcp" },
        },
    });
    dev.folder.write("mcp.json", serde_json::to_string_pretty(&original).unwrap());
    let wrap = ["gateway", "wrap", "mcp.json", "--dev", "--state", "state", "--json"];
    let answer = dev.folder.run(&wrap).must_end_with(0).json();
    assert_eq!((&answer["wrapped"], &answer["left"]), (&json!(["time"]), &json!(["web"])));
    let wrapped: Value = serde_json::from_slice(&dev.folder.read("mcp.json")).unwrap();
    assert_eq!(
        (&wrapped["theme"], &wrapped["mcpServers"]["web"]),
        (&original["theme"], &original["mcpServers"]["web"])
    );
    assert_eq!(wrapped["mcpServers"]["time"]["env"], original["mcpServers"]["time"]["env"]);
    assert_eq!(dev.folder.run(&wrap).must_end_with(0).json()["wrapped"], json!([]), "once is enough");

    let direct = results(&server, &call());
    let through = results(&command_of(&wrapped, "time"), &call());
    assert_eq!(through[0]["content"], direct[0]["content"]);

    let found = found_until(&dev, ["--by", "agent=mcp-client"], &command_of(&wrapped, "time"), |found| {
        found.len() >= 2
    });
    let subject = found[0]["sub"].as_str().unwrap();
    assert!(subject.starts_with("operator:"), "{found:?}");
    // The subject is the session, and a search for it finds the call with its outcome.
    let kinds =
        |found: &[Value]| found.iter().map(|entry| entry["facts"]["kind"].clone()).collect::<Vec<_>>();
    let of_session = found_until(&dev, ["--session", subject], &command_of(&wrapped, "time"), |found| {
        kinds(found).contains(&json!("outcome"))
    });
    assert!(of_session.iter().all(|entry| entry["sub"] == subject), "{of_session:?}");
    for kind in ["commitment", "decision", "outcome"] {
        assert!(kinds(&of_session).contains(&json!(kind)), "{kind}: {of_session:?}");
    }
    let decision = of_session.iter().find(|entry| entry["facts"]["kind"] == "decision").unwrap();
    assert_eq!(decision["facts"]["tool"], "convert_time", "{decision}");
    dev.folder.run(&["bundle", subject, "-o", "session.bundle"]).must_end_with(0);
    dev.folder.run(&["verify", "session.bundle"]).must_end_with(0);

    dev.folder.run(&["gateway", "wrap", "mcp.json", "--undo"]).must_end_with(0);
    let restored: Value = serde_json::from_slice(&dev.folder.read("mcp.json")).unwrap();
    assert_eq!(restored, original);
}

#[test]
fn the_operators_commitment_bounds_a_client_without_vap() {
    let gateway = Gateway::before_command(&black_box::python_server("mcp_server_time")).route(
        "without_vap = \"commitment\"\n[route.commitment]\ngoal = \"the time\"\nmax_calls = 1\n\
         tools_deny = [\"get_*\"]",
    );
    let denied = json!([["get_current_time", { "timezone": "UTC" }]]);
    let calls = json!([call()[0], denied[0], call()[0]]);
    let answer = results(&gateway.stdio_command(), &calls);
    let reason = |result: &Value| result["_meta"]["vap"]["verification"]["reason"].clone();
    assert_eq!(answer[0]["isError"], false, "{answer:?}");
    assert_eq!((&answer[1]["isError"], reason(&answer[1])), (&json!(true), json!("scope_escape")));
    assert_eq!((&answer[2]["isError"], reason(&answer[2])), (&json!(true), json!("budget_exceeded")));
}

#[test]
fn processes_that_a_client_starts_side_by_side_keep_their_evidence_apart() {
    let gateway = Gateway::before_command(&black_box::python_server("mcp_server_time"))
        .route("without_vap = \"advisory\"");
    let command = gateway.stdio_command();
    let start = || {
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        child.spawn().unwrap()
    };
    let folders = || std::fs::read_dir(gateway.path("gw/local")).map_or(0, Iterator::count);
    let (mut first, second) = (start(), start());
    let begun = Instant::now();
    while folders() < 2 {
        assert!(begun.elapsed() < SOON, "the processes start");
        std::thread::yield_now();
    }
    let answer = results(&command, &call());
    assert_eq!(answer[0]["isError"], false, "{answer:?}");
    assert_eq!(folders(), 3);
    // The end of the input is the end of the process, and its folder is free again.
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    assert!(second.wait_with_output().unwrap().status.success());
    results(&command, &call());
    assert_eq!(folders(), 3);
}

#[test]
fn a_line_that_is_no_message_gets_an_error_and_the_next_one_an_answer() {
    let gateway = Gateway::before_command(&black_box::python_server("mcp_server_time"))
        .route("without_vap = \"advisory\"");
    let command = gateway.stdio_command();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "no json\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n";
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((&answers[0]["error"]["code"], &answers[0]["id"]), (&json!(-32700), &Value::Null));
    assert_eq!(answers[1]["id"], 7, "{answers:?}");
}

#[test]
fn a_wrap_or_undo_that_fails_leaves_the_file_unchanged() {
    let folder = black_box::cli::Folder::new();
    folder.write("mcp.json", "{ \"mcpServers\": { \"a\": { \"command\": \"a\" } } }");
    for (arguments, exit) in [
        (&["gateway", "wrap", "mcp.json"][..], 2),
        (&["gateway", "wrap", "mcp.json", "--dev"], 5),
        (&["gateway", "wrap", "none.json", "--dev"], 5),
    ] {
        folder.run(arguments).must_end_with(exit);
    }
    folder.run(&["gateway", "wrap", "mcp.json", "--undo"]).must_end_with(0);
    assert_eq!(folder.read("mcp.json"), b"{ \"mcpServers\": { \"a\": { \"command\": \"a\" } } }");
    folder.write("mcp.json", "// a comment\n{}");
    let answer = folder.run(&["gateway", "wrap", "mcp.json", "--dev"]);
    assert!(answer.must_end_with(2).stderr.contains("[client-config]"), "{answer}");
}
