//! The README is run: every command in it, in order, in an empty folder, against a log that the README starts.

mod cli_support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use black_box::free_address;
use cli_support::{Dev, Folder, repository};

/// What the README calls the service that it starts. Here it has a port of its own.
const SERVICE: &str = "http://127.0.0.1:7390";
/// Where its witness listens. Here that has a port of its own too.
const WITNESS: &str = "127.0.0.1:7392";
/// Where its gateway listens. The same.
const GATEWAY: &str = "127.0.0.1:7400";
/// What starts that, on its usual port.
const START_GATEWAY: &str = "tabellion gateway run --dev";
/// What installs other people's MCP software; here that is there already.
const INSTALL: &str = "python3 -m venv mcp";
/// What the README says to start; here it runs already.
const START: &str = "cargo run --release -- serve --dev";
/// Commands that would test the tests, or change the shell only.
const NOT_RUN: &[&str] = &[START, "./test", "export PATH=$PWD/target/release:$PATH"];

/// A command with what the README shows of its output.
struct Step {
    command: String,
    shown: Vec<String>,
}

#[test]
fn the_tour_in_the_readme_goes_as_it_says() {
    let readme = fs::read_to_string(repository("README.md")).expect("the README");
    let steps = steps(&readme);
    assert!(steps.iter().any(|step| step.command == START), "the README starts a log");
    assert!(steps.len() > 15, "the README is read as it should be");
    let dev = Dev::start_in(Folder::new());
    let (witness, gateway) = (free_address().to_string(), free_address().to_string());
    let venv = black_box::python().parent().and_then(Path::parent).expect("a venv").to_owned();
    symlink(venv, dev.folder.path("mcp")).expect("a link");
    // A program on the path, and no function of the shell: what the tour puts into the background it ends by its number.
    fs::create_dir(dev.folder.path("bin")).expect("a folder");
    symlink(black_box::program(), dev.folder.path("bin/tabellion")).expect("a link");
    for step in steps.iter().filter(|step| !NOT_RUN.contains(&step.command.as_str())) {
        if step.command.starts_with(INSTALL) {
            continue;
        }
        let command = step.command.replace(WITNESS, &witness).replace(GATEWAY, &gateway);
        let command = command.replace(START_GATEWAY, &format!("{START_GATEWAY} --listen {gateway}"));
        let printed = run(&dev, &command);
        let mut lines = printed.lines();
        for shown in &step.shown {
            let shown = shown.replace(SERVICE, dev.url());
            assert!(lines.any(|line| fits(line, &shown)), "$ {}\nno {shown:?} in:\n{printed}", step.command);
        }
    }
}

#[test]
fn the_readme_starts_the_log_with_one_command_that_cargo_understands() {
    let manifest = fs::read_to_string(repository("Cargo.toml")).expect("the manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let members = manifest["workspace"]["default-members"].as_array().expect("default members");
    assert_eq!(members.iter().filter_map(toml::Value::as_str).collect::<Vec<_>>(), ["services/tabellion"]);
}

#[test]
fn every_file_that_the_documents_link_to_is_there() {
    for document in ["README.md", "ARCHITECTURE.md"] {
        let text = fs::read_to_string(repository(document)).expect(document);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(link.starts_with("http") || repository(link).exists(), "{document} links to {link}");
        }
    }
}

/// All commands of all `console` blocks. Lines after `> ` continue a command.
fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in readme.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        for line in block.lines() {
            match (line.strip_prefix("$ "), line.strip_prefix("> "), steps.last_mut()) {
                (Some(command), ..) => steps.push(Step { command: command.to_owned(), shown: Vec::new() }),
                (_, Some(more), Some(step)) => step.command.push_str(&format!("\n{more}")),
                (_, None, Some(step)) => step.shown.push(line.to_owned()),
                _ => panic!("a block begins with {line:?}"),
            }
        }
    }
    steps
}

/// Runs a line as a shell would, with `tabellion` on its path, and gives all that it printed.
fn run(dev: &Dev, line: &str) -> String {
    let line = line.replace(SERVICE, dev.url());
    let path = std::env::var("PATH").expect("a path");
    let mut shell = Command::new("bash");
    dev.folder.settle(&mut shell);
    shell.env("PATH", format!("{}:{path}", dev.folder.path("bin").display()));
    let output = shell.args(["-c", &line]).output().expect("bash");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "$ {line}\n{printed}");
    printed
}

/// Whether a line is the one shown, where `…` stands for anything.
fn fits(line: &str, shown: &str) -> bool {
    let mut pieces = shown.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}
