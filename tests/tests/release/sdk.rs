//! The packages of the SDKs, as they are released, and the oldest Python and Node.js that they admit. The tests of
//! environments install the packages.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use black_box::cli::Folder;
use black_box::sdk::{TypeScriptSdk, extension, sdk, vectors, write_core};
use black_box::{Other, chromium, node, oldest_node, python, run_node};
use serde_json::{Value, json};

use crate::{file, release_command, run};

/// Imports the package in the folder that is the argument, and makes a key with its core.
const USE: &str = "const { generateKey } = await import(`${process.argv[1]}/dist/index.js`);
console.log(await generateKey());";

/// Makes the npm package of a release, and returns its path and that of the core in it.
pub fn npm_package(folder: &Folder) -> (PathBuf, PathBuf) {
    let core = folder.path("core.wasm");
    write_core(&core);
    // The step packages no program, so any file that can be run will do.
    let mut command = release_command(folder, "npm", "/bin/true".as_ref());
    run(command.env("TABELLION_CORE_WASM", &core));
    (file(&folder.path("out"), ".tgz"), core)
}

/// Makes the npm package of a release and unpacks it in the folder. Returns its files, its archive, and the core in it.
fn unpacked_npm_package(folder: &Folder) -> (PathBuf, PathBuf, PathBuf) {
    let (archive, core) = npm_package(folder);
    let mut tar = Command::new("tar");
    run(tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(folder.path("")));
    (folder.path("package"), archive, core)
}

#[test]
fn the_npm_package_unpacks_to_a_module_with_its_core_and_types_which_node_imports() {
    let folder = Folder::new();
    let (package, archive, core) = unpacked_npm_package(&folder);
    let manifest: Value = serde_json::from_slice(&fs::read(package.join("package.json")).unwrap()).unwrap();
    assert_eq!(manifest["name"], "@tabellion/sdk");
    assert!(archive.ends_with(format!("tabellion-sdk-{}.tgz", manifest["version"].as_str().unwrap())));
    for export in ["types", "default"] {
        let exported = manifest["exports"]["."][export].as_str().unwrap();
        assert!(package.join(exported).is_file(), "{exported} is not in the package");
    }
    assert!(package.join("LICENSE").is_file());
    assert_eq!(fs::read(package.join("dist/core.wasm")).unwrap(), fs::read(&core).unwrap());
    let key = run(node().args(["--input-type=module", "--eval", USE, "--"]).arg(&package));
    assert!(key.contains("PRIVATE KEY"), "{key}");
}

#[test]
fn all_files_of_the_npm_package_have_the_same_time() {
    let folder = Folder::new();
    folder.write("core.wasm", "a core");
    let mut command = release_command(&folder, "npm", "/bin/true".as_ref());
    run(command.env("TABELLION_CORE_WASM", folder.path("core.wasm")));
    let mut list = Command::new("tar");
    list.args(["--list", "--verbose", "--utc", "--full-time", "--file"]);
    let listed = run(list.arg(file(&folder.path("out"), ".tgz")));
    assert!(listed.lines().count() > 20, "{listed}");
    assert!(listed.lines().all(|line| line.contains(" 1985-10-26 08:15:00 ")), "{listed}");
}

#[test]
fn the_npm_package_verifies_a_receipt_in_a_page_of_a_browser() {
    let folder = Folder::new();
    let (package, ..) = unpacked_npm_package(&folder);
    fs::copy(sdk("typescript/tests/page.html"), package.join("page.html")).unwrap();
    let vector = vectors().join("verifier/verified/separate-receipt.json");
    fs::copy(vector, package.join("vector.json")).unwrap();
    let server = Other::files(&package);
    let steps = json!([
        { "open": format!("{}/page.html", server.url) },
        { "wait": "document.body.dataset.outcomes" },
        { "read": "JSON.parse(document.body.dataset.outcomes)" },
    ]);
    let seen = run_node("verify_page.mjs", &[&chromium(), &steps.to_string()]);
    let changed = ["failed", "receipt-root-mismatch"];
    assert_eq!(
        seen["results"][0],
        json!({ "genuine": "verified", "changed": changed, "sub": "s" }),
        "{seen:#}"
    );
    assert_eq!(seen["problems"], json!([]), "{seen:#}");
    let requests = seen["requests"].as_array().unwrap();
    let of_package = |request: &Value| request.as_str().unwrap().starts_with(&server.url);
    assert!(requests.iter().all(of_package), "{requests:#?}");
}

#[test]
fn the_npm_package_keeps_its_promises_on_the_oldest_node_that_it_admits() {
    let manifest: Value = serde_json::from_slice(&fs::read(sdk("typescript/package.json")).unwrap()).unwrap();
    let version = run(oldest_node().arg("--version"));
    assert_eq!((&manifest["engines"]["node"], version.trim()), (&json!(">=20"), "v20.0.0"));
    let package = TypeScriptSdk::new();
    run(package.command_of(oldest_node(), "tests/promises.mjs").arg(vectors()));
}

#[test]
fn the_extension_module_needs_no_more_than_the_stable_abi_of_the_oldest_python_that_the_wheel_admits() {
    let project = fs::read_to_string(sdk("python/pyproject.toml")).unwrap();
    assert!(project.contains("requires-python = \">=3.9\""), "{project}");
    // The name says what the module promises.
    let folder = Folder::new();
    let module = folder.path("_core.abi3.so");
    fs::copy(extension(), &module).unwrap();
    let mut audit = Command::new(python());
    audit.args(["-m", "abi3audit", "--strict", "--report", "--assume-minimum-abi3", "3.9"]).arg(&module);
    let report: Value = serde_json::from_str(&run(&mut audit)).unwrap();
    let result = &report["specs"][module.to_str().unwrap()]["object"]["result"];
    assert_eq!(
        (&result["is_abi3"], &result["is_abi3_baseline_compatible"]),
        (&json!(true), &json!(true)),
        "{report:#}"
    );
}

#[test]
fn the_python_files_use_nothing_that_the_oldest_python_that_the_wheel_admits_does_not_have() {
    let mut vermin = Command::new(python());
    vermin.args(["-c", "import vermin; vermin.main()", "--target=3.9-", "--violations", "--no-tips"]);
    run(vermin.arg(sdk("python/tabellion")));
}
