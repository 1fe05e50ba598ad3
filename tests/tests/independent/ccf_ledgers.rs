//! Receipts of CCF ledgers (vds 2): a Python without our code makes them, honest and lying, and the real `tabellion`
//! answers. See tests/python/ccf_ledger.py.

use black_box::cli::Folder;
use serde::Deserialize;

/// What a verifier gets, and what it must answer. Bytes are in hexadecimal.
#[derive(Deserialize)]
struct Case {
    name: String,
    why: String,
    kind: String,
    trust: String,
    statement: String,
    receipt: String,
    outcome: String,
    reason: Option<String>,
}

#[test]
fn receipts_of_ledgers_verify_and_lies_are_named() {
    let cases = cases();
    assert!(cases.len() > 30, "{} cases", cases.len());
    for case in cases {
        let folder = Folder::new();
        folder.write("s.cose", hex(&case.statement));
        folder.write("s.receipt", hex(&case.receipt));
        folder.write("trust.toml", &case.trust);
        verify(&folder, &case);
        inspect(&folder, &case);
    }
}

fn verify(folder: &Folder, case: &Case) {
    let arguments = ["--json", "verify", "s.cose", "--receipt", "s.receipt", "--trust", "trust.toml"];
    let verdict = folder.run(&arguments);
    let about = format!("{}: {}\n{verdict}", case.name, case.why);
    assert_eq!(verdict.code, Some(if case.outcome == "verified" { 0 } else { 3 }), "{about}");
    assert_eq!(verdict.json()["reason"].as_str(), case.reason.as_deref(), "{about}");
    if case.outcome == "verified" {
        assert_eq!(verdict.json()["receipts"][0]["structure"], "CCF_LEDGER_SHA256", "{about}");
    }
}

/// What does not parse is refused, and all else is shown without a word on its truth.
fn inspect(folder: &Folder, case: &Case) {
    let inspected = folder.run(&["--json", "receipt", "inspect", "s.receipt"]);
    if case.kind == "refused" {
        inspected.must_end_with(1);
        assert_eq!(inspected.error(), "malformed", "{}", case.name);
        return;
    }
    let shown = inspected.must_end_with(0).json();
    assert_eq!(shown["structure"], "CCF_LEDGER_SHA256", "{}", case.name);
    assert_eq!(shown["verified"], false, "{}", case.name);
    let proof = &shown["proofs"][0];
    assert_eq!(proof["kind"], "inclusion", "{}", case.name);
    let leaf = ["statement", "transaction", "evidence"];
    assert!(leaf.iter().all(|part| proof[part].as_str().is_some_and(|text| !text.is_empty())), "{shown}");
}

fn cases() -> Vec<Case> {
    serde_json::from_value(black_box::run_python("ccf_ledger.py", &["cases"])).expect("a list of cases")
}

fn hex(text: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(text.as_bytes()).expect("hexadecimal")
}
