//! Clients that register and resolve statements while faults happen to the service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use merkle::EntryDigest;

use crate::http::Connection;
use crate::log::Log;
use crate::recorder::{Fate, Outcome, Recorder};
use crate::service::Service;

/// Maximum time to settle a statement with unknown outcome, once the service runs.
const SETTLE: Duration = Duration::from_secs(30);
/// Timeout of a writer's request, after which its outcome is unknown.
const PATIENCE: Duration = Duration::from_secs(8);
/// Number of registrations between two requests for a fresh receipt of an older entry.
const READ_EVERY: u64 = 3;

/// Concurrent writers of one log.
pub struct Load<'a> {
    /// Log that is written to.
    pub log: &'a Log,
    /// Recorder of all promises of the service.
    pub recorder: &'a Recorder,
    /// Number of writers.
    pub writers: usize,
}

impl Load<'_> {
    /// Writes to the service until `during` returns.
    pub fn on<T>(&self, service: &Service, during: impl FnOnce() -> T) -> T {
        self.on_several(&[service], during)
    }

    /// Writes to several services of the log, distributing the writers.
    pub fn on_several<T>(&self, services: &[&Service], during: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 0..self.writers {
                let connection = services[writer % services.len()].connection().patient_for(PATIENCE);
                scope.spawn(|| self.write(connection, &done));
            }
            let _stop = Stop(&done);
            during()
        })
    }

    fn write(&self, mut connection: Connection, done: &AtomicBool) {
        let mut count = 0;
        while !done.load(Ordering::Relaxed) {
            let outcome = self.recorder.register(&mut connection, &self.log.statement());
            if matches!(outcome, Outcome::NotAsked | Outcome::TurnedAway) {
                thread::sleep(Duration::from_millis(5));
            }
            count += 1;
            if count % READ_EVERY == 0
                && !done.load(Ordering::Relaxed)
                && let Some(entry) = self.recorder.any_registered()
            {
                self.recorder.resolve(&mut connection, entry);
            }
        }
    }
}

/// Stops the writers on drop, also if the test panics: a thread scope waits for its threads.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Registers statements with unknown outcome again, and waits for accepted ones, until all are settled.
#[track_caller]
pub fn resolve_what_was_left_open(recorder: &Recorder, service: &Service) {
    let mut connection = service.connection();
    let mut settle = |fate: Fate, step: &mut dyn FnMut(&mut Connection, EntryDigest)| {
        let mut waiting = (None, Instant::now());
        while let Some(entry) = recorder.with_fate(fate).first().copied() {
            if waiting.0 != Some(entry) {
                waiting = (Some(entry), Instant::now());
            }
            assert!(waiting.1.elapsed() < SETTLE, "{entry} is not settled: {}", service.said());
            step(&mut connection, entry);
        }
    };
    settle(Fate::Open, &mut |connection, entry| {
        if recorder.register(connection, &recorder.statement(entry)) == Outcome::TurnedAway {
            thread::sleep(Duration::from_millis(20));
        }
    });
    // The service registers accepted statements by itself: they are not submitted again.
    settle(Fate::Accepted, &mut |connection, entry| {
        if recorder.resolve(connection, entry).is_none_or(|answer| answer.status != 200) {
            thread::sleep(Duration::from_millis(20));
        }
    });
}
