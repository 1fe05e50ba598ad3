//! `tabellion roa` and `tabellion registry`: an authorizer, two agents and a registry, from keys to a revocation.

use black_box::cli::{Dev, Folder};
use serde_json::{Value, json};

pub const LEAD: &str = "aha:acme/ops/lead";
pub const ONE: &str = "aha:acme/ops/one";

/// Runs a command line that succeeds.
pub fn run(folder: &Folder, line: &str) -> Value {
    let ended = folder.run(&words(&format!("{line} --json")));
    ended.must_end_with(0).json()
}

/// Runs a command line that fails with this exit code, and returns the facts of the error.
pub fn fails(folder: &Folder, exit: i32, line: &str) -> (String, Value) {
    let ended = folder.run(&words(&format!("{line} --json")));
    let error: Value = serde_json::from_str(&ended.must_end_with(exit).stderr).expect("JSON");
    let error = &error["error"];
    let facts = error["facts"].as_array().cloned().unwrap_or_default();
    let facts =
        facts.into_iter().map(|fact| (fact[0].as_str().unwrap().to_owned(), fact[1].clone())).collect();
    (error["code"].as_str().unwrap().to_owned(), Value::Object(facts))
}

pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A folder with keys, a policy, and a registry that lists them.
pub fn organisation() -> Folder {
    let folder = Folder::new();
    for key in ["operator", "authorizer", "lead", "one"] {
        run(&folder, &format!("issuer new -o {key}.pem --alg EdDSA"));
    }
    folder.write("policy.json", "{ \"rules\": [] }");
    let edit = |line: &str| run(&folder, &format!("registry add {line} --key operator.pem"));
    run(&folder, "registry init registry.json --id acme --key operator.pem");
    edit(
        "key registry.json --role authorizer --signer acme:1 --organization acme --public-key authorizer.pem",
    );
    edit(&format!("key registry.json --role agent --agent {LEAD} --public-key lead.pem"));
    edit(&format!("key registry.json --role agent --agent {ONE} --public-key one.pem"));
    edit("server registry.json --server github --tool read --tool write");
    edit("policy registry.json --policy-id incidents --policy policy.json");
    folder
}

pub fn issue(folder: &Folder) {
    let who = format!("--key authorizer.pem --signer acme:1 --agent {LEAD} --session s1");
    let what = "--policy policy.json --policy-id incidents:1 --allow mcp:github.* --depth 1 --budget 10:USD";
    run(folder, &format!("roa issue {who} {what} -o root.json"));
}

fn delegate(folder: &Folder, from: &str, scope: &str, to: &str) {
    run(folder, &format!("roa delegate {from} --key lead.pem --to {ONE} {scope} -o {to}"));
}

pub const VERIFY: &str = "--registry registry.json --registry-key operator.pem";

#[test]
fn a_scope_is_issued_delegated_verified_and_revoked() {
    let folder = organisation();
    issue(&folder);
    delegate(&folder, "root.json", "--allow mcp:github.read --budget 2.5:USD", "chain.json");
    let table = run(&folder, "roa inspect chain.json");
    assert_eq!(table["hops"][1]["agent"], ONE);
    assert_eq!(
        (&table["hops"][0]["budget"], &table["hops"][1]["budget"]),
        (&json!("10 USD"), &json!("2.5 USD"))
    );
    let verified = run(&folder, &format!("roa verify chain.json {VERIFY} --call mcp:github.read"));
    assert_eq!((&verified["holder"], &verified["hops"]), (&json!(ONE), &json!(1)));
    assert_eq!(verified["budgets"], json!(["10 USD (hop 0)", "2.5 USD (hop 1)"]));

    let (code, facts) = fails(&folder, 3, &format!("roa verify chain.json {VERIFY} --call mcp:github.write"));
    assert_eq!((code.as_str(), &facts["reason"]), ("call-denied", &json!("capability_not_in_scope")));
    run(&folder, "roa revoke chain.json --registry registry.json --key operator.pem");
    let (code, facts) = fails(&folder, 3, &format!("roa verify chain.json {VERIFY}"));
    assert_eq!((code.as_str(), &facts["reason"]), ("chain-denied", &json!("envelope_revoked")));
}

#[test]
fn a_failure_names_the_hop_and_the_dimension() {
    let folder = organisation();
    issue(&folder);
    for (scope, reason, dimension) in [
        ("--allow mcp:github.read --budget 25:USD", "budget_expansion_denied", "budget"),
        ("--allow mcp:github.read --budget 2:EUR", "budget_expansion_denied", "budget"),
        ("--allow mcp:files.read", "scope_expansion_violation", "capabilities"),
        ("--allow mcp:github.read --depth 1", "chain_integrity_violation", "depth"),
        ("--allow mcp:github.read --classification secret", "scope_expansion_violation", "classification"),
    ] {
        delegate(&folder, "root.json", scope, "wide.json");
        let (code, facts) = fails(&folder, 3, &format!("roa verify wide.json {VERIFY}"));
        assert_eq!(code, "chain-denied", "{scope}");
        assert_eq!((&facts["reason"], &facts["dimension"]), (&json!(reason), &json!(dimension)), "{scope}");
        assert_eq!(facts["hop"], "1", "{scope}");
        std::fs::remove_file(folder.path("wide.json")).unwrap();
    }
}

#[test]
fn a_registry_is_edited_by_its_operator_only_and_every_edit_is_a_version() {
    let folder = organisation();
    let shown = run(&folder, &format!("registry show {VERIFY}"));
    assert_eq!((&shown["epoch"], &shown["sequence"]), (&json!(1), &json!(5)));
    let (code, _) = fails(&folder, 3, "registry add classification registry.json --key one.pem secret");
    assert_eq!(code, "registry-signature");
    let (code, _) = fails(&folder, 3, "registry show --registry registry.json --registry-key one.pem");
    assert_eq!(code, "registry-signature");
    run(&folder, "registry revoke registry.json --key operator.pem --revoked-key lead.pem");
    issue(&folder);
    delegate(&folder, "root.json", "--allow mcp:github.read", "chain.json");
    let (_, facts) = fails(&folder, 3, &format!("roa verify chain.json {VERIFY}"));
    assert_eq!((&facts["reason"], &facts["hop"]), (&json!("envelope_revoked"), &json!("1")));
}

#[test]
fn a_policy_that_changed_denies_unless_the_operator_keeps_the_one_before_it() {
    let folder = organisation();
    issue(&folder);
    folder.write("policy.json", "{ \"rules\": [1] }");
    let add =
        "registry add policy registry.json --key operator.pem --policy-id incidents --policy policy.json";
    run(&folder, &format!("{add} --keep-previous"));
    run(&folder, &format!("roa verify root.json {VERIFY} --call mcp:github.read"));
    run(&folder, add);
    let (_, facts) = fails(&folder, 3, &format!("roa verify root.json {VERIFY} --call mcp:github.read"));
    assert_eq!(facts["reason"], "policy_digest_mismatch");
}

#[test]
fn what_is_no_chain_or_no_registry_says_where() {
    let folder = organisation();
    let (code, _) = fails(&folder, 1, "roa inspect policy.json");
    assert_eq!(code, "not-a-chain");
    folder.write("bad.json", "{\"schema_version\":\"1.0\",\"registry_id\":5}");
    let (code, facts) = fails(&folder, 1, "registry show --registry bad.json --registry-key operator.pem");
    assert_eq!((code.as_str(), &facts["where"]), ("not-a-registry", &json!("/registry_id")));
    run(&folder, "issuer new -o p256.pem --alg ES256");
    let who = format!("--key p256.pem --signer acme:1 --agent {LEAD} --session s1");
    let what = "--policy policy.json --policy-id incidents:1 --allow mcp:github.*";
    let (code, _) = fails(&folder, 1, &format!("roa issue {who} {what} -o root.json"));
    assert_eq!(code, "cannot-sign");
}

#[test]
fn revocations_are_also_appended_to_a_list_of_deltas() {
    let folder = organisation();
    issue(&folder);
    let deltas = "--key operator.pem --deltas deltas.json";
    run(&folder, &format!("roa revoke root.json --registry registry.json {deltas}"));
    run(&folder, &format!("registry revoke registry.json --revoked-key one.pem {deltas}"));
    let list: Value = serde_json::from_slice(&folder.read("deltas.json")).unwrap();
    let versions =
        list.as_array().unwrap().iter().map(|delta| [&delta["previous_sequence"], &delta["sequence"]]);
    assert_eq!(versions.collect::<Vec<_>>(), [[&json!(5), &json!(6)], [&json!(6), &json!(7)]]);
    assert_eq!(list[1]["revocations"].as_array().map(Vec::len), Some(1));
    let before = folder.read("registry.json");
    folder.write("deltas.json", "{}");
    let (code, _) =
        fails(&folder, 1, &format!("registry revoke registry.json --revoked-key lead.pem {deltas}"));
    assert_eq!((code.as_str(), folder.read("registry.json")), ("not-deltas", before), "nothing is written");
}

#[test]
fn a_new_epoch_leaves_out_old_revocations_but_those_of_keys_that_the_registry_lists() {
    let folder = organisation();
    issue(&folder);
    run(&folder, "issuer new -o stranger.pem --alg EdDSA");
    run(&folder, "roa revoke root.json --registry registry.json --key operator.pem");
    for key in ["lead.pem", "stranger.pem"] {
        run(&folder, &format!("registry revoke registry.json --key operator.pem --revoked-key {key}"));
    }
    let begin = |more: &str| {
        let shown = run(&folder, &format!("registry epoch registry.json --key operator.pem {more}"));
        [&shown["epoch"], &shown["sequence"], &shown["revocations"]].map(|number| number.as_u64().unwrap())
    };
    assert_eq!(begin(""), [2, 0, 3], "nothing is left out without a time");
    assert_eq!(begin("--drop-before 2020-01-01T00:00:00Z"), [3, 0, 3], "all of them are later");
    let future = "registry epoch registry.json --key operator.pem --drop-before 2100-01-01T00:00:00Z";
    assert_eq!(fails(&folder, 2, future).0, "usage");
    let now = jiff::Timestamp::now();
    assert_eq!(begin(&format!("--drop-before {now}")), [4, 0, 1], "the key of an agent stays revoked");
    folder.write("deltas.json", "[]");
    let deltas = "--key operator.pem --deltas deltas.json";
    run(&folder, &format!("registry revoke registry.json --revoked-key one.pem {deltas}"));
    let list: Value = serde_json::from_slice(&folder.read("deltas.json")).unwrap();
    assert_eq!((&list[0]["epoch"], &list[0]["previous_sequence"]), (&json!(4), &json!(0)));
    let shown = run(&folder, &format!("registry show {VERIFY}"));
    assert_eq!((&shown["sequence"], &shown["revocations"]), (&json!(1), &json!(2)));
}

#[test]
fn revocations_at_the_same_time_are_all_in_the_registry_and_its_deltas() {
    let folder = organisation();
    let revoke = |number: u32| {
        let files = "registry.json --key operator.pem --deltas deltas.json";
        run(&folder, &format!("registry revoke {files} --envelope env:{number:016x}"))
    };
    std::thread::scope(|threads| {
        for number in 0..8 {
            threads.spawn(move || revoke(number));
        }
    });
    let shown = run(&folder, &format!("registry show {VERIFY}"));
    assert_eq!((&shown["sequence"], &shown["revocations"]), (&json!(13), &json!(8)));
    let list: Value = serde_json::from_slice(&folder.read("deltas.json")).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(8));
}

#[test]
fn an_agent_proves_a_call() {
    let folder = organisation();
    issue(&folder);
    let line = "roa prove root.json --key lead.pem --call mcp:github.read --audience https://gateway.example";
    let proof = run(&folder, line)["proof"].as_str().unwrap().to_owned();
    let payload = proof.split('.').nth(1).unwrap();
    let claims = data_encoding::BASE64URL_NOPAD.decode(payload.as_bytes()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["capability"], "mcp:github.read");
    assert_eq!(claims["aud"], "https://gateway.example");
}

/// Writes the receipt of a gateway for a call under `root.json`, as a statement.
fn receipt(folder: &Folder, edit: impl FnOnce(&mut Value)) {
    let table = run(folder, "roa inspect root.json");
    let chain: Value = serde_json::from_slice(&std::fs::read(folder.path("root.json")).unwrap()).unwrap();
    let root = &chain[0];
    let mut receipt = testkit::aer_json(1);
    receipt["produced_at"] = root["issued_at"].clone();
    receipt["session"] = json!({ "session_id": "s1", "agent_id": LEAD });
    receipt["policy"] =
        json!({ "policy_id": root["policy"]["policy_id"], "policy_digest": root["policy"]["policy_digest"] });
    receipt["chain_summary"] = json!({
        "chain_depth": 0, "root_envelope_id": root["envelope_id"], "chain_digest": table["chain_digest"],
    });
    receipt["action"]["capability"] = "mcp:github.read".into();
    receipt["action"]["mcp_tool_name"] = "read".into();
    edit(&mut receipt);
    folder.write("aer.json", receipt.to_string());
    run(folder, "execution sign --key gateway.pem aer.json");
}

const WHY: &str = "execution verify aer.json.cose --why root.json --registry registry.json --registry-key operator.pem --policy policy.json";

#[test]
fn a_receipt_is_explained_from_chain_registry_and_policy() {
    let folder = organisation();
    run(&folder, "issuer new -o gateway.pem --alg EdDSA");
    issue(&folder);
    receipt(&folder, |_| ());
    let why = run(&folder, WHY);
    assert_eq!((&why["decided"], &why["contradictions"]), (&json!("permit"), &json!([])));
    assert_eq!((&why["hops"][0]["holder"], &why["hops"][0]["budget"]), (&json!(LEAD), &json!("10 USD")));
}

#[test]
fn a_permit_that_the_documents_refute_fails() {
    let folder = organisation();
    run(&folder, "issuer new -o gateway.pem --alg EdDSA");
    issue(&folder);
    receipt(&folder, |receipt| {
        receipt["action"]["capability"] = "mcp:gitlab.read".into();
        receipt["action"]["mcp_server_id"] = "gitlab".into();
    });
    let (code, facts) = fails(&folder, 3, WHY);
    assert_eq!(code, "execution-contradicted");
    assert!(facts["/enforcement_outcome"].as_str().unwrap().contains("capability_not_in_scope"), "{facts}");
    folder.write("policy.json", "{ \"rules\": [2] }");
    let (_, facts) = fails(&folder, 3, WHY);
    assert!(facts.get("/policy/policy_digest").is_some(), "{facts}");
}

#[test]
fn a_published_version_is_a_statement_that_the_log_s_policy_decides_about() {
    let dev = Dev::start();
    run(&dev.folder, "issuer new -o operator.pem --alg EdDSA");
    run(&dev.folder, "registry init registry.json --id acme --key operator.pem");
    let key = "--key tabellion-dev/issuer.key --iss https://dev.issuer.example";
    let trust = "--trust tabellion-dev/trust.toml";
    let refused = dev.folder.run(&words(&format!("registry publish registry.json {key} {trust}")));
    assert!(refused.must_end_with(6).stderr.contains("agentroa-registry-id"), "none is listed: {refused}");
    assert!(dev.folder.has("registry.json.1.0.cose"), "the version has a statement of its own");
}
