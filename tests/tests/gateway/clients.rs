//! Clients and servers that none of us wrote, through the gateway and without it: what both hear is the same.

use std::process::Command;

use black_box::{Gateway, Other, run_node, run_python_on};
use serde_json::{Value, json};

/// What the clients do with the conformance fixture.
fn calls() -> Value {
    json!([
        ["test_simple_text", {}],
        ["test_image_content", {}],
        ["test_tool_with_progress", {}],
        ["test_tool_with_logging", {}],
        ["test_error_handling", {}],
        ["test_elicitation", { "message": "who?" }],
        ["test_elicitation_sep1034_defaults", {}],
        ["test_sampling", { "prompt": "say" }],
        ["test_reconnection", {}],
        ["test_input_required_result_multiple_inputs", {}],
        ["test_input_required_result_multi_round", {}],
        ["test_mirrored_header", { "region": "é" }],
        ["no_such_tool", {}],
    ])
}

/// A client in one of its modes, told where to go: a URL or a command line.
type Client = fn(&str, &[String], &Value) -> Value;

fn python(mode: &str, target: &[String], calls: &Value) -> Value {
    let target: Vec<&str> = target.iter().map(String::as_str).collect();
    run_python_on("mcp_client.py", &[&[mode][..], &target].concat(), calls)
}

fn typescript_v1(mode: &str, target: &[String], calls: &Value) -> Value {
    run_node("mcp_client.mjs", &["v1", mode, &target[0], &calls.to_string()])
}

fn typescript_v2(mode: &str, target: &[String], calls: &Value) -> Value {
    run_node("mcp_client.mjs", &["v2", mode, &target[0], &calls.to_string()])
}

/// The one thing that an unaware client may see of the gateway: that there is one.
fn without_our_capability(mut transcript: Value) -> Value {
    for (kind, name) in [("experimental", "vap"), ("extensions", "dev.tabellion/vap")] {
        let capabilities = transcript["capabilities"].as_object_mut().unwrap();
        if let Some(Value::Object(of_kind)) = capabilities.get_mut(kind) {
            assert!(of_kind.remove(name).is_some(), "the gateway says that it is there");
            if of_kind.is_empty() {
                capabilities.remove(kind);
            }
        }
    }
    transcript
}

/// Removes from a transcript what the server "everything" sends by a timer: it asks for the client's roots a while after the
/// start and logs them. Whether a client still listens then depends on the load of the machine.
fn without_timed_messages(mut transcript: Value) -> Value {
    let timed =
        |message: &Value| message[0] == "roots" || message[1]["data"].as_str().is_some_and(is_about_roots);
    if let Some(heard) = transcript["heard"].as_array_mut() {
        heard.retain(|message| !timed(message));
    }
    transcript
}

fn is_about_roots(text: &str) -> bool {
    text.starts_with("Roots updated: ")
}

#[track_caller]
fn must_be_the_same(direct: Value, through: Value, what: &str) {
    let (direct, through) = (direct.as_object().unwrap(), without_our_capability(through));
    assert!(direct["tools"]["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{what}: {direct:?}");
    for (name, value) in direct {
        let (Value::Array(values), Value::Array(others)) = (value, &through[name]) else {
            assert_eq!(&through[name], value, "{what}: {name}");
            continue;
        };
        assert_eq!(others.len(), values.len(), "{what}: {name}: {others:?}");
        for (value, other) in values.iter().zip(others) {
            assert_eq!(other, value, "{what}: {name}");
        }
    }
}

#[test]
fn the_public_sdks_see_no_difference_over_http() {
    let fixture = Other::fixture();
    let gateway = Gateway::before(&fixture.url).route("without_vap = \"advisory\"");
    let running = gateway.start();
    let clients: [(&str, Client, &[&str]); 3] = [
        ("python", python, &["legacy", "auto", "2026-07-28"]),
        ("typescript v1", typescript_v1, &["legacy"]),
        ("typescript v2", typescript_v2, &["legacy", "auto"]),
    ];
    for (name, client, modes) in clients {
        for mode in modes {
            let direct = client(mode, std::slice::from_ref(&fixture.url), &calls());
            let through = client(mode, &[running.url().to_owned()], &calls());
            must_be_the_same(direct, through, &format!("{name} {mode}"));
        }
    }
    running.stop();
}

#[test]
fn the_public_sdks_see_no_difference_before_an_older_server() {
    let server = Other::everything();
    let gateway = Gateway::before(&server.url).route("without_vap = \"advisory\"");
    let running = gateway.start();
    let calls = json!([["echo", { "message": "\u{1f600}\u{2028}" }], ["get-sum", { "a": 1, "b": 2.5 }], ["get-tiny-image", {}],
        ["trigger-long-running-operation", { "duration": 1, "steps": 3 }], ["trigger-elicitation-request", {}],
        ["trigger-sampling-request", { "prompt": "say" }], ["get-roots-list", {}]]);
    let clients: [(&str, Client); 2] = [("python", python), ("typescript v2", typescript_v2)];
    for (name, client) in clients {
        // A client of both eras is told by the server's own words that it is of the older one.
        let direct = client("auto", std::slice::from_ref(&server.url), &calls);
        let through = client("auto", &[running.url().to_owned()], &calls);
        must_be_the_same(direct, through, name);
    }
    running.stop();
}

#[test]
fn the_public_sdks_see_no_difference_before_started_servers() {
    let repository = tempfile::tempdir().unwrap();
    let git = Command::new("git").args(["init", "--quiet"]).arg(repository.path()).status().unwrap();
    assert!(git.success());
    let path = repository.path().display().to_string();
    let time = json!([["convert_time", { "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }]]);
    let mut with_path = black_box::python_server("mcp_server_git");
    with_path.extend(["--repository".to_owned(), path.clone()]);
    for (command, calls) in [
        (black_box::python_server("mcp_server_time"), time),
        (with_path, json!([["git_status", { "repo_path": path }], ["git_status", {}]])),
        (
            black_box::everything_over_stdio(),
            json!([["echo", { "message": "hello" }], ["get-sum", { "a": 1, "b": 2 }]]),
        ),
    ] {
        let gateway = Gateway::before_command(&command).route("without_vap = \"advisory\"");
        let running = gateway.start();
        // The server of both eras is asked in both.
        let both = command.concat().contains("mcp_server_time");
        let modes = if both { vec!["auto", "legacy"] } else { vec!["auto"] };
        for mode in modes {
            let direct = without_timed_messages(python(mode, &command, &calls));
            let through = without_timed_messages(python(mode, &[running.url().to_owned()], &calls));
            must_be_the_same(direct, through, &format!("{mode}: {command:?}"));
        }
        running.stop();
    }
}

#[test]
fn the_public_sdks_see_no_difference_over_standard_streams() {
    let calls = json!([["test_simple_text", {}], ["test_tool_with_progress", {}], ["test_tool_with_logging", {}],
        ["test_error_handling", {}], ["test_elicitation", { "message": "who?" }], ["test_sampling", { "prompt": "say" }],
        ["test_input_required_result_multiple_inputs", {}], ["no_such_tool", {}]]);
    let command = black_box::fixture_over_stdio();
    let gateway = Gateway::before_command(&command).route("without_vap = \"advisory\"");
    for mode in ["auto", "legacy"] {
        let direct = python(mode, &command, &calls);
        let through = python(mode, &gateway.stdio_command(), &calls);
        must_be_the_same(direct, through, mode);
    }
}

#[test]
fn an_sdk_that_is_denied_gets_a_result_and_goes_on() {
    let fixture = Other::fixture();
    let gateway = Gateway::before(&fixture.url);
    let running = gateway.start();
    let clients: [(&str, Client); 3] = [("python", python), ("v1", typescript_v1), ("v2", typescript_v2)];
    for (name, client) in clients {
        for mode in ["legacy", "auto"].into_iter().take(if name == "v1" { 1 } else { 2 }) {
            let calls = json!([["test_simple_text", {}], ["test_simple_text", {}]]);
            let transcript = client(mode, &[running.url().to_owned()], &calls);
            let results = transcript["results"].as_array().unwrap();
            for denied in &results[results.len() - 2..] {
                assert_eq!(denied["isError"], true, "{name} {mode}: {denied}");
                let verdict = &denied["_meta"]["vap"];
                assert_eq!(
                    (&verdict["verdict"], &verdict["verification"]["reason"]),
                    (&json!("denied"), &json!("no_envelope"))
                );
                assert!(denied["_meta"]["vap"]["signature"].is_string(), "{denied}");
            }
        }
    }
    running.stop();
}
