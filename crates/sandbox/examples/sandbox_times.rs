//! Prints how long the sandboxes take on this machine: `cargo run --release -p sandbox --features wasm --example sandbox_times`.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use sandbox::{Bwrap, Call, Ending, Job, Language, Limits, Sandbox, Wasm};

/// Runs of each measurement.
const RUNS: usize = 21;

fn main() -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let wasm = Wasm::new()?;
    println!("JavaScript: engine compiled in      {:>9.1?}", begun.elapsed());
    let javascript = job(Language::JavaScript, "main.js", "function main(a, b) { return a + b }");
    println!("JavaScript: one call, p50           {:>9.1?}", median(|| honest(&wasm, &javascript))?);
    println!(
        "JavaScript: ten calls, p50          {:>9.1?}",
        median(|| (0..10).try_for_each(|_| honest(&wasm, &javascript)))?
    );

    let bwrap = Bwrap::new()?;
    let python = job(Language::Python, "main.py", "def main(a, b):\n    return a + b\n");
    println!("Python: one call, p50               {:>9.1?}", median(|| honest(&bwrap, &python))?);
    let begun = Instant::now();
    wasm.self_test()?;
    bwrap.self_test()?;
    println!("self-tests of both                  {:>9.1?}", begun.elapsed());
    Ok(())
}

fn job(language: Language, file: &str, program: &str) -> Job {
    Job {
        files: BTreeMap::from([(file.to_owned(), program.as_bytes().to_vec())]),
        call: Call::Function {
            language,
            file: file.to_owned(),
            function: "main".to_owned(),
            arguments: "[2,3]".to_owned(),
        },
        limits: Limits {
            fuel: 1_000_000_000,
            memory: 64 << 20,
            output: 1 << 16,
            processes: 1,
            time: Duration::from_secs(10),
        },
    }
}

fn honest(sandbox: &dyn Sandbox, job: &Job) -> Result<(), Box<dyn Error>> {
    let outcome = sandbox.run(job)?;
    if outcome.ending == Ending::Finished && outcome.value.as_deref() == Some("5") {
        return Ok(());
    }
    Err(format!("unexpected outcome: {outcome:?}").into())
}

/// Returns the median time.
fn median(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let begun = Instant::now();
        run()?;
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times[RUNS / 2])
}
