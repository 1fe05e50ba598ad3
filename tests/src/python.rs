//! The Python with other people's software, which the driver installed.

use std::path::PathBuf;

/// Names the interpreter. A missing variable fails the test: nothing is skipped.
const PYTHON: &str = "TABELLION_TEST_PYTHON";

/// The interpreter.
pub fn python() -> PathBuf {
    std::env::var_os(PYTHON).unwrap_or_else(|| panic!("{PYTHON} names no Python: run ./test")).into()
}
