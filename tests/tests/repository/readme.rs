//! Tests of the documents: the commands of README.md and docs/tour.md are run in order, in one empty folder, against a
//! log as the README starts it, and those of docs/agentroa.md, docs/recording.md and docs/verification.md each in another
//! one; the README stays short.
//!
//! Not here: links ([`site`](crate::site)).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use black_box::cli::{Dev, Folder, repository};
use black_box::free_address;

/// URL of the service in the documents. The test replaces it by one with a free port.
const SERVICE: &str = "http://127.0.0.1:7390";
/// Address of the witness in the documents. The test replaces its port.
const WITNESS: &str = "127.0.0.1:7392";
/// Address of the gateway in the documents. The test replaces its port.
const GATEWAY: &str = "127.0.0.1:7400";
/// Address of the registry server in the documents. The test replaces its port.
const REGISTRY: &str = "127.0.0.1:7394";
/// Address of the verification service in the documents. The test replaces its port.
const VERIFICATION: &str = "127.0.0.1:7395";
/// The session file that docs/recording.md names, of Claude Code: an agent writes a file of two lines.
const SESSION: &str = r#"{"type":"user","uuid":"u1","sessionId":"s","cwd":"/srv/shop","timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":"Write the program."}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","cwd":"/srv/shop","timestamp":"2026-03-01T10:00:01Z","message":{"id":"m1","role":"assistant","model":"claude-fixture-1","content":[{"type":"tool_use","id":"c1","name":"Write","input":{"file_path":"/srv/shop/src/main.rs","content":"fn main() {\n}\n"}}],"usage":{"input_tokens":10,"output_tokens":5}}}
{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s","cwd":"/srv/shop","timestamp":"2026-03-01T10:00:02Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"written"}]}}
"#;
/// Command that starts the gateway on its default port. The test adds the address.
const START_GATEWAY: &str = "tabellion gateway run --dev";
/// Start of the command that installs MCP software from PyPI. `./test` has installed it already.
const INSTALL: &str = "python3 -m venv mcp";
/// Command that starts the log. The test starts the log itself.
const START: &str = "cargo run --release -- serve --dev";
/// Maximum number of lines of the README.
const README_LINES: usize = 150;
/// Commands that are not run: the log runs already, the tests would test themselves, and `export` changes only the shell.
const NOT_RUN: &[&str] = &[START, "./test", "export PATH=$PWD/target/release:$PATH"];

/// A command with the lines of its output that a document shows.
struct Step {
    command: String,
    shown: Vec<String>,
}

#[test]
fn the_commands_of_the_readme_and_the_tour_print_what_is_shown() {
    let readme = steps(&read("README.md"));
    assert!(readme.iter().any(|step| step.command == START), "the README starts a log");
    assert!(readme.iter().any(|step| step.command.starts_with("tabellion register")), "the README registers");
    let tour = steps(&read("docs/tour.md"));
    assert!(tour.len() > 30, "the console blocks of the tour are found: {}", tour.len());
    run_in_order(Folder::new(), readme.into_iter().chain(tour));
}

#[test]
fn the_commands_of_the_tour_of_agentroa_print_what_is_shown() {
    let tour = steps(&read("docs/agentroa.md"));
    assert!(tour.len() > 30, "the console blocks of the tour are found: {}", tour.len());
    run_in_order(Folder::new(), tour.into_iter());
}

#[test]
fn the_commands_of_the_page_about_recording_print_what_is_shown() {
    let page = steps(&read("docs/recording.md"));
    assert!(page.len() > 6, "the console blocks of the page are found: {}", page.len());
    let folder = Folder::new();
    folder.write("session.jsonl", SESSION);
    run_in_order(folder, page.into_iter());
}

#[test]
fn the_commands_of_the_page_about_verification_print_what_is_shown() {
    let page = steps(&read("docs/verification.md"));
    assert!(page.len() > 6, "the console blocks of the page are found: {}", page.len());
    run_in_order(Folder::new(), page.into_iter());
}

/// Runs the commands in this folder, in which a log runs, and compares what they print.
fn run_in_order(folder: Folder, steps: impl Iterator<Item = Step>) {
    let dev = Dev::start_in(folder);
    let addresses =
        [WITNESS, GATEWAY, REGISTRY, VERIFICATION].map(|shown| (shown, free_address().to_string()));
    let start_gateway = format!("{START_GATEWAY} --listen {GATEWAY}");
    let venv = black_box::python().parent().and_then(Path::parent).expect("a venv").to_owned();
    symlink(venv, dev.folder.path("mcp")).expect("a link");
    // A program on the path, and no function of the shell: what a tour puts into the background it ends by its number.
    fs::create_dir(dev.folder.path("bin")).expect("a folder");
    symlink(black_box::program(), dev.folder.path("bin/tabellion")).expect("a link");
    let is_run =
        |step: &Step| !NOT_RUN.contains(&step.command.as_str()) && !step.command.starts_with(INSTALL);
    for step in steps.filter(is_run) {
        let command = step.command.replace(START_GATEWAY, &start_gateway);
        let command = addresses.iter().fold(command, |command, (shown, free)| command.replace(shown, free));
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
fn the_readme_stays_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines; move text to docs/");
}

fn read(document: &str) -> String {
    fs::read_to_string(repository(document)).expect(document)
}

/// Parses the commands of all `console` blocks. A line that starts with `> ` continues the command.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in document.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
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

/// Runs a command in bash, with `tabellion` on its path, and returns its output.
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

/// Returns `true` if a line matches the shown one, in which `…` stands for any text.
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
