//! The verifier as a WebAssembly module, as the program serves it, under the WASI of Node.js: every vector of bundles,
//! statements and receipts gets the answer that the verifier gives natively.

use std::fs;
use std::path::Path;

use black_box::{Log, run_node};

#[test]
fn the_module_that_the_service_serves_gives_the_answer_of_every_vector() {
    let log = Log::sqlite();
    let service = log.serve();
    let module = service.connection().get("/ui/verify/verifier.wasm");
    assert_eq!((module.status, module.header("content-type")), (200, Some("application/wasm")));
    fs::write(log.path("verifier.wasm"), &module.body).unwrap();
    service.stop();

    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors").canonicalize().unwrap();
    let module = log.path("verifier.wasm").display().to_string();
    let results = run_node("browser_verifier.mjs", &[&module, &vectors.display().to_string()]);
    let results = results.as_array().unwrap();
    assert!(results.len() > 70, "only {} vectors", results.len());
    for result in results {
        assert_eq!(result["given"], result["expected"], "{}", result["name"]);
    }
}
