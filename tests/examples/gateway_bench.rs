//! What a gateway adds to a call: an open loop of sessions that call at fixed times, straight to a stub and through the gateway, in
//! turns, under VAP alone and with an AgentROA chain of depth three besides, and beside what one durable write of 4 KiB costs on
//! the same disk in the same run. Then what it holds for many sessions and
//! many idle connections, and whether a call costs more in a long session, behind a long outbox, or among many others.
//!
//! ```text
//! cargo build --release -p tabellion && export TABELLION_TEST_PROGRAM=$PWD/target/release/tabellion
//! ./test --run cargo run --release -p black-box --example gateway_bench                    # the whole of it
//! ./test --run cargo run --release -p black-box --example gateway_bench -- 2 500 100 1000  # turns, sessions, idle, calls
//! ```
//!
//! No turns, sessions or calls (0): that part is left out. Prints one JSON object. Not here: whether anything is right
//! (`tests/gateway_*.rs`).

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use black_box::{Agent, Gateway, GatewayProcess, McpClient};
use serde_json::{Value, json};
use testkit::McpServer;
use testkit::agentroa::{AGENTS, Chain, delegated, proof, registry_table, root, write_registry};

/// Sessions that call at the same time.
const CALLERS: u32 = 50;
/// Between two calls of one of them: four a second.
const EVERY: Duration = Duration::from_millis(250);
/// Calls of each in one turn.
const CALLS: u32 = 40;
/// Durable writes in one turn.
const SYNCS: usize = 400;
/// Calls over which a price is taken.
const SAMPLE: usize = 200;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let mut next = |usual| arguments.next().unwrap_or(usual);
    let (turns, sessions, idle, length) = (next(3), next(10_000), next(5_000), next(5_000));
    let part =
        |wanted: usize, measured: &dyn Fn() -> Value| if wanted == 0 { Value::Null } else { measured() };
    println!(
        "{:#}",
        json!({
            "latency": part(turns, &|| latency(turns)),
            "memory": part(sessions, &|| memory(sessions, idle)),
            "long_session": part(length, &|| growth(length)),
            "load_average": std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        })
    );
}

/// A gateway before a stub, with a log that takes its records.
struct Bench {
    upstream: McpServer,
    log: black_box::Log,
}

impl Bench {
    fn new() -> Self {
        Self { upstream: McpServer::ordinary(), log: black_box::gateway::admitting_log() }
    }

    fn with<T>(&self, agents: &[Agent], measure: impl FnOnce(&GatewayProcess) -> T) -> T {
        self.beside(agents, |gateway| gateway, measure)
    }

    /// Measures a gateway that `build` configures.
    fn beside<T>(
        &self,
        agents: &[Agent],
        build: impl FnOnce(Gateway) -> Gateway,
        measure: impl FnOnce(&GatewayProcess) -> T,
    ) -> T {
        let service = self.log.serve();
        let gateway = build(Gateway::before(&self.upstream.url()).logging_to(service.url()));
        let gateway = agents.first().into_iter().fold(gateway, Gateway::knowing);
        let running = gateway.start();
        let measured = measure(&running);
        running.stop();
        service.stop();
        measured
    }
}

/// Demands a delegation chain of every call.
fn demanding_chains(gateway: Gateway) -> Gateway {
    let with_echo = |members: &mut Value| {
        members["servers"] = json!([{ "server_id": "crm", "tools": ["echo"] }]);
    };
    write_registry(gateway.folder(), with_echo);
    gateway.route("server_id = \"crm\"\nroa = \"required\"").table(&registry_table())
}

/// A chain of depth three.
fn chain() -> Chain {
    (0..3).fold(root(|_| ()), |chain, _| delegated(&chain, |_| ()))
}

fn agents(count: u32) -> Vec<Agent> {
    (0..count).map(|n| Agent::new(&format!("session-{n}"))).collect()
}

/// In milliseconds.
fn latency(turns: usize) -> Value {
    let (bench, other, agents) = (Bench::new(), Bench::new(), agents(CALLERS));
    let (mut direct, mut through, mut chained, mut syncs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    bench.with(&agents, |running| {
        other.beside(&agents, demanding_chains, |demanding| {
            commit(running, &agents);
            commit(demanding, &agents);
            // A gateway denies chains that are older than its knowledge of their uses.
            let chain = chain();
            for _ in 0..turns {
                direct.extend(open_loop(&bench.upstream.url(), &agents, None));
                syncs.extend(durable_writes());
                through.extend(open_loop(running.url(), &agents, None));
                syncs.extend(durable_writes());
                chained.extend(open_loop(demanding.url(), &agents, Some(&chain)));
            }
        });
    });
    let at = |values: &mut Vec<f64>, share| percentile(values, share);
    let (d50, d99) = (at(&mut direct, 0.5), at(&mut direct, 0.99));
    let (t50, t99) = (at(&mut through, 0.5), at(&mut through, 0.99));
    let (c50, c99) = (at(&mut chained, 0.5), at(&mut chained, 0.99));
    let (f50, f99) = (at(&mut syncs, 0.5), at(&mut syncs, 0.99));
    let goals = (0.5 + 3.0 * f50, 1.5 + 3.0 * f99);
    json!({
        "calls": through.len(),
        "direct_ms": { "p50": d50, "p99": d99 },
        "through_ms": { "p50": t50, "p99": t99 },
        "through_with_chain_ms": { "p50": c50, "p99": c99 },
        "chain_adds_ms": { "p50": c50 - t50, "p99": c99 - t99 },
        "fdatasync_4k_ms": { "p50": f50, "p99": f99 },
        "added_ms": { "p50": t50 - d50, "p99": t99 - d99 },
        "goal_ms": { "p50": goals.0, "p99": goals.1 },
        "met": { "p50": t50 - d50 <= goals.0, "p99": t99 - d99 <= goals.1 },
    })
}

fn commit(running: &GatewayProcess, agents: &[Agent]) {
    for agent in agents {
        let unlimited = json!({ "budget": { "max_calls": 1_000_000 } });
        agent.commit_to(&mut running.modern(), unlimited).must_succeed();
    }
}

/// Each caller calls when its time has come, whether or not it has heard; how long that took counts from then on.
fn open_loop(url: &str, agents: &[Agent], chain: Option<&Chain>) -> Vec<f64> {
    let begin = Instant::now() + Duration::from_millis(300);
    thread::scope(|scope| {
        let callers: Vec<_> = agents
            .iter()
            .enumerate()
            .map(|(n, agent)| {
                scope.spawn(move || {
                    let begin = begin + EVERY * u32::try_from(n).unwrap_or(0) / CALLERS;
                    caller(url, agent, chain, begin)
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    })
}

fn caller(url: &str, agent: &Agent, chain: Option<&Chain>, begin: Instant) -> Vec<f64> {
    let mut client = McpClient::modern(url);
    let bodies: Vec<String> = (0..CALLS).map(|n| body(&mut client, agent, chain, n)).collect();
    let call = |(n, body): (u32, &String)| {
        let due = begin + EVERY * n;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        send(&mut client, body);
        due.elapsed().as_secs_f64() * 1e3
    };
    (0..).zip(&bodies).map(call).collect()
}

/// A call with its envelope: made beforehand, for what the client does is not measured.
fn body(client: &mut McpClient, agent: &Agent, chain: Option<&Chain>, n: u32) -> String {
    let arguments = json!({ "n": n });
    let intent = agent.signed(agent.intent("echo", &arguments));
    let mut params = json!({ "name": "echo", "arguments": arguments, "_meta": { "vap": intent } });
    if let Some(chain) = chain {
        let presented: Value = serde_json::from_slice(&chain.canonical()).expect("a chain is JSON");
        params["_meta"]["dev.tabellion/roa"] = presented;
        let proof = proof(chain, AGENTS[3], "echo", &arguments, black_box::gateway::GATEWAY);
        params["_meta"]["dev.tabellion/roa-proof"] = proof.into();
    }
    client.dress(&mut params);
    client.body("tools/call", &params)
}

fn send(client: &mut McpClient, body: &str) {
    let answer = client.send("tools/call", Some("echo"), body);
    let failed = answer.body.windows(9).any(|part| part == b"\"isError\"");
    assert!(answer.status == 200 && !failed, "{answer:?}");
}

/// What one call takes, with nothing beside it, in milliseconds.
fn alone(client: &mut McpClient, agent: &Agent, n: u32) -> f64 {
    let body = body(client, agent, None, n);
    let begun = Instant::now();
    send(client, &body);
    begun.elapsed().as_secs_f64() * 1e3
}

/// A block written and made durable, again and again.
fn durable_writes() -> Vec<f64> {
    let mut file: File = tempfile::tempfile().expect("a file");
    let write = |_| {
        let begun = Instant::now();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&[7; 4096])).expect("a disk with room");
        file.sync_data().expect("a disk");
        begun.elapsed().as_secs_f64() * 1e3
    };
    (0..SYNCS).map(write).collect()
}

/// In MiB: before, with so many sessions, and with so many connections besides. What the first calls took, and the last ones.
fn memory(sessions: usize, idle: usize) -> Value {
    let bench = Bench::new();
    let agents = agents(u32::try_from(sessions).expect("not so many"));
    bench.with(&agents, |running| {
        let mib = || running.memory() / (1 << 20);
        let before = mib();
        let mut client = running.modern();
        let times: Vec<f64> = agents
            .iter()
            .map(|agent| {
                agent.commit(&mut client).must_succeed();
                alone(&mut client, agent, 0)
            })
            .collect();
        let (with, (mut first, mut last)) = (mib(), ends(&times));
        let held: Vec<_> = (0..idle).map(|_| connected(running.url())).collect();
        // Until all of them are accepted.
        alone(&mut running.modern(), &agents[0], 1);
        json!({
            "sessions": sessions,
            "before_mib": before,
            "with_sessions_mib": with,
            "idle_connections": held.len(),
            "with_connections_mib": mib(),
            "goal_mib": 256,
            "first_calls_p50_ms": percentile(&mut first, 0.5),
            "last_calls_p50_ms": percentile(&mut last, 0.5),
        })
    })
}

fn connected(url: &str) -> TcpStream {
    let (address, _path) = url.trim_start_matches("http://").split_once('/').expect("an endpoint");
    TcpStream::connect(address).expect("it listens")
}

/// In milliseconds a call, at the beginning and at the end of one session; and at its end beside a new one, in turns. There is
/// no log, so the outbox has grown as well.
fn growth(length: usize) -> Value {
    let (upstream, agents) = (McpServer::ordinary(), agents(2));
    let gateway = Gateway::before(&upstream.url()).knowing(&agents[0]);
    let running = gateway.start();
    let (old, new, mut client) = (&agents[0], &agents[1], running.modern());
    let unlimited = json!({ "budget": { "max_calls": 10_000_000 } });
    old.commit_to(&mut client, unlimited.clone()).must_succeed();
    let mut number = 0..;
    let mut call = |agent| alone(&mut client, agent, number.next().expect("there are more"));
    let times: Vec<f64> = (0..length.max(2 * SAMPLE)).map(|_| call(old)).collect();
    let (mut first, mut last) = ends(&times);
    new.commit_to(&mut running.modern(), unlimited).must_succeed();
    let (mut olds, mut news): (Vec<f64>, Vec<f64>) = (0..SAMPLE).map(|_| (call(old), call(new))).unzip();
    let [old, new] = [&mut olds, &mut news].map(|times| percentile(times, 0.5));
    running.stop();
    json!({
        "calls": times.len(),
        "first_p50_ms": percentile(&mut first, 0.5),
        "last_p50_ms": percentile(&mut last, 0.5),
        "at_its_end_p50_ms": old,
        "in_a_new_session_p50_ms": new,
        "ratio": old / new,
    })
}

/// The first and the last of them.
fn ends(times: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let sample = SAMPLE.min(times.len());
    (times[..sample].to_vec(), times[times.len() - sample..].to_vec())
}

/// The value below which that share lies: one of them.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    // An index within the list.
    let at = (last as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
