//! What a gateway adds to a call: an open loop of sessions that call at fixed times, straight to a stub and through the gateway, in
//! turns, beside what one durable write of 4 KiB costs on the same disk in the same run. Then what it holds for many sessions, and
//! whether a call costs more in a long one.
//!
//! ```text
//! ./test --run cargo run --release -p black-box --example gateway_bench              # the whole of it
//! ./test --run cargo run --release -p black-box --example gateway_bench -- 2 100 500  # rounds, sessions, calls of the long one
//! ```
//!
//! Prints one JSON object. Not here: whether anything is right (`tests/gateway_*.rs`).

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::thread;
use std::time::{Duration, Instant};

use black_box::{Agent, Gateway, GatewayProcess, McpClient, Upstream};
use serde_json::{Value, json};

/// Sessions that call at the same time.
const CALLERS: u32 = 50;
/// Between two calls of one of them: four a second.
const EVERY: Duration = Duration::from_millis(250);
/// Calls of each in one turn.
const CALLS: u32 = 40;
/// Durable writes in one turn.
const SYNCS: usize = 400;
/// Calls over which a price is taken, at both ends of a long session.
const SAMPLE: usize = 500;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let mut next = |usual| arguments.next().unwrap_or(usual);
    let (rounds, sessions, length) = (next(3), next(10_000), next(20_000));
    let latency = latency(rounds);
    let memory = memory(sessions);
    let growth = growth(length);
    println!("{:#}", json!({ "latency": latency, "memory": memory, "long_session": growth }));
}

/// A gateway before a stub, with a log that takes its records.
struct Bench {
    upstream: Upstream,
    log: black_box::Log,
}

impl Bench {
    fn new() -> Self {
        Self { upstream: Upstream::ordinary(), log: black_box::gateway::admitting_log() }
    }

    fn with<T>(&self, agents: &[Agent], measure: impl FnOnce(&GatewayProcess) -> T) -> T {
        let service = self.log.serve();
        let gateway = Gateway::before(&self.upstream.url()).logging_to(service.url());
        let gateway = agents.first().into_iter().fold(gateway, Gateway::knowing);
        let running = gateway.start();
        let measured = measure(&running);
        running.stop();
        service.stop();
        measured
    }
}

fn agents(count: u32) -> Vec<Agent> {
    (0..count).map(|n| Agent::new(&format!("session-{n}"))).collect()
}

/// In milliseconds.
fn latency(rounds: usize) -> Value {
    let (bench, agents) = (Bench::new(), agents(CALLERS));
    let (mut direct, mut through, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    bench.with(&agents, |running| {
        for agent in &agents {
            agent
                .commit_to(&mut running.modern(), json!({ "budget": { "max_calls": 1_000_000 } }))
                .must_succeed();
        }
        for _ in 0..rounds {
            direct.extend(open_loop(&bench.upstream.url(), &agents));
            syncs.extend(durable_writes());
            through.extend(open_loop(running.url(), &agents));
            syncs.extend(durable_writes());
        }
    });
    let at = |values: &mut Vec<f64>, share| percentile(values, share);
    let (d50, d99) = (at(&mut direct, 0.5), at(&mut direct, 0.99));
    let (t50, t99) = (at(&mut through, 0.5), at(&mut through, 0.99));
    let (f50, f99) = (at(&mut syncs, 0.5), at(&mut syncs, 0.99));
    let goals = (0.5 + 3.0 * f50, 1.5 + 3.0 * f99);
    json!({
        "calls": through.len(),
        "direct_ms": { "p50": d50, "p99": d99 },
        "through_ms": { "p50": t50, "p99": t99 },
        "fdatasync_4k_ms": { "p50": f50, "p99": f99 },
        "added_ms": { "p50": t50 - d50, "p99": t99 - d99 },
        "goal_ms": { "p50": goals.0, "p99": goals.1 },
        "met": { "p50": t50 - d50 <= goals.0, "p99": t99 - d99 <= goals.1 },
    })
}

/// Each caller calls when its time has come, whether or not it has heard; how long that took counts from then on.
fn open_loop(url: &str, agents: &[Agent]) -> Vec<f64> {
    let begin = Instant::now() + Duration::from_millis(300);
    thread::scope(|scope| {
        let callers: Vec<_> = agents
            .iter()
            .enumerate()
            .map(|(n, agent)| {
                scope.spawn(move || {
                    caller(url, agent, begin + EVERY * u32::try_from(n).unwrap_or(0) / CALLERS)
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    })
}

fn caller(url: &str, agent: &Agent, begin: Instant) -> Vec<f64> {
    let mut client = McpClient::modern(url);
    // What is made beforehand is not measured.
    let bodies: Vec<String> = (0..CALLS)
        .map(|n| {
            let arguments = json!({ "n": n });
            let intent = agent.signed(agent.intent("echo", &arguments));
            let mut params = json!({ "name": "echo", "arguments": arguments, "_meta": { "vap": intent } });
            client.dress(&mut params);
            client.body("tools/call", &params)
        })
        .collect();
    let call = |(n, body): (u32, &String)| {
        let due = begin + EVERY * n;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let answer = client.send("tools/call", Some("echo"), body);
        assert!(
            answer.status == 200 && !answer.body.windows(9).any(|part| part == b"\"isError\""),
            "{answer:?}"
        );
        due.elapsed().as_secs_f64() * 1e3
    };
    (0..).zip(&bodies).map(call).collect()
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

/// In MiB, before and with so many sessions.
fn memory(sessions: usize) -> Value {
    let bench = Bench::new();
    let agents = agents(u32::try_from(sessions).expect("not so many"));
    bench.with(&agents, |running| {
        let mib = || running.memory() / (1 << 20);
        let before = mib();
        let mut client = running.modern();
        for agent in &agents {
            agent.commit(&mut client).must_succeed();
            agent.call(&mut client, "echo", json!({ "of": agent.session })).must_succeed();
        }
        json!({ "sessions": sessions, "before_mib": before, "with_mib": mib(), "goal_mib": 256 })
    })
}

/// In milliseconds a call, at the beginning and at the end of one session.
fn growth(length: usize) -> Value {
    let (bench, agents) = (Bench::new(), agents(1));
    bench.with(&agents, |running| {
        let (agent, mut client) = (&agents[0], running.modern());
        agent.commit_to(&mut client, json!({ "budget": { "max_calls": 10_000_000 } })).must_succeed();
        let mut times: Vec<f64> = (0..length)
            .map(|n| {
                let begun = Instant::now();
                agent.call(&mut client, "echo", json!({ "n": n })).must_succeed();
                begun.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        let sample = SAMPLE.min(length / 2);
        let mut last = times.split_off(length - sample);
        times.truncate(sample);
        json!({ "calls": length, "first_p50_ms": percentile(&mut times, 0.5), "last_p50_ms": percentile(&mut last, 0.5) })
    })
}

/// The value below which that share lies: one of them.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    // An index within the list.
    let at = (last as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}
