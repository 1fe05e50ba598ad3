//! Clients that register and resolve while something happens to the service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use merkle::EntryDigest;

use crate::http::Connection;
use crate::log::Log;
use crate::recorder::{Fate, Outcome, Recorder};
use crate::service::Service;

/// How long a statement whose fate is open may take to be settled once the service runs.
const SETTLE: Duration = Duration::from_secs(30);
/// What a writer has not heard by then counts as unknown.
const PATIENCE: Duration = Duration::from_secs(8);
/// Every so many registrations, a writer asks for a fresh receipt of something older.
const READ_EVERY: u64 = 3;

/// Writers of one log.
pub struct Load<'a> {
    /// What they write to.
    pub log: &'a Log,
    /// Who remembers.
    pub recorder: &'a Recorder,
    /// How many.
    pub writers: usize,
}

impl Load<'_> {
    /// Writes to the service until `during` returns.
    pub fn on<T>(&self, service: &Service, during: impl FnOnce() -> T) -> T {
        self.on_several(&[service], during)
    }

    /// Writes to several services of the log.
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

/// Ends the writers even when the test panics: a scope waits for its threads.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Registers again what had no answer, and waits for what was accepted, until everything is decided.
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
    // What was accepted gets there by itself: it is not handed in again.
    settle(Fate::Accepted, &mut |connection, entry| {
        if recorder.resolve(connection, entry).is_none_or(|answer| answer.status != 200) {
            thread::sleep(Duration::from_millis(20));
        }
    });
}
