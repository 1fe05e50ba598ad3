//! The Python with other people's software, which the driver installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Names the interpreter. A missing variable fails the test: nothing is skipped.
const PYTHON: &str = "TABELLION_TEST_PYTHON";

/// The interpreter.
pub fn python() -> PathBuf {
    std::env::var_os(PYTHON).unwrap_or_else(|| panic!("{PYTHON} names no Python: run ./test")).into()
}

/// Runs a script of `tests/python`, and gives the JSON that it prints.
#[track_caller]
pub fn run_python(script: &str, arguments: &[&str]) -> Value {
    run_python_on(script, arguments, &Value::Null)
}

/// The same, with this JSON on its standard input.
#[track_caller]
pub fn run_python_on(script: &str, arguments: &[&str], input: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(python());
    command.arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut pipe = child.stdin.take().expect("it was asked for");
    let text = input.to_string();
    // It may not read it.
    let feeding = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it runs");
    let _ = feeding.join();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}
