//! What the checks of the stored log say: the running service's, and the one by hand.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::http::Answer;
use crate::log::Log;
use crate::service::Service;

/// How long a service may take to find what is wrong: many times its period, on a machine that does other things.
const PERIOD: Duration = Duration::from_secs(60);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(100);

impl Service {
    /// What `/readyz` says.
    pub fn readiness(&self) -> Answer {
        self.admin().get("/readyz")
    }

    /// Waits until `/readyz` names this.
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
            sleep(LOOK);
        }
    }

    /// Waits until nothing stands against it any more.
    #[track_caller]
    pub fn must_become_ready(&self) {
        let begun = Instant::now();
        while self.readiness().status != 200 {
            assert!(begun.elapsed() < PERIOD, "it does not become ready: {:?}", self.readiness());
            sleep(LOOK);
        }
    }

    /// The value of a metric without labels.
    #[track_caller]
    pub fn metric(&self, name: &str) -> f64 {
        let metrics = String::from_utf8(self.admin().get("/metrics").body).expect("text");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}"))
    }
}

impl Log {
    /// The check by hand finds this.
    #[track_caller]
    pub fn fsck_must_name(&self, finding: &str) {
        let ran = self.tabellion(&["log", "fsck", "--deep", "--json"]);
        assert_eq!(ran.code, Some(8), "{ran}");
        assert!(ran.stdout.contains(finding), "no {finding:?}: {ran}");
    }
}
