//! Python with third-party packages, which the test driver installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Variable with the path of the interpreter. If it is missing the test fails, and is not skipped.
const PYTHON: &str = "TABELLION_TEST_PYTHON";

/// Returns the path of the interpreter.
pub fn python() -> PathBuf {
    std::env::var_os(PYTHON).unwrap_or_else(|| panic!("{PYTHON} names no Python: run ./test")).into()
}

/// Returns a command that runs Python with the SDK for A2A 1.0 in place of that for A2A 0.3.
pub fn python_with_a2a_1() -> Command {
    let python = python();
    let environment = python.ancestors().nth(2).expect("it is in the folder bin of an environment");
    let mut command = Command::new(&python);
    command.env("PYTHONPATH", environment.join("a2a-1"));
    command
}

/// Runs a script of `tests/python`, and returns the JSON that it prints.
#[track_caller]
pub fn run_python(script: &str, arguments: &[&str]) -> Value {
    run_python_on(script, arguments, &Value::Null)
}

/// Runs a script like [`run_python`], with this JSON on its standard input.
#[track_caller]
pub fn run_python_on(script: &str, arguments: &[&str], input: &Value) -> Value {
    run_on(Command::new(python()), script, arguments, input)
}

/// Runs a script with the A2A 1.0 SDK, and this JSON on its standard input.
#[track_caller]
pub fn run_python_with_a2a_1(script: &str, input: &Value) -> Value {
    run_on(python_with_a2a_1(), script, &[], input)
}

#[track_caller]
fn run_on(mut command: Command, script: &str, arguments: &[&str], input: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    command.arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut pipe = child.stdin.take().expect("it was asked for");
    let text = input.to_string();
    // The script may end without reading its input.
    let feeding = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it runs");
    let _ = feeding.join();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}
