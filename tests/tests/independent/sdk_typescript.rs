//! The TypeScript SDK: all vectors, and each example from nothing to a verified session.

use std::process::Command;

use black_box::cli::Dev;
use black_box::sdk::{TypeScriptSdk, must_keep_promises_through_a_gateway, vectors, with_agent};
use black_box::{Gateway, python_server};
use serde_json::Value;

use crate::proven_search::proven_search;

/// Runs a command to its end, and returns what it prints.
#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{error}");
    out
}

#[test]
fn every_vector_gets_its_answer_in_typescript_and_the_client_keeps_its_promises() {
    let sdk = TypeScriptSdk::new();
    printed(sdk.command("tests/promises.mjs").arg(vectors()));
    let printed = printed(sdk.command("tests/vectors.mjs").arg(vectors()));
    let passed: Value = serde_json::from_str(&printed).unwrap();
    let passed = passed.as_object().unwrap();
    let cases: u64 = passed.values().filter_map(Value::as_u64).sum();
    // docs/limits.md and vectors/README.md have the number of cases.
    assert_eq!((passed.len(), cases), (47, 2501), "{passed:?}");
}

#[test]
fn the_answer_of_a_proven_search_is_verified_with_the_log_gone() {
    let (log, sdk) = (proven_search(), TypeScriptSdk::new());
    let mut command = sdk.command("tests/search.mjs");
    command.args(["answer", "trust.toml"]).current_dir(log.path(""));
    assert_eq!(printed(&mut command).trim(), "complete thing 1");
}

#[test]
fn a_script_has_a_verified_session_and_monitors_the_log() {
    let (dev, sdk) = (Dev::start(), TypeScriptSdk::new());
    for (script, evidence) in
        [("examples/log.mjs", "invoice-8.cose"), ("examples/session.mjs", "session.cose")]
    {
        printed(sdk.command(script).current_dir(dev.folder.path("")));
        // What the example verified, the program verifies too.
        dev.folder.run(&["verify", evidence, "--json"]).must_end_with(0);
    }
}

#[test]
fn the_mcp_sdk_calls_a_tool_through_the_gateway_in_a_vap_session() {
    let gateway = with_agent(Gateway::before_command(&python_server("mcp_server_time")));
    let running = gateway.start();
    let sdk = TypeScriptSdk::new();
    let mut command = sdk.command("examples/gateway.mjs");
    let printed = printed(command.arg(running.url()).current_dir(gateway.folder()));
    assert!(printed.contains("/entries/"), "{printed}");
    running.stop();
}

#[test]
fn the_middleware_for_mcp_keeps_its_promises_through_a_gateway() {
    must_keep_promises_through_a_gateway(TypeScriptSdk::new().command("tests/gateway.mjs"));
}
