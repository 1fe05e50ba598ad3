//! Terminals: colour, lists with headings and short IDs, and bars that say how far a command is. Pipes and files get none of
//! it.

use std::fs;

use black_box::cli::{Dev, Folder};
use black_box::on_a_terminal;
use ed25519_dalek::SigningKey;
use tlog::note::{LocalKey, NoteSigner};

/// The configuration of a log of `serve --dev`.
const CONFIG: [&str; 2] = ["--config", "tabellion-dev/tabellion.toml"];
/// The issuer of the samples of `serve --dev`.
const DEV_ISSUER: &str = "https://dev.issuer.example";
/// What bars are made of.
const BLOCKS: [char; 2] = ['█', '░'];
/// The environment variable that switches colours off.
const NO_COLOR: &[(&str, &str)] = &[("NO_COLOR", "1")];
/// Number of characters of an ID on a terminal.
const ID_DIGITS: usize = 12;

/// Runs a command of the program on a terminal, with these environment variables.
#[track_caller]
fn shown(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = folder.command(arguments);
    command.envs(variables.iter().copied());
    on_a_terminal(&command)
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let dev = Dev::start();
    let folder = &dev.folder;
    folder.write("a.json", "{\"n\":1}");
    folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    let verify = ["verify", "a.json.transparent.cose"];
    let never = [&verify[..], &["--color", "never"]].concat();
    assert!(shown(folder, &verify, &[]).contains("\u{1b}[32m"));
    assert!(!shown(folder, &verify, NO_COLOR).contains('\u{1b}'));
    assert!(!shown(folder, &never, &[]).contains('\u{1b}'));
    assert!(!folder.run(&verify).text().contains('\u{1b}'));
    let always = folder.run(&[&verify[..], &["--color", "always"]].concat());
    assert!(always.text().contains("\u{1b}[32m"));
}

/// Returns the bars that a terminal was sent, in their order: each a count, and perhaps rate and time.
fn bars(printed: &str) -> Vec<&str> {
    let lines = printed.split(['\r', '\n']).filter(|line| line.contains(BLOCKS));
    lines.filter_map(|line| line.rsplit_once(BLOCKS)).map(|(_, count)| count.trim()).collect()
}

/// Returns whether a bar is full: `6/6 entries`, `1.50 KiB/1.50 KiB`. A bar is drawn a few times in a second, so that only that of
/// a small log is certain to be seen full.
fn is_full(bar: &str) -> bool {
    let count = bar.split("  ").next().unwrap_or_default();
    count.split_once('/').is_some_and(|(done, of)| of == done || of.strip_suffix(" entries") == Some(done))
}

/// Runs a command on a terminal three times, each time with another name for what it makes: the first draws bars, of which
/// the last is as expected, and the others none.
#[track_caller]
fn draws_a_bar(folder: &Folder, is_expected: fn(&str) -> bool, arguments: impl Fn(&str) -> Vec<String>) {
    let run = |name: &str, more: &[&str]| {
        let arguments = arguments(name);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        (arguments.join(" "), shown(folder, &arguments, &[]))
    };
    let (line, printed) = run("first", &[]);
    let bars = bars(&printed);
    assert!(bars.last().is_some_and(|last| is_expected(last)), "{line}: {bars:?}");
    assert!(!bars.iter().any(|bar| bar.contains("/0 ")), "{line} counts to nothing: {bars:?}");
    for (name, more) in [("second", "--quiet"), ("third", "--no-progress")] {
        let (line, printed) = run(name, &[more]);
        assert!(!printed.contains(BLOCKS), "{line}: {printed}");
    }
}

#[test]
fn registering_several_files_draws_a_bar() {
    let dev = Dev::start();
    let folder = &dev.folder;
    for n in 0..40 {
        for name in ["first", "second", "third"] {
            folder.write(&format!("{name}-{n}.json"), format!("{{\"{name}\":{n}}}"));
        }
    }
    let register = |name: &str| -> Vec<String> {
        let files = (0..40).map(|n| format!("{name}-{n}.json"));
        ["register", "--dev"].map(str::to_owned).into_iter().chain(files).collect()
    };
    draws_a_bar(folder, |bar| bar.contains("/40  "), register);
    let again = register("first");
    let piped = folder.run(&again.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(piped.must_end_with(0).stderr.is_empty(), "{piped}");
    assert!(piped.text().ends_with("0 registered, 40 by an earlier run, 0 failed\n"), "{piped}");
}

#[test]
fn every_command_that_reads_or_writes_a_whole_log_draws_a_bar() {
    let dev = Dev::start();
    let folder = &dev.folder;
    let url = dev.url().to_owned();
    folder.run(&[&["log", "freeze", "--to-move"], &CONFIG[..]].concat()).must_end_with(0);
    let configured = |line: &str| words(&format!("{line} {}", CONFIG.join(" ")));
    draws_a_bar(folder, is_full, |_| configured("audit"));
    draws_a_bar(folder, is_full, |_| words(&format!("audit --url {url}")));
    draws_a_bar(folder, is_full, |_| configured("log fsck --deep"));
    draws_a_bar(folder, is_full, |name| configured(&format!("log export {name}.export")));
    draws_a_bar(folder, is_full, |name| configured(&format!("backup create {name}.backup")));
    draws_a_bar(folder, is_full, |_| words("backup verify first.backup"));
    for (command, file) in [("log import", "first.export"), ("backup restore", "first.backup")] {
        draws_a_bar(folder, is_full, |name| {
            let to = folder.path(&format!("{name}-{file}.copy"));
            fs::create_dir_all(&to).unwrap();
            let to = to.display();
            configured(&format!("{command} {file} --db sqlite:{to}/log.db --state-dir {to}"))
        });
    }
}

#[test]
fn making_a_large_log_draws_a_bar() {
    let folder = Folder::new();
    draws_a_bar(&folder, is_full, |name| words(&format!("bench grow 20 --folder {name}")));
}

/// A list of a command: a heading that is not part of a row, and an ID in it with the part that terminals get.
struct List {
    arguments: Vec<String>,
    heading: &'static str,
    id: String,
    short: String,
}

impl List {
    fn new(line: &str, heading: &'static str, id: &str) -> Self {
        Self::shortened(line, heading, id, id)
    }

    /// A list of checkpoint keys, of which terminals get the part after the name.
    fn of_keys(line: &str, heading: &'static str, vkey: &str) -> Self {
        let (_, id) = vkey.split_once('+').expect("a vkey");
        Self::shortened(line, heading, vkey, id)
    }

    fn shortened(line: &str, heading: &'static str, whole: &str, id: &str) -> Self {
        let (id, short) = (whole.to_owned(), format!("{}…", &id[..ID_DIGITS]));
        Self { arguments: words(line), heading, id, short }
    }
}

/// Splits a command line at its blanks.
fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Every list of the program that a log of `serve --dev` has rows for. That of the inbox needs a second process.
fn lists(dev: &Dev) -> Vec<List> {
    let folder = &dev.folder;
    folder.write("a.json", "{\"n\":1}");
    folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    let entry = folder.run(&["statement", "hash", "a.json.cose"]).text().trim().to_owned();
    let hold = ["entry", "hold", "a.json.cose", "--case", "2026-17", "--key", "tabellion-dev/operator.key"];
    folder.run(&[&hold[..], &CONFIG].concat()).must_end_with(0);
    let left = folder.run(&["entry", "list", "--after", "2"]).text().lines().count();

    let streams = folder.run(&["stream", "list", DEV_ISSUER, "--json"]).must_end_with(0).json();
    let (stream, first) = (&streams["streams"][0]["stream"], &streams["streams"][0]["first"]["entry_id"]);
    let (stream, first) = (stream.as_str().expect("a stream"), first.as_str().expect("an entry ID"));

    let log = folder.run(&["trust", "show", "dev.tabellion.example", "--json"]).must_end_with(0).json();
    let vkey = log["anchors"][0]["checkpoint_keys"][0].as_str().expect("a checkpoint key").to_owned();
    let witness = LocalKey::cosigner("w.example".parse().unwrap(), SigningKey::from_bytes(&[7; 32])).unwrap();
    let witness = witness.key().to_string();
    folder.write("witnesses.txt", format!("witness w {witness} http://127.0.0.1:1\nquorum none\n"));

    vec![
        List::new("entry list --after 2", "leaf  committed", &entry),
        List::new("entry search --subject a.json", "leaf  committed", &entry),
        List::new(&format!("entry tail --after 2 --count {left}"), "leaf  committed", &entry),
        List::new(&format!("entry holds {}", CONFIG.join(" ")), "released", &entry),
        List::new(&format!("session show {stream}"), "leaf  committed", first),
        List::new(&format!("stream list {DEV_ISSUER}"), "from record", first),
        List::new(&format!("stream show {DEV_ISSUER} {stream}"), "recorded", first),
        List::of_keys("trust list", "signs", &vkey),
        List::of_keys("witness list --policy witnesses.txt", "kind", &witness),
    ]
}

#[test]
fn every_list_has_headings_and_short_ids_on_a_terminal_and_whole_ids_in_a_pipe() {
    let dev = Dev::start();
    for List { arguments, heading, id, short } in lists(&dev) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let printed = shown(&dev.folder, &arguments, NO_COLOR);
        assert!(printed.contains(heading) && printed.contains(&short), "{arguments:?}: {printed}");
        assert!(!printed.contains(&id), "{arguments:?}: {printed}");
        let piped = dev.folder.run(&arguments).must_end_with(0).text();
        assert!(piped.contains(&id) && !piped.contains(heading), "{arguments:?}: {piped}");
    }
}
