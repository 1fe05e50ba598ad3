//! What a request may be.

use checks::CheckRequest;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fake::request;

fn base() -> Value {
    json!({
        "tier": 0,
        "artifact": { "language": "python", "content": "def main(): return 1" },
        "tests": [{ "name": "one", "expected": 1 }],
    })
}

fn refused(change: impl FnOnce(&mut Value)) -> (String, String) {
    let mut value = base();
    change(&mut value);
    let error = CheckRequest::parse(value.to_string().as_bytes()).expect_err("this request is refused");
    (error.pointer, error.message)
}

#[test]
fn the_digest_is_that_of_the_meaning_and_not_of_the_text() {
    let one = CheckRequest::parse(
        br#"{"tier":0,"artifact":{"language":"python","content":"x"},"tests":[{"name":"a","expected":1.0}]}"#,
    );
    let two = CheckRequest::parse(br#"{ "tests": [{"expected":1, "name":"a"}], "artifact": {"content":"x","language":"python"}, "tier": 0 }"#);
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.digest(), two.digest());
    assert!(one.digest().starts_with("sha256:") && one.digest().len() == 71);
    assert_eq!(one.hashes(), two.hashes());
}

#[test]
fn one_file_is_hashed_as_it_is_and_several_by_their_hashes() {
    // SHA-256 of "abc", and of {"a":"sha256:ba78…","b":"sha256:e3b0…"}.
    let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let mut value = base();
    for artifact in [
        json!({ "language": "python", "content": "abc" }),
        json!({ "language": "python", "files": { "x/y.py": "abc" } }),
        json!({ "language": "python", "files": { "main.py": { "base64": "YWJj" } } }),
    ] {
        value["artifact"] = artifact;
        assert_eq!(request(&value).hashes().output, abc);
    }
    value["artifact"] = json!({ "language": "python", "files": { "a": "abc", "b": "" }, "entry": "a" });
    let of_files = format!(
        r#"{{"a":"{abc}","b":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}"#
    );
    value["specification"] = serde_json::from_str(&of_files).unwrap();
    let hashes = request(&value).hashes().clone();
    assert_eq!(Some(hashes.output), hashes.specification);
}

#[test]
fn a_path_stays_below_the_folder_of_the_guest() {
    for path in ["/a", "../a", "a/../b", "a//b", "./a", "a\\b", "a\0", "", "a/", "-a", &"x".repeat(256)] {
        let (pointer, message) = refused(|value| {
            value["artifact"] = json!({ "language": "python", "files": { path: "" } });
        });
        assert!(pointer.starts_with("/artifact/files/"), "{path:?}: {pointer}");
        assert!(message.contains("relative path"), "{path:?}: {message}");
    }
    let files = json!({ "language": "python", "files": { "a": "", "a/b": "" }, "entry": "a" });
    assert_eq!(refused(|value| value["artifact"] = files).0, "/artifact/files/a");
}

type Change = fn(&mut Value);

#[test]
fn an_error_names_its_place() {
    let cases: [(&str, Change); 14] = [
        ("/tier", |value| value["tier"] = json!(4)),
        ("/tier", |value| drop(value.as_object_mut().unwrap().remove("tier"))),
        ("/schema", |value| value["schema"] = json!({})),
        ("/test", |value| value["test"] = json!([])),
        ("/subject", |value| value["subject"] = json!("agent")),
        ("/task/task_type", |value| value["task"] = json!({ "task_type": "x".repeat(65) })),
        ("/tests", |value| value["tests"] = json!([])),
        ("/tests", |value| {
            value["tests"] = json!([{ "name": "a", "expected": 1 }, { "name": "a", "expected": 1 }]);
        }),
        ("/tests/0/expected", |value| value["tests"] = json!([{ "name": "a" }])),
        ("/tests/0/function", |value| value["artifact"] = json!({ "content": "x" })),
        ("/tests/0/function", |value| value["tests"][0]["function"] = json!("a.b")),
        ("/artifact/files", |value| value["artifact"]["files"] = json!({ "a": "" })),
        ("/artifact/entry", |value| value["artifact"]["entry"] = json!("other.py")),
        ("/limits/time_ms", |value| value["limits"] = json!({ "time_ms": 10_000_000 })),
    ];
    for (index, (pointer, change)) in cases.into_iter().enumerate() {
        assert_eq!(refused(change).0, pointer, "case {index}");
    }
}

#[test]
fn a_number_that_parsers_read_differently_is_refused() {
    let text = base().to_string().replace("\"expected\":1", "\"expected\":9007199254740993");
    assert!(CheckRequest::parse(text.as_bytes()).unwrap_err().message.contains("2^53"));
    let text = base().to_string().replacen('{', "{\"tier\":0,", 1);
    assert!(CheckRequest::parse(text.as_bytes()).unwrap_err().message.contains("second member"));
}

#[test]
fn a_tier_takes_its_own_checks_only() {
    for (tier, member) in [(1, "schema"), (2, "properties"), (3, "obligation")] {
        let (pointer, _) = refused(|value| value["tier"] = json!(tier));
        assert_eq!(pointer, "/tests", "{member}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,300}", at in 0_usize..120) {
        let mut request = base().to_string();
        let at = request.floor_char_boundary(at.min(request.len()));
        request.insert_str(at, &text);
        let _ = CheckRequest::parse(request.as_bytes());
    }

    #[test]
    fn no_script_makes_the_reader_panic(script in r#"[ ()|;"a-z\n\\]{0,200}"#) {
        let value = json!({
            "tier": 3, "artifact": { "content": "x" }, "obligation": { "logic": "QF_LIA", "smtlib": script },
        });
        let _ = CheckRequest::parse(value.to_string().as_bytes());
    }
}
