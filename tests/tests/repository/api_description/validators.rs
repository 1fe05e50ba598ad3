//! Two validators of others, which share no code, read every description that is checked in.

use std::fs;

use black_box::cli::{Folder, repository};
use black_box::{run_node, run_python};
use serde_json::{Value, json};

#[test]
fn two_validators_find_nothing_wrong_in_any_description() {
    let mut files: Vec<String> = fs::read_dir(repository("openapi"))
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .filter(|file| file.ends_with(".json"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 7, "{files:?}");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let no_errors = json!([[], [], [], [], [], [], []]);
    for errors in errors_in(&files) {
        assert_eq!(errors, no_errors, "{files:?}");
    }
}

#[test]
fn each_validator_notices_a_missing_member_and_a_reference_to_nothing() {
    let folder = Folder::new();
    let valid = fs::read_to_string(repository("openapi/witness.json")).unwrap();
    let mut untitled: Value = serde_json::from_str(&valid).unwrap();
    untitled["info"].as_object_mut().unwrap().remove("title");
    folder.write("untitled.json", untitled.to_string());
    let mut dangling: Value = serde_json::from_str(&valid).unwrap();
    dangling["paths"]["/livez"]["get"]["responses"]["200"] =
        json!({ "$ref": "#/components/responses/Nothing" });
    folder.write("dangling.json", dangling.to_string());
    let files = ["untitled.json", "dangling.json"].map(|name| folder.path(name).display().to_string());
    for errors in errors_in(&files.each_ref().map(String::as_str)) {
        let noticed = errors.as_array().unwrap().iter().all(|errors| !errors.as_array().unwrap().is_empty());
        assert!(noticed, "{errors:#}");
    }
}

/// Returns the errors that each validator finds, as a list for each file.
#[track_caller]
fn errors_in(files: &[&str]) -> [Value; 2] {
    [run_python("openapi_errors.py", files), run_node("openapi_errors.mjs", files)]
}
