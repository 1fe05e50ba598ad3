//! Results of the checks of a stored log: by the running service, and by `tabellion log fsck`.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::http::Answer;
use crate::log::Log;
use crate::service::Service;

/// Maximum time for the service to find damage: many times the period of its check, as the machine may be busy.
const PERIOD: Duration = Duration::from_secs(60);
/// Interval between two requests to `/readyz`.
const POLL: Duration = Duration::from_millis(100);

impl Service {
    /// Returns the response to `/readyz`.
    pub fn readiness(&self) -> Answer {
        self.admin().get("/readyz")
    }

    /// Waits until `/readyz` reports this finding.
    #[track_caller]
    pub fn must_find(&self, finding: &str) {
        let begun = Instant::now();
        loop {
            let ready = self.readiness();
            let said = String::from_utf8_lossy(&ready.body).into_owned();
            if ready.status == 503 && said.contains(finding) {
                return;
            }
            assert!(begun.elapsed() < PERIOD, "{finding:?} is not found: {said}");
            sleep(POLL);
        }
    }

    /// Waits until `/readyz` reports no finding.
    #[track_caller]
    pub fn must_become_ready(&self) {
        let begun = Instant::now();
        while self.readiness().status != 200 {
            assert!(begun.elapsed() < PERIOD, "it does not become ready: {:?}", self.readiness());
            sleep(POLL);
        }
    }

    /// Returns the value of a metric without labels.
    #[track_caller]
    pub fn metric(&self, name: &str) -> f64 {
        let metrics = String::from_utf8(self.admin().get("/metrics").body).expect("text");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}"))
    }
}

impl Log {
    /// Asserts that `tabellion log fsck --deep` reports this finding.
    #[track_caller]
    pub fn fsck_must_name(&self, finding: &str) {
        let ran = self.tabellion(&["log", "fsck", "--deep", "--json"]);
        assert_eq!(ran.code, Some(8), "{ran}");
        assert!(ran.stdout.contains(finding), "no {finding:?}: {ran}");
    }
}
