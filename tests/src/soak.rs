//! A soak test: a log, two witnesses and a monitor under load for a long time, each of them randomly killed or stopped
//! and restarted. No alarm may be raised, and no promise may be broken.
//!
//! The monitor checks everything it supports: growth, cosignatures, every entry and the decision to admit it, the tree
//! that each witness has seen, and receipts from a SCITT service. All parties are honest, so that any alarm fails the
//! run.

use std::collections::BTreeMap;
use std::fs;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::http::Connection;
use crate::http::free_address;
use crate::log::Log;
use crate::recorder::{Outcome, Recorder};
use crate::service::Service;
use crate::watch::Watch;
use crate::witness::{WitnessHome, WitnessProcess};

/// Pause of a writer after each registration, so that a monitor that checks every entry keeps up.
const REST: Duration = Duration::from_millis(40);
/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(8);
/// Maximum time that a process stays down.
const AWAY: Duration = Duration::from_secs(2);
/// Maximum time until the monitor reports no problem, after the last restart.
const CALM: Duration = Duration::from_secs(120);
/// Number of witnesses, all of which must cosign.
const WITNESSES: usize = 2;
const WRITERS: usize = 2;

/// Parameters of a soak test.
#[derive(Clone, Copy, Debug)]
pub struct Soak {
    /// Duration of the phase with restarts.
    pub lasting: Duration,
    /// Maximum time between two restarts.
    pub calm_for: Duration,
    /// Seed of the random choices: process, time and signal.
    pub seed: u64,
}

/// Result of a soak test.
#[derive(Clone, Debug)]
pub struct Soaked {
    /// Counts for the report, as JSON.
    pub told: Value,
    /// Errors; empty if the run passed.
    pub wrong: Vec<String>,
}

/// All processes of the test, and the errors so far.
struct Field<'a> {
    log: &'a Log,
    homes: Vec<WitnessHome>,
    addresses: Vec<String>,
    watch: Watch,
    service: Option<Service>,
    witnesses: Vec<Option<WitnessProcess>>,
    monitor: Option<Child>,
    restarts: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

impl Soak {
    /// Runs the soak test on this log.
    pub fn on(&self, log: &Log) -> Soaked {
        fastrand::seed(self.seed);
        let begun = Instant::now();
        let recorder = Recorder::new();
        let mut field = Field::prepare(log, &recorder);
        let address = field.addresses[0].clone();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| write(log, &recorder, &address, &done));
            }
            while begun.elapsed() < self.lasting && field.wrong.is_empty() {
                thread::sleep(random_up_to(self.calm_for));
                field.hurt_somebody();
            }
            done.store(true, Ordering::Relaxed);
        });
        field.must_calm_down();
        field.conclude(&recorder, begun.elapsed(), self.seed)
    }
}

fn write(log: &Log, recorder: &Recorder, address: &str, done: &AtomicBool) {
    let mut connection = Connection::to(address).patient_for(PATIENCE);
    while !done.load(Ordering::Relaxed) {
        if recorder.register(&mut connection, &log.statement()) == Outcome::Registered
            && let Some(entry) = recorder.any_registered()
        {
            recorder.resolve(&mut connection, entry);
        }
        thread::sleep(REST);
    }
}

fn random_up_to(longest: Duration) -> Duration {
    longest.mul_f64(fastrand::f64())
}

impl<'a> Field<'a> {
    /// Starts all processes, and registers a first entry for the monitor to check.
    fn prepare(log: &'a Log, recorder: &Recorder) -> Self {
        let addresses: Vec<String> = (0..=WITNESSES).map(|_| free_address().to_string()).collect();
        let key = log.tabellion(&["key", "show", "--json"]).must_succeed().json();
        let vkey = text(&key["checkpoint"]["vkey"]);
        let homes: Vec<WitnessHome> = (0..WITNESSES).map(|_| WitnessHome::of(&[&vkey])).collect();
        let witnesses: Vec<WitnessProcess> = homes.iter().map(WitnessHome::serve).collect();
        let witness_keys: Vec<String> = witnesses.iter().map(|witness| witness.vkey().to_owned()).collect();
        for (place, key) in witness_keys.iter().enumerate() {
            let (name, url, count) =
                (format!("w{place}"), url(&addresses[place + 1]), (place + 1).to_string());
            let add = ["witness", "add", &name, key, &url, "--policy", "witnesses.txt", "--quorum", &count];
            log.tabellion(&add).must_succeed();
        }
        witnesses.into_iter().for_each(WitnessProcess::stop);
        let settings = "witness_policy = \"witnesses.txt\"\nwitness_interval_seconds = 2";
        log.configure(&format!("listen = \"{}\"\n{settings}", addresses[0]));
        let mut field = Self {
            log,
            watch: Watch::new(""),
            service: None,
            witnesses: (0..WITNESSES).map(|_| None).collect(),
            monitor: None,
            restarts: BTreeMap::new(),
            wrong: Vec::new(),
            homes,
            addresses,
        };
        (0..WITNESSES).for_each(|place| field.start_witness(place));
        field.start_service();
        let entry = field.first_entry(recorder);
        field.watch.configure(&field.watched(
            &vkey,
            &witness_keys,
            &text(&key["receipt"]["did_key"]),
            &entry,
        ));
        field.start_monitor();
        field
    }

    /// Returns the monitor's configuration, with all checks enabled.
    fn watched(&self, vkey: &str, witnesses: &[String], receipt_key: &str, entry: &str) -> String {
        let url = url(&self.addresses[0]);
        let trust = format!("[[log]]\niss = \"{}\"\nkeys = [\"{receipt_key}\"]\n", testkit::LOG_ISS);
        fs::write(self.watch.path("trust.toml"), trust).expect("our own folder");
        let mut text = format!(
            "[[log]]\nname = \"log\"\nurl = \"{url}/\"\nvkey = \"{vkey}\"\nwitnesses = {witnesses:?}\ndepth = \"decisions\"\n\
             stale_after = \"2m\"\nunreachable_after = \"2m\"\nlag = \"2m\"\n"
        );
        for address in &self.addresses[1..] {
            text.push_str(&format!("[[log.vantage]]\nwitness = \"{}/\"\n", self::url(address)));
        }
        text + &format!(
            "[[service]]\nname = \"receipts\"\nurl = \"{url}/\"\ntrust = \"trust.toml\"\nunreachable_after = \"2m\"\n\
             entries = [\"{entry}\"]\n"
        )
    }

    fn first_entry(&self, recorder: &Recorder) -> String {
        let statement = self.log.statement();
        let outcome = recorder.register(&mut Connection::to(&self.addresses[0]), &statement);
        assert_eq!(outcome, Outcome::Registered, "a log that runs registers");
        statement.digest().to_string()
    }

    fn hurt_somebody(&mut self) {
        let signal = if fastrand::bool() { Signal::KILL } else { Signal::TERM };
        let victim = fastrand::usize(..WITNESSES + 2);
        let name = match victim {
            0 => "service".to_owned(),
            1 => "monitor".to_owned(),
            other => format!("witness {}", other - 2),
        };
        *self
            .restarts
            .entry(format!("{name} {}", if signal == Signal::KILL { "KILL" } else { "TERM" }))
            .or_default() += 1;
        match victim {
            0 => self.end_service(signal),
            1 => self.end_monitor(signal),
            other => self.end_witness(other - 2, signal),
        }
        thread::sleep(random_up_to(AWAY));
        match victim {
            0 => self.start_service(),
            1 => self.start_monitor(),
            other => self.start_witness(other - 2),
        }
    }

    fn start_service(&mut self) {
        match Service::started(self.log) {
            Ok(service) => self.service = Some(service),
            Err(ran) => self.wrong.push(format!("the service did not start: {ran}")),
        }
    }

    fn end_service(&mut self, signal: Signal) {
        match (self.service.take(), signal) {
            (Some(service), _) if !service.runs() => {
                self.wrong.push(format!("the service had ended: {}", service.said()))
            }
            (Some(service), Signal::KILL) => service.kill(),
            (Some(service), _) => service.stop(),
            (None, _) => {}
        }
    }

    fn start_witness(&mut self, place: usize) {
        match self.homes[place].start_at(&self.addresses[place + 1]) {
            Ok(witness) => self.witnesses[place] = Some(witness),
            Err(ran) => self.wrong.push(format!("witness {place} did not start: {ran}")),
        }
    }

    fn end_witness(&mut self, place: usize, signal: Signal) {
        match (self.witnesses[place].take(), signal) {
            (Some(witness), Signal::KILL) => witness.kill(),
            (Some(witness), _) => witness.stop(),
            (None, _) => {}
        }
    }

    fn start_monitor(&mut self) {
        self.monitor = Some(self.watch.run());
    }

    fn end_monitor(&mut self, signal: Signal) {
        let Some(mut monitor) = self.monitor.take() else { return };
        if let Ok(Some(status)) = monitor.try_wait() {
            self.wrong.push(format!("the monitor had ended by itself: {status}"));
            return;
        }
        let _ = kill_process(Pid::from_child(&monitor), signal);
        let _ = monitor.wait();
    }

    /// Waits until one round of the monitor finds no problem and omits no check, with all processes running.
    fn must_calm_down(&mut self) {
        self.end_monitor(Signal::TERM);
        let begun = Instant::now();
        loop {
            let looked = self.watch.look();
            if looked.code() == Some(0) {
                let unchecked = unchecked(&looked.round());
                return self.wrong.extend(unchecked.map(|check| format!("at the end: {check}")));
            }
            if begun.elapsed() > CALM {
                return self.wrong.push(format!("it does not calm down: {}", looked.ran));
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn conclude(mut self, recorder: &Recorder, took: Duration, seed: u64) -> Soaked {
        let alarms = self.watch.alarms().json()["alarms"].as_array().cloned().unwrap_or_default();
        self.wrong.extend(alarms.iter().map(|alarm| format!("a false alarm: {alarm}")));
        let (rounds, good) = rounds(&fs::read_to_string(self.watch.path("run.log")).unwrap_or_default());
        if good == 0 {
            self.wrong.push("not one round of the monitor proved anything".to_owned());
        }
        let size = self
            .service
            .take()
            .filter(|_| self.wrong.is_empty())
            .map(|service| recorder.verdict(self.log, service));
        let told = json!({
            "seconds": took.as_secs(), "seed": seed, "restarts": self.restarts, "registered": recorder.registered(), "size": size,
            "rounds": rounds, "rounds_that_proved_growth": good, "alarms": alarms.len(), "answers": recorder.answers(),
        });
        Soaked { told, wrong: self.wrong }
    }
}

/// Returns the first check that a round was configured for and did not do.
fn unchecked(round: &Value) -> Option<String> {
    let checks = round["checks"].as_array().cloned().unwrap_or_default();
    let asked =
        ["reachable", "signature", "growth", "freshness", "consistency", "entries", "decisions", "vantage"];
    let bad = |name: &&&str| !checks.iter().any(|check| check["name"] == **name && check["outcome"] == "ok");
    asked.iter().find(bad).map(|name| format!("{name} was not checked: {round}"))
}

/// Returns the number of the monitor's rounds for the log, and of those among them that proved consistency.
fn rounds(log: &str) -> (u64, u64) {
    let rounds = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_log = rounds.filter(|event| event["event"] == "round" && event["round"]["log"] == "log");
    let proved = |event: &Value| {
        let checks = event["round"]["checks"].as_array().cloned().unwrap_or_default();
        checks.iter().any(|check| check["name"] == "consistency" && check["outcome"] == "ok")
    };
    of_log.fold((0, 0), |(all, good), event| (all + 1, good + u64::from(proved(&event))))
}

fn url(address: &str) -> String {
    format!("http://{address}")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("text: {value}")).to_owned()
}
