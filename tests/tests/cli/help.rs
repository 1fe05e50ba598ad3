//! Help: short, an example first, and what it says is what the program does.

use std::fs;

use black_box::cli::{Folder, help_of, repository, runnable_commands};

/// Fits a small terminal, with the prompt.
const LINES: usize = 24;
/// Set to write the golden file anew.
const WRITE: &str = "TABELLION_TEST_WRITE_GOLDEN";

#[test]
fn help_of_every_command_fits_a_screen_and_begins_with_an_example() {
    let folder = Folder::new();
    for command in runnable_commands(&folder) {
        let help = help_of(&folder, &command);
        let name = command.join(" ");
        assert!(help.lines().count() < LINES, "{name}: {} lines\n{help}", help.lines().count());
        let first = help.lines().next().unwrap_or_default();
        assert!(first.starts_with(&format!("example:  tabellion {}", command[0])), "{name}: {first}");
        let example: Vec<&str> = first.split_whitespace().skip(2).take(command.len()).collect();
        assert_eq!(example, command, "the example of {name} is of another command");
    }
}

#[test]
fn help_is_what_it_was() {
    let folder = Folder::new();
    let mut commands = runnable_commands(&folder);
    commands.insert(0, Vec::new());
    let all: String = commands
        .iter()
        .map(|command| format!("### tabellion {}\n{}\n", command.join(" "), help_of(&folder, command)))
        .collect();
    let golden = repository("tests/golden/help.txt");
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(golden.parent().expect("a folder")).expect("a folder");
        fs::write(&golden, &all).expect("the golden file");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    let differs = all.lines().zip(expected.lines()).find(|(is, was)| is != was);
    assert!(all == expected, "help changed ({differs:?}): look at it, then run with {WRITE}=1");
}

#[test]
fn a_mistyped_flag_command_or_setting_ends_with_2_and_a_suggestion() {
    let folder = Folder::new();
    for (typed, meant) in [
        (&["serve", "--lisen", "x"][..], "--listen"),
        (&["regster"], "register"),
        (&["recipt", "get"], "receipt"),
        (&["verify", "--reciept", "x"], "--receipt"),
        (&["key", "rotat"], "rotate"),
        (&["register", "--tiemout", "1", "f"], "--timeout"),
    ] {
        let ended = folder.run(typed);
        assert!(ended.must_end_with(2).stderr.contains(meant), "{typed:?}: {ended}");
        assert!(ended.stdout.is_empty(), "{typed:?}: {ended}");
    }
    folder.write("tabellion.toml", "admin_lisen = \"127.0.0.1:1\"\n");
    let ended = folder.run(&["config", "show"]);
    assert!(ended.must_end_with(2).stderr.contains("admin_listen"), "{ended}");
}

#[test]
fn every_topic_and_every_code_of_the_errors_page_has_a_page() {
    let folder = Folder::new();
    for topic in [
        "exit-codes",
        "errors",
        "config",
        "formats",
        "policies",
        "trust",
        "watching",
        "receipt get",
        "vrf-canonical",
        "unreachable",
    ] {
        let words: Vec<&str> = std::iter::once("help").chain(topic.split(' ')).collect();
        assert!(!folder.run(&words).must_end_with(0).stdout.is_empty(), "{topic}");
    }
    folder.run(&["help", "no-such-thing"]).must_end_with(5);
}

#[test]
fn every_shell_gets_a_completion_script() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&["completion", shell]).must_end_with(0).text();
        assert!(script.contains("tabellion") && script.contains("register"), "{shell}");
    }
}
