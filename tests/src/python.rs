//! The Python with other people's software, which the driver installed.

use std::path::{Path, PathBuf};
use std::process::Command;

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
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let output = Command::new(python()).arg(script).args(arguments).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}
