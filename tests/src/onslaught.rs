//! Continuous load of agents on a gateway during faults, followed by a check of the whole audit trail: no Verdict is
//! lost or duplicated, and no call reached the upstream server without one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::McpServer;

use crate::audit_trail::{self, Record};
use crate::gateway::{Gateway, GatewayProcess};
use crate::log::Log;
use crate::mcp::{McpClient, Told};
use crate::power::{Loss, Power};
use crate::service::Service;
use crate::vap::Agent;

/// Number of agents.
const AGENTS: u8 = 4;
/// Maximum number of calls in each agent's commitment (`max_calls`).
const BUDGET: u64 = 1_000_000;
/// Time between two calls of an agent.
const PAUSE: Duration = Duration::from_millis(4);
/// Timeout of a call, after which its outcome is unknown.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum time until the log has all records.
const DRAIN: Duration = Duration::from_secs(120);

/// A gateway, a log with a fixed address, and agents.
pub struct Onslaught {
    /// Server behind the gateway.
    pub upstream: McpServer,
    /// Folder of the gateway.
    pub gateway: Gateway,
    log: Log,
    agents: Vec<Agent>,
    told: Mutex<Vec<String>>,
}

impl Onslaught {
    /// Creates folders, keys and configurations, and starts only the upstream server.
    pub fn prepared() -> Self {
        let log = crate::gateway::admitting_log();
        let address = crate::http::free_address();
        log.configure(&format!("listen = \"{address}\""));
        let upstream = McpServer::ordinary();
        let agents: Vec<Agent> = (0..AGENTS)
            .map(|n| Agent::named(&format!("did:example:{n}"), &format!("session-of-{n}"), n + 1))
            .collect();
        let gateway = Gateway::before(&upstream.url()).logging_to(&format!("http://{address}"));
        let gateway = agents.iter().fold(gateway, Gateway::knowing);
        Self { upstream, gateway, log, agents, told: Mutex::default() }
    }

    /// Starts the service of the log.
    pub fn serve(&self) -> Service {
        self.log.serve()
    }

    /// Sends the commitment of every agent.
    #[track_caller]
    pub fn commit(&self, running: &GatewayProcess) {
        for agent in &self.agents {
            let changes =
                json!({ "scope": { "tools_allow": ["tool.*"] }, "budget": { "max_calls": BUDGET } });
            let told = agent.commit_to(&mut running.modern(), changes);
            self.remember(&told);
        }
    }

    /// Calls tools with all agents until `during` returns. Each call has its own tool name, so that the log
    /// distinguishes the calls.
    pub fn on<T>(&self, during: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for (who, agent) in self.agents.iter().enumerate() {
                scope.spawn({
                    let done = &done;
                    move || self.call(who, agent, done)
                });
            }
            let _stop = Stop(&done);
            during()
        })
    }

    fn call(&self, who: usize, agent: &Agent, done: &AtomicBool) {
        let mut client = McpClient::modern(&self.gateway.url()).patient_for(PATIENCE);
        // Tool names differ between rounds.
        let round = fastrand::u32(..);
        for n in 0_u64.. {
            if done.load(Ordering::Relaxed) {
                return;
            }
            let tool = format!("tool.{who}.{round}.{n}");
            let intent = agent.signed(agent.intent(&tool, &json!({})));
            let mut params = json!({ "name": tool, "arguments": {}, "_meta": { "vap": intent } });
            client.dress(&mut params);
            let body = client.body("tools/call", &params);
            if let Ok(answer) = client.try_send("tools/call", Some(&tool), &body) {
                let told = Told::of(answer, &Value::Null);
                if told.message["result"].is_object() {
                    self.remember(&told);
                }
            }
            thread::sleep(PAUSE);
        }
    }

    fn remember(&self, told: &Told) {
        let entry = told.verdict().0["audit_ref"]
            .as_str()
            .map(|place| place.rsplit('/').next().unwrap_or_default().to_owned());
        self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(entry);
    }

    /// Returns the number of responses so far that named a record.
    pub fn answers(&self) -> usize {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until the log has all records, then checks that each response's record is on the log, and that each call
    /// at the upstream server has exactly one decision.
    #[track_caller]
    pub fn must_be_accounted_for(&self, running: &GatewayProcess, service: &Service) {
        running.wait_for_metric_within(DRAIN, "gateway_evidence_pending", |left| left == 0.0);
        let records = self.settled(running, service);
        audit_trail::must_be_whole(&records);
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let entries: BTreeSet<&str> = records.iter().map(|record| record.entry.as_str()).collect();
        for entry in told.iter() {
            assert!(entries.contains(entry.as_str()), "{entry} was told and is not on the log");
        }
        let mut decided: BTreeMap<&str, usize> = BTreeMap::new();
        for decision in records.iter().filter(|record| record.permits()) {
            *decided.entry(decision.payload["tool"].as_str().expect("a tool")).or_default() += 1;
        }
        let mut forwarded = BTreeSet::new();
        for call in self.upstream.of("tools/call") {
            let tool = call.json()["params"]["name"].as_str().unwrap_or_default().to_owned();
            assert_eq!(decided.get(tool.as_str()), Some(&1), "{tool} reached the server");
            assert!(forwarded.insert(tool.clone()), "{tool} reached the server twice");
        }
        assert!(!forwarded.is_empty() && !told.is_empty(), "nothing happened at all");
    }

    /// Waits until every permitted call has an outcome, as the last ones may be on their way, and returns the records.
    #[track_caller]
    fn settled(&self, running: &GatewayProcess, service: &Service) -> Vec<Record> {
        let begun = Instant::now();
        loop {
            let records = audit_trail::records_of(service);
            let permits = records.iter().filter(|record| record.permits()).count();
            if audit_trail::of_kind(&records, "outcome").len() >= permits {
                return records;
            }
            assert!(begun.elapsed() < DRAIN, "outcomes are missing: {}", running.said());
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Asserts that the log is sound. No service may be running.
    #[track_caller]
    pub fn log_must_be_sound(&self) {
        self.log.must_be_sound();
    }
}

/// Kills the gateway repeatedly under load, then checks the audit trail.
#[track_caller]
pub fn survives_kills(kills: usize) {
    let onslaught = Onslaught::prepared();
    let service = onslaught.serve();
    let mut running = onslaught.gateway.start();
    onslaught.commit(&running);
    onslaught.on(|| {
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(fastrand::u64(60..250)));
            running.kill_here();
            running = onslaught.gateway.start();
        }
        thread::sleep(Duration::from_millis(200));
    });
    onslaught.must_be_accounted_for(&running, &service);
    running.stop();
    service.stop();
    onslaught.log_must_be_sound();
}

/// Cuts the power of the gateway's machine repeatedly under load, each time before one of the next `calls` changes and
/// flushes of files, then checks the audit trail. Returns the number of lost writes.
#[track_caller]
pub fn survives_power_losses(times: u64, calls: u64) -> usize {
    let onslaught = Onslaught::prepared();
    let service = onslaught.serve();
    let running = onslaught.gateway.start();
    onslaught.commit(&running);
    running.stop();
    let power = Power::of(onslaught.gateway.folder());
    power.watch();
    let variables = power.variables();
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut writes = 0;
    let running = onslaught.on(|| {
        for round in 0..times {
            power.cut_after(fastrand::u64(0..calls));
            match onslaught.gateway.try_start(&variables) {
                Ok(mut running) => {
                    let begun = Instant::now();
                    while running.runs() {
                        assert!(begun.elapsed() < DRAIN, "the power is not lost: {}", running.said());
                        thread::sleep(Duration::from_millis(2));
                    }
                }
                Err(ran) => assert_eq!(ran.code, None, "it starts until its power is lost: {ran}"),
            }
            let loss = if round.is_multiple_of(2) { Loss::Everything } else { Loss::Some };
            writes += power.lose(loss).writes;
        }
        let running = onslaught.gateway.start();
        thread::sleep(Duration::from_millis(200));
        running
    });
    onslaught.must_be_accounted_for(&running, &service);
    running.stop();
    service.stop();
    onslaught.log_must_be_sound();
    writes
}

/// Stops the log for a while, then checks the audit trail.
#[track_caller]
pub fn survives_a_log_that_is_away(pause: Duration) {
    let onslaught = Onslaught::prepared();
    let service = onslaught.serve();
    let running = onslaught.gateway.start();
    onslaught.commit(&running);
    let service = onslaught.on(|| {
        thread::sleep(Duration::from_millis(300));
        service.kill();
        let before = onslaught.answers();
        thread::sleep(pause);
        assert!(onslaught.answers() > before, "calls went on without the log");
        let service = onslaught.serve();
        thread::sleep(Duration::from_millis(300));
        service
    });
    onslaught.must_be_accounted_for(&running, &service);
    running.stop();
    service.stop();
    onslaught.log_must_be_sound();
}

/// Stops the agents on drop, also if the test panics: a thread scope waits for its threads.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
