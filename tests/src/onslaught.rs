//! Continuous load of agents on a gateway during faults, followed by a check of the whole audit trail: no Verdict is
//! lost or duplicated, and no call reached the upstream server without one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::McpServer;
use testkit::agentroa::{self, Chain};

use crate::audit_trail::{self, Record};
use crate::gateway::{GATEWAY, Gateway, GatewayProcess};
use crate::log::Log;
use crate::mcp::{McpAnswer, McpClient};
use crate::power::{Loss, Power};
use crate::service::Service;
use crate::vap::Agent;

/// Number of agents.
const AGENTS: u8 = 4;
/// Maximum number of calls in each agent's commitment (`max_calls`).
const BUDGET: u64 = 1_000_000;
/// Time between two calls of an agent.
const PAUSE: Duration = Duration::from_millis(4);
/// The same while the log is away for long: thousands of records wait for it, and not tens of thousands.
const LONG_PAUSE: Duration = Duration::from_millis(40);
/// Timeout of a call, after which its outcome is unknown.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum time until the log has all records.
const DRAIN: Duration = Duration::from_secs(120);

/// The tool that is called under AgentROA.
const TOOL: &str = "crm.read";
/// Number of calls that the envelope of AgentROA grants.
const GRANTED: u64 = 200;

/// A gateway, a log with a fixed address, and agents.
pub struct Onslaught {
    /// Server behind the gateway.
    pub upstream: McpServer,
    /// Folder of the gateway.
    pub gateway: Gateway,
    log: Log,
    callers: Callers,
    /// Time between two calls of an agent.
    pause: Duration,
    told: Mutex<Vec<String>>,
}

/// The agents, as many as [`AGENTS`].
enum Callers {
    /// Agents with a commitment each.
    Vap(Vec<Agent>),
    /// The chains of a root's agent and of its delegates, who share one budget.
    AgentRoa(Vec<Chain>),
}

impl Callers {
    /// Returns the tool and the parameters of an agent's call, of which one of them differs between calls.
    fn call(&self, who: usize, call: &str) -> (String, Value) {
        match self {
            Callers::Vap(agents) => {
                let tool = format!("tool.{call}");
                let intent = agents[who].signed(agents[who].intent(&tool, &json!({})));
                let params = json!({ "name": tool, "arguments": {}, "_meta": { "vap": intent } });
                (tool, params)
            }
            Callers::AgentRoa(chains) => {
                let (chain, arguments) = (&chains[who], json!({ "call": call }));
                let text: Value = serde_json::from_slice(&chain.canonical()).expect("a chain");
                let proof = agentroa::proof(chain, agentroa::AGENTS[who], TOOL, &arguments, GATEWAY);
                let meta = json!({ "dev.tabellion/roa": text, "dev.tabellion/roa-proof": proof });
                (TOOL.to_owned(), json!({ "name": TOOL, "arguments": arguments, "_meta": meta }))
            }
        }
    }
}

impl Onslaught {
    /// Creates folders, keys and configurations, and starts only the upstream server.
    pub fn prepared() -> Self {
        let agents: Vec<Agent> = (0..AGENTS)
            .map(|n| Agent::named(&format!("did:example:{n}"), &format!("session-of-{n}"), n + 1))
            .collect();
        let known = |gateway| agents.iter().fold(gateway, Gateway::knowing);
        let prepared = Self::before_gateway(known);
        Self { callers: Callers::Vap(agents), ..prepared }
    }

    /// The same with a gateway that demands chains.
    fn prepared_for_chains() -> Self {
        Self::before_gateway(Gateway::demanding_chains)
    }

    fn before_gateway(build: impl FnOnce(Gateway) -> Gateway) -> Self {
        let log = crate::gateway::admitting_log();
        let address = crate::http::free_address();
        log.configure(&format!("listen = \"{address}\""));
        let upstream = McpServer::ordinary();
        let gateway = build(Gateway::before(&upstream.url()).logging_to(&format!("http://{address}")));
        Self {
            upstream,
            gateway,
            log,
            callers: Callers::AgentRoa(Vec::new()),
            pause: PAUSE,
            told: Mutex::default(),
        }
    }

    /// Issues an envelope for [`GRANTED`] calls and delegates it: envelopes from before the gateway's first start are
    /// denied.
    fn delegate(&mut self) {
        let root = agentroa::root(|members| {
            members["authorized_scope"]["budget_ceiling"] = GRANTED.into();
            members["authorized_scope"]["budget_unit"] = "api_calls".into();
        });
        let mut chains = vec![root];
        for hop in 1..usize::from(AGENTS) {
            chains.push(agentroa::delegated(&chains[hop - 1], |_| ()));
        }
        self.callers = Callers::AgentRoa(chains);
    }

    /// Starts the service of the log.
    pub fn serve(&self) -> Service {
        self.log.serve()
    }

    /// Sends the commitment of every agent.
    #[track_caller]
    pub fn commit(&self, running: &GatewayProcess) {
        let Callers::Vap(agents) = &self.callers else { return };
        for agent in agents {
            let changes =
                json!({ "scope": { "tools_allow": ["tool.*"] }, "budget": { "max_calls": BUDGET } });
            let told = agent.commit_to(&mut running.modern(), changes);
            self.remember(&told);
        }
    }

    /// Calls tools with all agents until `during` returns. Each call has its own tool name or arguments, so that the log
    /// distinguishes the calls.
    pub fn on<T>(&self, during: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for who in 0..usize::from(AGENTS) {
                scope.spawn({
                    let done = &done;
                    move || self.call(who, done)
                });
            }
            let _stop = Stop(&done);
            during()
        })
    }

    fn call(&self, who: usize, done: &AtomicBool) {
        let mut client = McpClient::modern(&self.gateway.url()).patient_for(PATIENCE);
        // Calls differ between rounds.
        let round = fastrand::u32(..);
        for n in 0_u64.. {
            if done.load(Ordering::Relaxed) {
                return;
            }
            let (tool, mut params) = self.callers.call(who, &format!("{who}.{round}.{n}"));
            client.dress(&mut params);
            let body = client.body("tools/call", &params);
            if let Ok(answer) = client.try_send("tools/call", Some(&tool), &body) {
                let told = McpAnswer::of(answer, &Value::Null);
                if told.message["result"].is_object() {
                    self.remember(&told);
                }
            }
            thread::sleep(self.pause);
        }
    }

    fn remember(&self, told: &McpAnswer) {
        let verdict = told.verdict().0["audit_ref"].clone();
        let receipt = told.result()["_meta"]["dev.tabellion/aer"]["audit_ref"].clone();
        let addresses = [verdict, receipt].into_iter().filter_map(|url| url.as_str().map(str::to_owned));
        let entries = addresses.map(|url| url.rsplit('/').next().unwrap_or_default().to_owned());
        self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
    }

    /// Returns the number of responses so far that named a record.
    pub fn answers(&self) -> usize {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until the log has all records, then checks that each response's record is on the log, and that each call
    /// at the upstream server has exactly one decision.
    #[track_caller]
    pub fn must_be_accounted_for(&self, running: &GatewayProcess, service: &Service) {
        running.wait_for_metric_within(DRAIN, "gateway_evidence_pending_records", |left| left == 0.0);
        let records = self.settled(running, service);
        audit_trail::must_be_whole(&records);
        self.answers_must_be_on(&records);
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
        assert!(!forwarded.is_empty(), "nothing happened at all");
    }

    /// Checks that the log has what responses named.
    #[track_caller]
    fn answers_must_be_on(&self, records: &[Record]) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let entries: BTreeSet<&str> = records.iter().map(|record| record.entry.as_str()).collect();
        for entry in told.iter() {
            assert!(entries.contains(entry.as_str()), "{entry} was told and is not on the log");
        }
        assert!(!told.is_empty(), "no call was answered");
    }

    /// Waits until the log has all records, then checks that each decision has its execution receipt exactly once, that
    /// each call at the upstream server has one permit, and that no more calls were permitted than the envelope grants.
    #[track_caller]
    fn receipts_must_be_accounted_for(&self, running: &GatewayProcess, service: &Service) {
        running.wait_for_metric_within(DRAIN, "gateway_evidence_pending_records", |left| left == 0.0);
        let records = self.settled(running, service);
        audit_trail::must_be_whole(&records);
        let receipts = audit_trail::receipts_of(service);
        self.answers_must_be_on(&[records.clone(), receipts.clone()].concat());
        let mut deciding: BTreeMap<&str, &Record> = BTreeMap::new();
        for decision in audit_trail::of_kind(&records, "decision") {
            let aer_id = decision.payload["aer_id"].as_str().expect("a decision under AgentROA");
            assert!(deciding.insert(aer_id, decision).is_none(), "{aer_id} is named by two decisions");
        }
        let mut permitted = BTreeSet::new();
        for receipt in &receipts {
            let aer_id = receipt.payload["aer_id"].as_str().expect("a receipt");
            let decision = deciding.remove(aer_id);
            let decision =
                decision.unwrap_or_else(|| panic!("{aer_id} is there twice, or without a decision"));
            let is_permit = receipt.payload["enforcement_outcome"] == "permit";
            assert_eq!(is_permit, decision.permits(), "{receipt:?} of {decision:?}");
            if is_permit {
                let input = receipt.payload["action"]["input_hash"].as_str().expect("a digest");
                assert!(permitted.insert(input.to_owned()), "{input} is permitted twice");
            }
        }
        assert!(deciding.is_empty(), "decisions without a receipt: {deciding:?}");
        let granted = usize::try_from(GRANTED).expect("a small number");
        assert!(permitted.len() <= granted, "{} calls are permitted", permitted.len());
        let calls = self.upstream.of("tools/call");
        assert!(!calls.is_empty(), "no call was forwarded");
        for call in calls {
            let input = agentroa::input_hash(&call.json()["params"]["arguments"]);
            assert!(permitted.remove(&input), "{input} reached the server twice, or without a permit");
        }
    }

    fn kill_repeatedly(&self, running: &mut GatewayProcess, kills: usize) {
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(fastrand::u64(60..250)));
            running.kill_here();
            *running = self.gateway.start();
        }
        thread::sleep(Duration::from_millis(200));
    }

    /// Calls under the envelope until its budget is spent.
    #[track_caller]
    fn spend(&self) {
        let mut client = McpClient::modern(&self.gateway.url()).patient_for(PATIENCE);
        for n in 0..=GRANTED {
            let (_, params) = self.callers.call(0, &format!("last.{n}"));
            let told = client.request("tools/call", params);
            self.remember(&told);
            if told.verdict().reason() == "roa:budget_expansion_denied" {
                return;
            }
        }
        panic!("the budget is never spent");
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
    onslaught.on(|| onslaught.kill_repeatedly(&mut running, kills));
    onslaught.must_be_accounted_for(&running, &service);
    running.stop();
    service.stop();
    onslaught.log_must_be_sound();
}

/// Kills a gateway that demands chains repeatedly under load, then checks execution receipts and the budget.
#[track_caller]
pub fn receipts_survive_kills(kills: usize) {
    let mut onslaught = Onslaught::prepared_for_chains();
    let service = onslaught.serve();
    let mut running = onslaught.gateway.start();
    onslaught.delegate();
    onslaught.on(|| onslaught.kill_repeatedly(&mut running, kills));
    onslaught.spend();
    onslaught.receipts_must_be_accounted_for(&running, &service);
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
                Ok(running) => {
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
    let onslaught = Onslaught { pause: LONG_PAUSE, ..Onslaught::prepared() };
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
