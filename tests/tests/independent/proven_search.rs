//! The answer of a proven search in a file, for the tests of the SDKs.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use black_box::Log;
use scitt::Signer;
use serde_json::json;

/// How long the log may take to have a head of its index.
const SOON: Duration = Duration::from_secs(60);

/// Returns a stopped log. In its folder, `answer` proves that one entry has the subject `thing`, and `trust.toml` trusts the
/// log.
pub fn proven_search() -> Log {
    let log = log_with_index();
    let service = log.serve();
    let mut connection = service.connection();
    let thing = testkit::opaque("thing", &json!({}));
    assert_eq!(connection.post(thing.bytes()).status, 201);
    let entry = connection.get(&format!("/v1/entries/{}", thing.digest())).json();
    let before = (entry["index"].as_u64().unwrap() + 1).to_string();
    let kid = log.tabellion(&["key", "show", "--json"]).must_succeed().json()["receipt"]["kid"].clone();
    let pin = ["trust", "add", "log", "--trust", "trust.toml", "--kid", kid.as_str().unwrap()];
    let keys = ["--checkpoint-key", &log.vkey(), "--url", service.url()];
    log.tabellion(&[&pin[..], &keys].concat()).must_succeed();
    let search = ["entry", "search", "--subject", "thing", "--prove", "--before", &before];
    let begun = Instant::now();
    loop {
        let ran = log.tabellion(&[&search[..], &["-o", "answer", "--url", service.url()]].concat());
        if ran.code == Some(0) {
            break;
        }
        assert!(begun.elapsed() < SOON, "{ran}");
        let _ = fs::remove_file(log.path("answer"));
        sleep(Duration::from_millis(200));
    }
    service.stop();
    log
}

/// Returns a log whose index has a head in each second.
fn log_with_index() -> Log {
    let log = Log::sqlite();
    log.write_private("keys/index.pem", &testkit::verifier().to_pkcs8_pem().unwrap());
    let key = testkit::verifier().public_key().did_key();
    let table = registration::policy::index_table_digest();
    let index = format!("[index]\ntable = \"sha256:{table}\"\nkeys = [\"{key}\"]\nevery = 1\n");
    log.set_policy(&format!("{}\n{index}", testkit::policy_toml()));
    log
}
