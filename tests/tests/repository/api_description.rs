//! The description of the API, as others' software reads it: a validator finds nothing wrong, and clients are generated from it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use black_box::{Log, node, node_folder, run_python};
use scitt::Receipt;
use serde_json::Value;

#[test]
fn the_description_is_valid_and_a_generated_python_client_reads() {
    let log = Log::sqlite();
    let service = log.serve();
    let folder = tempfile::tempdir().unwrap();
    let description = folder.path().join("openapi.json");
    fs::write(&description, service.connection().get("/openapi.json").body).unwrap();
    let statement = log.statement();
    assert_eq!(service.connection().post(statement.bytes()).status, 201);
    let id = statement.digest().to_string();
    let base_url = format!("http://{}", service.connection().address());
    let arguments = [description.to_str().unwrap(), &base_url, &id];
    let found = run_python("openapi_client.py", &arguments);
    assert_eq!(found["errors"].as_array().unwrap().len(), 0, "{found:#}");
    // The one type that this generator does not know.
    let not_generated =
        ["WARNING parsing POST /v1/entries/batch within log. Endpoint will not be generated."];
    assert_eq!(found["warnings"], serde_json::json!(not_generated));
    Receipt::parse(data_encoding::HEXLOWER.decode(found["receipt"].as_str().unwrap().as_bytes()).unwrap())
        .unwrap();
    assert_eq!((&found["entries"][1], &found["proven"]), (&id.clone().into(), &id.into()));
    service.stop();
}

#[test]
fn a_generated_typescript_client_covers_every_path_compiles_and_reads() {
    let log = Log::sqlite();
    let service = log.serve();
    let statement = log.statement();
    assert_eq!(service.connection().post(statement.bytes()).status, 201);
    let (id, base_url) =
        (statement.digest().to_string(), format!("http://{}", service.connection().address()));
    let folder = tempfile::tempdir().unwrap();
    let (description, types) = (folder.path().join("openapi.json"), folder.path().join("api.d.ts"));
    fs::write(&description, service.connection().get("/openapi.json").body).unwrap();
    let client = folder.path().join("openapi_client.mts");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/node/openapi_client.mts"), &client).unwrap();
    symlink(node_folder().join("node_modules"), folder.path().join("node_modules")).unwrap();

    run_package(
        "openapi-typescript/bin/cli.js",
        &[description.as_os_str(), "-o".as_ref(), types.as_os_str()],
    );
    every_path_has_a_type(&description, &types);
    let options = ["--noEmit", "--strict", "--skipLibCheck", "--allowImportingTsExtensions"];
    let options = [&options[..], &["--target", "es2022", "--module", "nodenext"]].concat();
    let arguments: Vec<&OsStr> = options.iter().map(OsStr::new).chain([client.as_os_str()]).collect();
    run_package("typescript/bin/tsc", &arguments);

    let found = must_run(node().arg(&client).args([&base_url, &id]));
    let found: Value = serde_json::from_slice(&found).unwrap();
    assert_eq!((&found["entries"][1], &found["proven"]), (&id.clone().into(), &id.into()), "{found}");
    Receipt::parse(data_encoding::HEXLOWER.decode(found["receipt"].as_str().unwrap().as_bytes()).unwrap())
        .unwrap();
    assert_eq!(found["unknown"], 404, "an error is a response of its own type");
    service.stop();
}

fn every_path_has_a_type(description: &Path, types: &Path) {
    let types = fs::read_to_string(types).unwrap();
    let description: Value = serde_json::from_slice(&fs::read(description).unwrap()).unwrap();
    let paths = description["paths"].as_object().unwrap();
    assert!(paths.len() > 30, "{}", paths.len());
    for path in paths.keys() {
        assert!(types.contains(&format!("    {path:?}: {{")), "{path}");
    }
}

/// Runs a script of a package from npm.
fn run_package(script: &str, arguments: &[&OsStr]) {
    must_run(node().arg(node_folder().join("node_modules").join(script)).args(arguments));
}

/// Runs a command that must succeed, and returns what it prints.
fn must_run(command: &mut Command) -> Vec<u8> {
    let ran = command.output().unwrap();
    let printed = [&ran.stdout[..], &ran.stderr].concat();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&printed));
    ran.stdout
}
