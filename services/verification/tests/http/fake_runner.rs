//! Checks that run nothing: the work is a text that says how they end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use checks::{CheckRequest, Detail, Engines, Facility, Report, RunChecks, RunError, Status};
use sandbox::Engine;

/// Reports what the work says: `"pass"`, `"fail"`, `"wait"` (until released, then pass), `"no engine"`, `"broken"`,
/// `"broken first"` (the first run of all; later as `"wait"`).
pub struct FakeRunner {
    engines: Engines,
    is_defective: AtomicBool,
    runs: AtomicUsize,
    released: Mutex<bool>,
    release: Condvar,
}

fn engine() -> Engine {
    Engine {
        sandbox: "none".into(),
        name: "fake".into(),
        version: "1".into(),
        digests: vec![("fake".into(), format!("sha256:{}", "0".repeat(64)))],
    }
}

impl FakeRunner {
    pub fn new() -> Self {
        let available = BTreeMap::from([(Facility::Javascript, engine())]);
        let engines = Engines { available, refused: vec!["no solver is installed".into()] };
        Self {
            engines,
            is_defective: AtomicBool::new(false),
            runs: AtomicUsize::new(0),
            released: Mutex::new(false),
            release: Condvar::new(),
        }
    }

    /// Lets all checks that wait end.
    pub fn release(&self) {
        *self.released.lock().unwrap() = true;
        self.release.notify_all();
    }

    /// Makes each question for the engines panic.
    pub fn become_defective(&self) {
        self.is_defective.store(true, Ordering::Relaxed);
    }

    /// The number of requests that were run.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

impl RunChecks for FakeRunner {
    fn run(&self, request: &CheckRequest) -> Result<Report, RunError> {
        let earlier = self.runs.fetch_add(1, Ordering::Relaxed);
        let text = request.artifact().text().unwrap_or_default().to_owned();
        let status = match text.as_str() {
            "fail" => Status::Fail,
            "no engine" => {
                return Err(RunError::Unavailable { facility: "programs", refused: Vec::new() });
            }
            "broken first" if earlier == 0 => return Err(RunError::Failed("it ended early".into())),
            "broken" => return Err(RunError::Failed("it ended early".into())),
            "wait" | "broken first" => {
                let waiting = self.released.lock().unwrap();
                let _released = self.release.wait_while(waiting, |released| !*released).unwrap();
                Status::Pass
            }
            _ => Status::Pass,
        };
        let detail = Detail {
            name: "only".into(),
            status,
            expected: None,
            actual: None,
            message: None,
            elapsed_ms: None,
        };
        Ok(Report {
            details: vec![detail],
            engine: engine(),
            fuel_used: None,
            seed: None,
            cases: None,
            hashes: BTreeMap::new(),
            execution_ms: 1,
        })
    }

    fn engines(&self) -> &Engines {
        assert!(!self.is_defective.load(Ordering::Relaxed), "as a defect would");
        &self.engines
    }
}
