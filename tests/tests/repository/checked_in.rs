//! Files of the repository that a test computes.

use std::fs;

use black_box::cli::repository;

/// Asserts that a file of the repository has this text. Writes the file if the environment variable `update` is set.
#[track_caller]
pub fn must_be_checked_in(file: &str, text: &str, update: &str) {
    let path = repository(file);
    if std::env::var_os(update).is_some() {
        fs::write(&path, text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == text,
        "{file} differs: run this test with {update}=1, and look at the difference"
    );
}
