//! Every parser against generated and mutated input, each for `TABELLION_FUZZ_SECONDS`.
//!
//! Every run tries the same inputs, so that a change fails only for what it broke. `TABELLION_FUZZ_NEW=1` tries new ones.
//! A failure names its seed and its test; `TABELLION_FUZZ_SEED` tries that one input again.

use std::env;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::thread;
use std::time::Duration;

use hostile_input::Parser;
use hostile_input::hunt::{Find, hunt, replay};

const DEFAULT_SECONDS: u64 = 2;

#[test]
fn no_input_breaks_what_the_statement_parser_promises() {
    try_many_on(Parser::Statement);
}

#[test]
fn no_input_breaks_what_the_receipt_parser_promises() {
    try_many_on(Parser::Receipt);
}

#[test]
fn no_input_breaks_what_the_problem_details_parser_promises() {
    try_many_on(Parser::Problem);
}

#[test]
fn no_input_breaks_what_the_cbor_reader_promises() {
    try_many_on(Parser::Cbor);
}

#[test]
fn no_input_breaks_what_the_json_reader_promises() {
    try_many_on(Parser::Json);
}

#[test]
fn no_input_breaks_what_the_note_parser_promises() {
    try_many_on(Parser::Note);
}

#[test]
fn no_input_breaks_what_the_readers_of_records_promise() {
    try_many_on(Parser::Record);
}

#[test]
fn no_input_breaks_what_the_readers_of_payloads_promise() {
    try_many_on(Parser::Payload);
}

#[test]
fn no_input_breaks_what_the_reader_of_conditions_promises() {
    try_many_on(Parser::Condition);
}

#[test]
fn no_input_breaks_what_the_readers_of_agents_messages_promise() {
    try_many_on(Parser::Vap);
}

fn try_many_on(parser: Parser) {
    if let Some(seed) = number("TABELLION_FUZZ_SEED") {
        let verdict = replay(parser, seed).unwrap_or_else(|find| report(parser, &find));
        return eprintln!("{}: seed {seed} is {verdict:?}", parser.name());
    }
    let seconds = number("TABELLION_FUZZ_SECONDS").unwrap_or(DEFAULT_SECONDS);
    let first = match env::var_os("TABELLION_FUZZ_NEW") {
        Some(_) => RandomState::new().hash_one(parser.name()),
        None => 0,
    };
    let tally =
        hunt(parser, first, Duration::from_secs(seconds)).unwrap_or_else(|find| report(parser, &find));
    eprintln!("{}: {} accepted, {} refused, from seed {first}", parser.name(), tally.accepted, tally.refused);
    assert!(tally.accepted > 0 && tally.refused > 0, "inputs that all fare alike test nothing");
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

fn report(parser: Parser, find: &Find) -> ! {
    let name = parser.name();
    let seed = find.seed.map_or_else(|| "known".to_owned(), |seed| seed.to_string());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{seed}"));
    let kept = match fs::write(&file, &find.input) {
        Ok(()) => file.display().to_string(),
        Err(error) => format!("not kept: {error}"),
    };
    let thread = thread::current();
    let test = thread.name().expect("the thread of a test has its name");
    panic!(
        "{name} broke its promise: {find}\ninput: {kept}\nagain: TABELLION_FUZZ_SEED={seed} cargo test -p hostile-input {test}"
    );
}
