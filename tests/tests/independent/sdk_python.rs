//! The Python SDK: all vectors, and the examples that are not among the environments of the release tests.

use std::fs;
use std::process::Command;

use black_box::cli::Dev;
use black_box::sdk::{PythonSdk, must_keep_promises_through_a_gateway, sdk, vectors, with_agent};
use black_box::{Gateway, python_server};
use serde_json::Value;

use crate::proven_search::proven_search;

/// Runs a command to its end, and returns what it prints.
#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs an example in the folder of a dev log, and verifies with the program what the example registered and verified.
#[track_caller]
fn example(script: &str, evidence: &str) {
    let (dev, sdk) = (Dev::start(), PythonSdk::new());
    printed(sdk.command(&format!("examples/{script}")).current_dir(dev.folder.path("")));
    dev.folder.run(&["verify", evidence, "--json"]).must_end_with(0);
}

#[test]
fn every_vector_gets_its_answer_in_python() {
    let printed = printed(PythonSdk::new().command("tests/vectors.py").arg(vectors()));
    let passed: Value = serde_json::from_str(&printed).unwrap();
    let passed = passed.as_object().unwrap();
    let cases: u64 = passed.values().filter_map(Value::as_u64).sum();
    // docs/limits.md and vectors/README.md have the number of cases.
    assert_eq!((passed.len(), cases), (47, 2501), "{passed:?}");
}

#[test]
fn the_client_and_its_sessions_keep_their_promises() {
    printed(&mut PythonSdk::new().command("tests/promises.py"));
}

#[test]
fn the_adapters_for_frameworks_keep_their_promises_with_a_real_log() {
    let (dev, sdk) = (Dev::start(), PythonSdk::new());
    printed(sdk.command("tests/adapters.py").current_dir(dev.folder.path("")));
}

#[test]
fn a_script_registers_verifies_follows_and_monitors() {
    example("log.py", "invoice-7.cose");
}

#[test]
fn the_answer_of_a_proven_search_is_verified_with_the_log_gone() {
    let (log, sdk) = (proven_search(), PythonSdk::new());
    let mut command = sdk.command("tests/search.py");
    command.args(["answer", "trust.toml"]).current_dir(log.path(""));
    assert_eq!(printed(&mut command).trim(), "complete thing 1");
}

#[test]
fn an_agent_of_pydantic_ai_has_a_verified_session() {
    example("pydantic_ai_agent.py", "session.cose");
}

#[test]
fn the_spans_of_an_instrumented_program_are_a_verified_session() {
    example("opentelemetry_spans.py", "session.cose");
}

#[test]
fn the_mcp_sdk_calls_a_tool_through_the_gateway_in_a_vap_session() {
    let gateway = with_agent(Gateway::before_command(&python_server("mcp_server_time")));
    let running = gateway.start();
    let sdk = PythonSdk::new();
    let mut command = sdk.command("examples/gateway.py");
    let printed = printed(command.arg(running.url()).current_dir(gateway.folder()));
    assert!(printed.contains("/entries/"), "{printed}");
    running.stop();
}

#[test]
fn the_middleware_for_mcp_keeps_its_promises_through_a_gateway() {
    must_keep_promises_through_a_gateway(PythonSdk::new().command("tests/gateway.py"));
}

#[test]
fn the_code_in_the_documentation_is_code_that_these_tests_run() {
    let page = fs::read_to_string(sdk("../docs/sdk.md")).unwrap();
    let folders = ["python/examples", "typescript/examples"];
    let files = folders.iter().flat_map(|folder| fs::read_dir(sdk(folder)).unwrap());
    let examples: Vec<String> =
        files.map(|file| unindented(&fs::read_to_string(file.unwrap().path()).unwrap())).collect();
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    assert!(blocks.len() >= 5, "{blocks:?}");
    for block in blocks {
        let code = unindented(block.split_once('\n').unwrap().1);
        assert!(examples.iter().any(|example| example.contains(&code)), "no example has:\n{code}");
    }
}

/// Removes the indentation of every line, which differs between a page and the file.
fn unindented(text: &str) -> String {
    text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
