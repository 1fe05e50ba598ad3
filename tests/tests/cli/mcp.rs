//! `tabellion mcp` through the official Python SDK: its tools give what the commands print with `--json`.

use black_box::cli::{Dev, Folder};
use black_box::run_python_on;
use data_encoding::BASE64;
use serde_json::{Value, json};

/// Connects to a server in the dev log's folder, calls the tools in their order, and returns the transcript.
fn call(dev: &Dev, mode: &str, flags: &[&str], calls: &Value) -> Value {
    let folder = &dev.folder;
    let path = |name: &str| folder.path(name).display().to_string();
    let (key, trust) = (path("tabellion-dev/issuer.key"), path("tabellion-dev/trust.toml"));
    let (state, program) = (path("state"), black_box::program().display().to_string());
    let identity = ["--key", &key, "--iss", "https://dev.issuer.example", "--trust", &trust];
    let server = [&program, "mcp", "--url", dev.url(), "--state", &state];
    run_python_on("mcp_client.py", &[&[mode][..], &server, &identity, flags].concat(), calls)
}

fn structured(transcript: &Value, call: usize) -> &Value {
    &transcript["results"][call]["structuredContent"]
}

/// A result without the members that differ between two runs.
fn without_times(mut result: Value) -> Value {
    for entry in result["registered"].as_array_mut().into_iter().flatten() {
        entry.as_object_mut().unwrap().retain(|name, _| !["tree_size", "fresh"].contains(&name.as_str()));
    }
    result
}

fn printed(folder: &Folder, arguments: &[&str]) -> Value {
    folder.run(&[arguments, &["--json"]].concat()).must_end_with(0).json()
}

#[test]
fn a_text_is_registered_found_and_verified_as_the_commands_do_it() {
    let dev = Dev::start();
    let folder = &dev.folder;
    let decisions = printed(folder, &["entry", "search", "--content-type", "application/vap-audit+json"]);
    let session = decisions["entries"][0]["sub"].as_str().unwrap();
    let content = r#"{"session_id":"s-1","action":"deploy"}"#;
    for mode in ["auto", "legacy"] {
        let calls = json!([
            ["register", { "content": content, "subject": "deploy 1" }],
            ["search", { "subject": "deploy 1" }],
            ["session", { "session": session, "limit": 5 }],
        ]);
        let transcript = call(&dev, mode, &[], &calls);
        let names: Vec<&str> = transcript["tools"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["register", "verify", "search", "session"], "{mode}");
        assert_eq!(transcript["server"]["name"], "tabellion");

        let registered = structured(&transcript, 0);
        let wrote = registered["registered"][0]["wrote"].as_str().unwrap();
        let stored = wrote.strip_suffix(".transparent.cose").unwrap();
        let again =
            ["register", stored, "--key", "tabellion-dev/issuer.key", "--iss", "https://dev.issuer.example"];
        let again = printed(folder, &[&again[..], &["--sub", "deploy 1"]].concat());
        assert_eq!(without_times(registered.clone()), without_times(again), "{mode}");
        assert_eq!(
            structured(&transcript, 1),
            &printed(folder, &["entry", "search", "--subject", "deploy 1"])
        );
        assert_eq!(structured(&transcript, 1)["entries"].as_array().unwrap().len(), 1, "{mode}: one entry");
        assert_eq!(
            structured(&transcript, 2),
            &printed(folder, &["session", "show", session, "--limit", "5"])
        );
        assert!(transcript["results"].as_array().unwrap().iter().all(|result| result["isError"] == false));

        let statement = BASE64.encode(&std::fs::read(wrote).unwrap());
        let calls = json!([
            ["verify", { "statement": statement, "payload": content }],
            ["verify", { "statement": statement, "payload": "{}" }],
            ["verify", { "entry": registered["registered"][0]["entry"] }],
        ]);
        let transcript = call(&dev, mode, &[], &calls);
        assert_eq!(structured(&transcript, 0), &printed(folder, &["verify", wrote, "--payload", stored]));
        assert_eq!(transcript["results"][0]["isError"], false);
        assert_eq!(transcript["results"][1]["isError"], true, "{transcript}");
        assert_eq!(structured(&transcript, 1)["reason"], "payload-digest-mismatch");
        assert_eq!(transcript["results"][2]["isError"], false, "{transcript}");
        assert_eq!(structured(&transcript, 2)["outcome"], "verified");
    }
}

#[test]
fn files_are_read_below_the_folder_only_and_errors_have_our_codes() {
    let dev = Dev::start();
    let folder = &dev.folder;
    std::fs::create_dir(folder.path("open")).unwrap();
    folder.write("open/a.json", "{\"n\":1}");
    folder.write("secret.json", "{}");
    std::os::unix::fs::symlink(folder.path("secret.json"), folder.path("open/link.json")).unwrap();
    let open = folder.path("open").display().to_string();
    let calls = json!([
        ["register", { "file": "a.json" }],
        ["verify", { "file": "a.json.transparent.cose", "payload_file": "a.json" }],
        ["register", { "file": "../secret.json" }],
        ["register", { "file": "link.json" }],
        ["register", { "file": "absent.json" }],
        ["register", { "file": "a.json", "content": "both" }],
        ["register", { "content": "a", "url": "http://127.0.0.1:1" }],
        ["search", { "issuer": "--url=http://127.0.0.1:1" }],
        ["search", { "limit": 0 }],
        ["session", {}],
        ["verify", { "statement": "%" }],
        ["verify", { "statement": "AAAA" }],
        ["verify", { "entry": "a.json.cose" }],
        ["verify", { "entry": "0".repeat(64) }],
        ["verify", { "entry": "0".repeat(64), "file": "a.json" }],
    ]);
    let transcript = call(&dev, "auto", &["--folder", &open], &calls);
    let result = |at: usize| &transcript["results"][at];
    for ok in [0, 1, 7] {
        assert_eq!(result(ok)["isError"], false, "{ok}: {}", result(ok));
    }
    for (at, code) in [
        (2, "not-below-folder"),
        (3, "not-below-folder"),
        (4, "file-not-found"),
        (5, "usage"),
        (6, "usage"),
        (8, "usage"),
        (9, "usage"),
        (10, "usage"),
        (11, "no-statement"),
        (12, "not-an-entry"),
        (13, "entry-unknown"),
        (14, "usage"),
    ] {
        assert_eq!(result(at)["isError"], true, "{at}: {}", result(at));
        assert_eq!(structured(&transcript, at)["error"]["code"], code, "{at}: {}", result(at));
    }
    let closed = call(&dev, "auto", &[], &json!([["verify", { "file": "a.json" }]]));
    assert_eq!(structured(&closed, 0)["error"]["code"], "no-folder", "{closed}");
}

#[test]
fn a_log_that_cannot_be_reached_is_an_error_of_the_tool_and_the_server_goes_on() {
    let mut dev = Dev::start();
    dev.daemon.serving["url"] = "http://127.0.0.1:1".into();
    let calls = json!([["search", {}], ["verify", { "statement": "AAAA" }]]);
    let transcript = call(&dev, "auto", &["--timeout", "1"], &calls);
    assert_eq!(structured(&transcript, 0)["error"]["code"], "unreachable", "{transcript}");
    assert_eq!(structured(&transcript, 1)["error"]["code"], "no-statement", "{transcript}");
}
