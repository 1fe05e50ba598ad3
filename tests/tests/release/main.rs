//! What a release consists of: packages made by `tools/release` from the program under test, and the files of `deploy/`,
//! checked by the tools that operators use. The program is dynamic here; only `tools/release binary` makes a static one.
#![allow(clippy::unwrap_used)]

mod artefacts;
mod debian_scripts;
mod deployment;
mod environments;
mod image;
mod sdk;
mod site;
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use black_box::cli::{Folder, repository};
use black_box::program;

/// Runs a step of `tools/release` with the program under test, into `out` of the folder.
fn release(folder: &Folder, step: &str) -> PathBuf {
    let binary = folder.path("program");
    if !binary.exists() {
        std::fs::copy(program(), &binary).unwrap();
        // Debug information is most of the file, and no part of a release.
        run(Command::new("strip").arg("--strip-all").arg(&binary));
    }
    release_of(folder, step, &binary)
}

/// Runs a step of `tools/release` with this program, fast, and returns the folder with the artefact.
fn release_of(folder: &Folder, step: &str, binary: &Path) -> PathBuf {
    run(&mut release_command(folder, step, binary));
    folder.path("out")
}

/// Returns the command for a step of `tools/release` with this program, into `out` of the folder.
fn release_command(folder: &Folder, step: &str, binary: &Path) -> Command {
    let mut command = Command::new(repository("tools/release"));
    command.args([step, "--compression", "1", "--out"]).arg(folder.path("out")).arg("--binary").arg(binary);
    command.env("CARGO", env!("CARGO")).env("SOURCE_DATE_EPOCH", "1790000000");
    command
}

/// Returns the only file of a folder whose name ends so.
fn file(folder: &Path, end: &str) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut matching = files.filter(|path| path.to_string_lossy().ends_with(end));
    let found = matching.next().unwrap_or_else(|| panic!("no {end} in {}", folder.display()));
    assert_eq!(matching.next(), None);
    found
}

/// Runs a command that must succeed, and returns what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{printed}{errors}");
    printed
}
