//! `tabellion log browse` in a real terminal, against a running log.

use black_box::cli::{Dev, Folder};
use black_box::{program, run_python_on};
use serde_json::{Value, json};

/// The private mode of the alternate screen.
const ALTERNATE_SCREEN: u64 = 1049;
/// SIGTERM.
const TERMINATE: u8 = 15;

/// Types at `log browse` in a terminal, and returns what `tests/python/terminal.py` prints.
#[track_caller]
fn browse(dev: &Dev, steps: Value) -> Value {
    let program = program();
    let arguments = [program.to_str().unwrap(), "log", "browse", dev.url()];
    let input = json!({ "folder": dev.folder.path("").to_str().unwrap(), "steps": steps });
    run_python_on("terminal.py", &arguments, &input)
}

/// A log with three entries of the issuer of `serve --dev`.
fn with_entries() -> Dev {
    let dev = Dev::start();
    for name in ["one", "two", "three"] {
        register(&dev.folder, name);
    }
    dev
}

fn register(folder: &Folder, name: &str) {
    let file = format!("{name}.json");
    folder.write(&file, format!("{{\"name\":\"{name}\",\"text\":\"\u{202e}\"}}"));
    folder.run(&["register", "--dev", &file]).must_end_with(0);
}

/// The terminal is as before: modes, screen and cursor.
#[track_caller]
fn must_be_restored(session: &Value) {
    assert_eq!(session["is_restored"], true, "{session:#}");
    let modes = session["modes"].as_array().unwrap();
    assert!(!modes.contains(&ALTERNATE_SCREEN.into()), "{session:#}");
    let output = session["output"].as_str().unwrap();
    assert!(output.contains("\u{1b}[?1049h") && output.contains("\u{1b}[?1049l"), "{session:#}");
    assert!(output.rfind("\u{1b}[?25h") > output.rfind("\u{1b}[?25l"), "the cursor is hidden: {session:#}");
}

fn screen(session: &Value, step: usize) -> &str {
    session["screens"][step].as_str().unwrap()
}

#[test]
fn entries_are_listed_followed_opened_with_their_proof_and_searched() {
    let dev = with_entries();
    dev.folder.write("four.json", "{\"name\":\"four\"}");
    let register = [program().to_str().unwrap(), "register", "--dev", "four.json"].map(str::to_owned);
    let session = browse(
        &dev,
        json!([
            { "until": "three.json" },
            { "until": ", verified, witnesses not checked" },
            { "run": register },
            { "until": "four.json" },
            { "type": "\u{1b}[B" },
            { "type": "\r" },
            { "until": "verified (offline)" },
            { "type": "\u{1b}[F" },
            { "until": "\"name\": \"three\"" },
            { "type": "\u{1b}" },
            { "until": "content type" },
            { "type": "/subject=one.json\r" },
            { "until": "1 entry   search: subject=one.json" },
            { "type": "q" },
        ]),
    );
    assert_eq!(session["code"], 0, "{session:#}");
    must_be_restored(&session);
    let list = screen(&session, 3);
    let position = |text: &str| list.find(text).unwrap_or_else(|| panic!("no {text}: {list}"));
    assert!(position("four.json") < position("three.json"), "{list}");
    assert!(position("three.json") < position("one.json"), "{list}");
    assert!(screen(&session, 6).starts_with("verified  "), "{}", screen(&session, 6));
    let payload = screen(&session, 8);
    assert!(payload.contains("\\u{202e}") && !payload.contains('\u{202e}'), "{payload}");
    let found = screen(&session, 12);
    assert!(found.contains("one.json") && !found.contains("two.json"), "{found}");
}

#[test]
fn a_lost_log_is_noted_and_control_c_restores_the_terminal() {
    let dev = with_entries();
    let session = browse(
        &dev,
        json!([
            { "until": "three.json" },
            { "kill": dev.pid().as_raw_nonzero() },
            { "until": "connection lost, retrying" },
            { "type": "\u{3}" },
        ]),
    );
    assert_eq!(session["code"], 0, "{session:#}");
    must_be_restored(&session);
}

#[test]
fn a_signal_to_stop_restores_the_terminal() {
    let dev = with_entries();
    let session = browse(&dev, json!([{ "until": "three.json" }, { "signal": TERMINATE }]));
    assert_eq!(session["code"], 0, "{session:#}");
    must_be_restored(&session);
}

#[test]
fn a_log_that_cannot_be_reached_is_an_error_on_the_ordinary_screen() {
    let dev = with_entries();
    let url = dev.url().to_owned();
    let folder = dev.stop();
    let program = program();
    let arguments = [program.to_str().unwrap(), "log", "browse", &url];
    let input = json!({ "folder": folder.path("").to_str().unwrap(), "steps": [] });
    let session = run_python_on("terminal.py", &arguments, &input);
    assert_eq!(session["code"], 7, "{session:#}");
    assert_eq!(session["is_restored"], true, "{session:#}");
    assert!(!session["output"].as_str().unwrap().contains("\u{1b}[?1049h"), "{session:#}");
}

#[test]
fn without_a_terminal_nothing_is_browsed() {
    let folder = Folder::new();
    let ended = folder.run(&["log", "browse", "http://127.0.0.1:1", "--json"]);
    assert_eq!(ended.must_end_with(2).error(), "no-terminal");
}
