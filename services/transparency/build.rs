//! With the feature `explorer-verifier`, builds the verifier for the browser with `tools/browser-verifier`.

use std::path::Path;
use std::process::Command;

/// What the module is built from, relative to the root of the repository.
const SOURCES: &[&str] = &[
    "Cargo.lock",
    "crates/browser-verifier/src",
    "crates/bundle/src",
    "crates/content-rules/src",
    "crates/decimal/src",
    "crates/expression/src",
    "crates/jose/src",
    "crates/lookup-tree/src",
    "crates/merkle/src",
    "crates/registration/src",
    "crates/roa/src",
    "crates/scitt/src",
    "crates/search-evidence/src",
    "crates/search-terms/src",
    "crates/search-terms/table.json",
    "crates/tlog/src",
    "crates/vap/src",
    "crates/verifier/src",
    "sdk/core/src",
    "tools/browser-verifier",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_EXPLORER_VERIFIER").is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let module = Path::new(&out).join("verifier.wasm");
    let built = Command::new(root.join("tools/browser-verifier")).arg("build").arg(&module).status();
    let built = built.unwrap_or_else(|error| panic!("tools/browser-verifier cannot be started: {error}"));
    assert!(built.success(), "tools/browser-verifier failed");
}
