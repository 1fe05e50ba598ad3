//! The description of the API, as others' software reads it: a validator finds nothing wrong, and clients are generated from it.

use std::fs;

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
fn typescript_types_are_generated_for_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let description = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/openapi.json");
    let types = folder.path().join("api.d.ts");
    let generator = node_folder().join("node_modules/openapi-typescript/bin/cli.js");
    let ran = node().arg(generator).arg(description).arg("-o").arg(&types).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let types = fs::read_to_string(types).unwrap();
    let description: Value = serde_json::from_str(&fs::read_to_string(description).unwrap()).unwrap();
    let paths = description["paths"].as_object().unwrap();
    assert!(paths.len() > 30, "{}", paths.len());
    for path in paths.keys() {
        assert!(types.contains(&format!("    {path:?}: {{")), "{path}");
    }
}
