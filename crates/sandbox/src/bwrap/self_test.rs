//! Proof of the isolation, by guests that try to break it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Bwrap;
use crate::{Call, Ending, Job, Limits, Outcome, Sandbox, SandboxError};

const PROBE: &[u8] = include_bytes!("probe.py");

const LIMITS: Limits =
    Limits { fuel: 0, memory: 64 << 20, output: 4096, processes: 8, time: Duration::from_secs(20) };

/// The bound on wall time for the guest that sleeps.
const SHORT: Duration = Duration::from_millis(500);

/// A hostile guest: the bound that it tries, its program, its wall time, and the only acceptable ending.
const HOSTILE: &[(&str, &str, Duration, Ending)] = &[
    (
        "memory",
        "try: b'x' * (1 << 30)\nexcept MemoryError: raise SystemExit(77)",
        LIMITS.time,
        Ending::Exited(77),
    ),
    ("output", "print('spam' * 5000)", LIMITS.time, Ending::TooMuchOutput),
    ("wall time", "import os, time; os.closerange(0, 3); time.sleep(60)", SHORT, Ending::OutOfTime),
];

/// Returns the first restriction that is missing.
pub(super) fn run(bwrap: &Bwrap) -> Result<(), SandboxError> {
    if !bwrap.has_tool("python3") {
        return Err(SandboxError::NotIsolated(
            "the self-test needs /usr/bin/python3: install the package python3".to_owned(),
        ));
    }
    probe(bwrap)?;
    for (bound, program, time, expected) in HOSTILE {
        let ending = run_python(bwrap, program.as_bytes(), *time)?.ending;
        if ending != *expected {
            return Err(SandboxError::NotIsolated(format!(
                "no bound on {bound}: the guest ended with {ending:?}"
            )));
        }
    }
    Ok(())
}

fn probe(bwrap: &Bwrap) -> Result<(), SandboxError> {
    let outcome = run_python(bwrap, PROBE, LIMITS.time).map_err(|error| {
        SandboxError::NotIsolated(format!(
            "{error}; are user namespaces allowed on this machine, and is bubblewrap 0.8 or newer?"
        ))
    })?;
    let missing = String::from_utf8_lossy(&outcome.stdout);
    match (outcome.ending, missing.lines().next()) {
        (Ending::Finished, None) => Ok(()),
        (Ending::Finished, Some(first)) => Err(SandboxError::NotIsolated(format!("missing: {first}"))),
        (ending, _) => Err(SandboxError::NotIsolated(format!(
            "the probe ended with {ending:?}: {}",
            String::from_utf8_lossy(&outcome.stderr).trim()
        ))),
    }
}

fn run_python(bwrap: &Bwrap, program: &[u8], time: Duration) -> Result<Outcome, SandboxError> {
    bwrap.run(&Job {
        files: BTreeMap::from([("probe.py".to_owned(), program.to_vec())]),
        call: Call::Program {
            command: ["python3", "-S", "/job/probe.py"].map(str::to_owned).to_vec(),
            stdin: Vec::new(),
        },
        limits: Limits { time, ..LIMITS },
    })
}
