//! Proof of the bounds, by guests that try to exceed them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Wasm;
use crate::{Call, Ending, Job, Language, Limits, Sandbox, SandboxError};

/// Bounds that each guest below exceeds in well under a second, and an honest guest does not.
const LIMITS: Limits =
    Limits { fuel: 200_000_000, memory: 16 << 20, output: 4096, processes: 1, time: Duration::from_secs(20) };

/// A hostile guest: the restriction that it tries, its function `main`, and the only acceptable ending.
const HOSTILE: &[(&str, &str, Ending)] = &[
    ("fuel", "function main() { for (;;) {} }", Ending::OutOfFuel),
    (
        "memory",
        "function main() { const all = []; for (;;) all.push(new Uint8Array(1 << 20)) }",
        Ending::OutOfMemory,
    ),
    ("output", "function main() { for (;;) console.log('spam') }", Ending::TooMuchOutput),
    ("output", "function main() { return 'x'.repeat(5000) }", Ending::TooMuchOutput),
];

/// Names through which a guest could reach the host, if the engine had them.
const HONEST: &str = "function main(a, b) { return [a + b, typeof require, typeof process, typeof std, typeof os, typeof fetch] }";
const HONEST_VALUE: &str = r#"[5,"undefined","undefined","undefined","undefined","undefined"]"#;

/// Returns the first restriction that does not hold.
pub(super) fn run(wasm: &Wasm) -> Result<(), SandboxError> {
    for (restriction, program, expected) in HOSTILE {
        let ending = wasm.run(&job(program, "[]"))?.ending;
        if ending != *expected {
            return Err(SandboxError::NotIsolated(format!(
                "no bound on {restriction}: the guest ended with {ending:?}"
            )));
        }
    }
    let honest = wasm.run(&job(HONEST, "[2,3]"))?;
    if honest.value.as_deref() != Some(HONEST_VALUE) {
        return Err(SandboxError::NotIsolated(format!(
            "the guest sees other globals than expected: {honest:?}"
        )));
    }
    Ok(())
}

fn job(program: &str, arguments: &str) -> Job {
    Job {
        files: BTreeMap::from([("main.js".to_owned(), program.as_bytes().to_vec())]),
        call: Call::Function {
            language: Language::JavaScript,
            file: "main.js".to_owned(),
            function: "main".to_owned(),
            arguments: arguments.to_owned(),
        },
        limits: LIMITS,
    }
}
