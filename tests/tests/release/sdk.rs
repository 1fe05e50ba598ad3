//! The npm package of the SDK for TypeScript, as it is released. The tests of environments install it, and the wheel.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use black_box::cli::Folder;
use black_box::node;
use black_box::sdk::write_core;
use serde_json::Value;

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

#[test]
fn the_npm_package_unpacks_to_a_module_with_its_core_and_types_which_node_imports() {
    let folder = Folder::new();
    let (archive, core) = npm_package(&folder);
    run(Command::new("tar")
        .arg("--extract")
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(folder.path("")));

    let package = folder.path("package");
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
