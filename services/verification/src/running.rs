//! The jobs that this process runs: each job at most once at the same time.
//!
//! A pending job that is not among them is run by nothing, as after a panic or a failed write; the next request for it
//! starts it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The names of the jobs that run.
pub struct RunningJobs {
    names: Mutex<HashSet<String>>,
    /// Changed when a job ends.
    changes: watch::Sender<()>,
}

/// A job that runs until this is dropped.
pub struct RunningJob {
    jobs: Arc<RunningJobs>,
    name: String,
}

impl RunningJobs {
    /// No jobs. `changes` is changed when one ends.
    pub fn new(changes: watch::Sender<()>) -> Arc<Self> {
        Arc::new(Self { names: Mutex::default(), changes })
    }

    /// Adds a job; `None` if it runs already.
    pub fn begin(self: &Arc<Self>, name: &str) -> Option<RunningJob> {
        let is_new = self.names().insert(name.to_owned());
        is_new.then(|| RunningJob { jobs: self.clone(), name: name.to_owned() })
    }

    /// Returns whether a job runs.
    pub fn contains(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Waits until a job does not run.
    pub async fn ended(&self, name: &str) {
        let mut changes = self.changes.subscribe();
        // The sender lives as long as `self`: it is never closed here.
        while self.contains(name) && changes.changed().await.is_ok() {}
    }

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.jobs.names().remove(&self.name);
        self.jobs.changes.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn a_job_runs_once_at_a_time_and_again_after_a_panic() {
        let jobs = RunningJobs::new(watch::Sender::new(()));
        let running = jobs.begin("a").unwrap();
        assert!(jobs.begin("a").is_none() && jobs.begin("b").is_some());
        let task = tokio::spawn(async move {
            let _running = running;
            panic!("as a defect would");
        });
        jobs.ended("a").await;
        assert!(task.await.unwrap_err().is_panic());
        assert!(jobs.begin("a").is_some());
    }
}
