//! The backend for JavaScript. One test for each use of the compiled engine, because its compilation takes seconds.

use std::time::Duration;

use sandbox::{Ending, Job, Language, Sandbox, Wasm};

use crate::javascript_guests::GUESTS;
use crate::support::{
    LIMITS, Row, assert_each, assert_honest, assert_honest_jobs_are_served, describe, function,
};

fn wasm() -> Wasm {
    Wasm::new().expect("the engine compiles")
}

#[test]
fn hostile_functions_end_as_expected_and_reach_nothing() {
    let wasm = wasm();
    assert_each(&wasm, Language::JavaScript, GUESTS, LIMITS.time, || {
        assert_honest(&wasm, Language::JavaScript)
    });
    wasm.self_test().expect("WebAssembly isolates");
}

#[test]
fn honest_jobs_are_served_among_two_hundred_hostile_ones() {
    let wasm = wasm();
    let hostile = [
        "function main() { for (;;) {} }",
        "function main() { return main() }",
        "function main() { for (;;) console.log('spam') }",
        "function main() { const all = []; for (;;) all.push(new Array(100000).fill(1)) }",
        "function main() { return 'x'.repeat(1e9) }",
    ]
    .map(|program| function(Language::JavaScript, program, "[]"));
    assert_honest_jobs_are_served(&wasm, &hostile, Language::JavaScript);
}

#[test]
fn javascript_runs_as_expected() {
    let wasm = wasm();
    each_kind_of_file_works(&wasm);
    fuel_and_value_are_the_same_on_every_run(&wasm);
    wall_time_is_the_last_bound(&wasm);
    arguments_and_printed_text_arrive(&wasm);
    files_import_each_other(&wasm);
    output_has_an_exact_bound(&wasm);
    the_engine_has_its_digest(&wasm);
}

/// Kinds of files, with what `main` of each gives.
const HONEST: &[Row] = &[
    ("a declaration", "function main() { return 1 }", &["returned 1"]),
    ("a constant", "const main = () => 2", &["returned 2"]),
    ("a global", "globalThis.main = () => 3", &["returned 3"]),
    ("an export of CommonJS", "module.exports = { main: () => 4 }", &["returned 4"]),
    ("another export of CommonJS", "exports.main = () => 5", &["returned 5"]),
    ("an export of a module", "export function main() { return 6 }", &["returned 6"]),
    ("a default export", "export default () => 7", &["returned 7"]),
    ("an asynchronous function", "async function main() { await null; return 8 }", &["returned 8"]),
    (
        "an asynchronous module",
        "const nine = await Promise.resolve(9); export const main = () => nine",
        &["returned 9"],
    ),
    ("no value", "function main() {}", &["returned nothing"]),
    ("null", "function main() { return null }", &["returned null"]),
    (
        "a structure",
        "function main() { return { b: [1, 'ü', null], a: undefined } }",
        &[r#"returned {"b":[1,"ü",null]}"#],
    ),
    ("a rejection", "async function main() { throw new TypeError('no') }", &["threw TypeError: no"]),
    (
        "a recursion that is caught",
        "function f() { return f() } function main() { try { f() } catch { return 10 } }",
        &["returned 10"],
    ),
    ("no function", "const main = 1", &["not loaded ReferenceError: 'main.js' has no function 'main'"]),
    ("no name", "", &["not loaded ReferenceError: main is not defined"]),
    ("no JavaScript", "function main( {", &["not loaded SyntaxError"]),
];

fn each_kind_of_file_works(wasm: &Wasm) {
    assert_each(wasm, Language::JavaScript, HONEST, LIMITS.time, || {
        assert_honest(wasm, Language::JavaScript)
    });
}

fn fuel_and_value_are_the_same_on_every_run(wasm: &Wasm) {
    let program = "function main() { return [Math.random(), Date.now(), new Date().toString(), String(0 / 0), performance.now()] }";
    let job = function(Language::JavaScript, program, "[]");
    let runs = [(); 3].map(|()| wasm.run(&job).expect("the sandbox works"));

    assert_eq!(runs[0].ending, Ending::Finished, "{:?}", runs[0]);
    assert!(runs.iter().all(|run| (&run.value, run.fuel) == (&runs[0].value, runs[0].fuel)), "{runs:?}");
    assert!(runs[0].fuel.is_some_and(|fuel| fuel > 0));
}

fn wall_time_is_the_last_bound(wasm: &Wasm) {
    let mut job = function(Language::JavaScript, "function main() { for (;;) {} }", "[]");
    job.limits.fuel = u64::MAX;
    job.limits.time = Duration::from_millis(200);

    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(wasm.run(&job).expect("the sandbox works").ending, Ending::OutOfTime));
        assert_honest(wasm, Language::JavaScript);
    });
}

fn arguments_and_printed_text_arrive(wasm: &Wasm) {
    let program = "function main(...all) { console.log('out', 1); console.error('err'); return all }";
    let outcome = wasm
        .run(&function(Language::JavaScript, program, r#"[1,"ü",{"a":[true]}]"#))
        .expect("the sandbox works");

    assert_eq!(describe(&outcome), r#"returned [1,"ü",{"a":[true]}]"#);
    assert_eq!((&outcome.stdout[..], &outcome.stderr[..]), (&b"out 1\n"[..], &b"err\n"[..]));
}

fn files_import_each_other(wasm: &Wasm) {
    let mut job = function(
        Language::JavaScript,
        "import { add } from './lib/sums.js'; export { add as main }",
        "[2,3]",
    );
    let missing = describe(&wasm.run(&job).expect("the sandbox works"));
    assert_eq!(missing, "not loaded ReferenceError: the job has no file 'lib/sums.js'");

    job.files.insert("lib/sums.js".to_owned(), b"export const add = (a, b) => a + b".to_vec());
    assert_eq!(describe(&wasm.run(&job).expect("the sandbox works")), "returned 5");
}

fn output_has_an_exact_bound(wasm: &Wasm) {
    let ending = |output: u64| {
        let mut job: Job = function(Language::JavaScript, "function main() { console.log('1234') }", "[]");
        job.limits.output = output;
        wasm.run(&job).expect("the sandbox works").ending
    };
    assert_eq!((ending(5), ending(4)), (Ending::Finished, Ending::TooMuchOutput));
}

/// The digest is also in the tree, for readers without our program; the version is the one that is compiled in.
fn the_engine_has_its_digest(wasm: &Wasm) {
    let engine = wasm.engine();
    let digest = include_str!("../../engines/quickjs.wasm.sha256").trim();
    let wasmtime = include_str!("../../../../Cargo.lock").split("name = \"wasmtime\"\nversion = \"").nth(1);

    assert_eq!(engine.digests, [("quickjs.wasm".to_owned(), format!("sha256:{digest}"))]);
    let version = wasmtime.and_then(|rest| rest.split('"').next()).expect("wasmtime is locked");
    assert!(engine.version.ends_with(&format!("in {version}")), "{} {version}", engine.version);
}
