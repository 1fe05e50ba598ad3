//! Checks of what enters a guest and what leaves it, the same for all backends.

use std::path::{Component, Path};

use serde::de::IgnoredAny;

use crate::limits::{MAX_EXCEPTION, MAX_FILES};
use crate::{Ending, Job, SandboxError};

/// Refuses jobs with too many files, or with a file outside of the guest's folder.
pub(crate) fn check_files(job: &Job) -> Result<(), SandboxError> {
    if job.files.len() > MAX_FILES {
        let count = job.files.len();
        return Err(SandboxError::Failed(format!(
            "the job has {count} files, at most {MAX_FILES} are allowed"
        )));
    }
    match job.files.keys().find(|path| !is_inside(path)) {
        Some(path) => Err(SandboxError::Failed(format!("the file {path:?} has no plain relative path"))),
        None => Ok(()),
    }
}

fn is_inside(path: &str) -> bool {
    let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    plain && !path.is_empty() && !path.ends_with('/') && !path.contains(['\0', '\\'])
}

/// Refuses a call of a function in a file that the job does not have.
pub(crate) fn check_file_exists(job: &Job, file: &str) -> Result<(), SandboxError> {
    if job.files.contains_key(file) {
        return Ok(());
    }
    Err(SandboxError::Failed(format!("the job has no file {file:?}")))
}

/// Reads a returned value: one JSON text.
pub(crate) fn read_value(text: &[u8]) -> Result<String, Ending> {
    let text = std::str::from_utf8(text).map_err(|_| not_json("it is not UTF-8"))?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(&error.to_string()))?;
    Ok(text.to_owned())
}

fn not_json(why: &str) -> Ending {
    Ending::NotJson(why.to_owned())
}

/// Returns the text of an exception, shortened.
pub(crate) fn exception(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(MAX_EXCEPTION)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn a_file_stays_in_the_folder_of_the_guest() {
        for inside in ["a", "a/b.py", "lib/..hidden", "./a".trim_start_matches("./")] {
            assert!(is_inside(inside), "{inside}");
        }
        for outside in ["", "/etc/passwd", "../a", "a/../../b", "a/", "a\0b", "a\\b"] {
            assert!(!is_inside(outside), "{outside:?}");
        }
    }
}
