//! Closed-loop load: each client waits for a response before its next request.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cpu;
use crate::http::Connection;
use crate::stats::percentile;

/// Parameters of [`run`].
pub struct Plan<'a> {
    /// Address of the server.
    pub address: SocketAddr,
    /// Requests to send. Each is sent at most once, so that the load ends when all are sent.
    pub requests: &'a Arc<Vec<Vec<u8>>>,
    /// Index in `requests` of the first request to send.
    pub first: usize,
    /// Maximum number of requests to send.
    pub count: usize,
    /// Number of clients, each with one [`Connection`].
    pub clients: usize,
    /// Maximum duration.
    pub length: Duration,
    /// Process IDs of the server, for [`Cpu::server_us`].
    pub server: &'a [u32],
    /// Process IDs of the server's database, if it has its own, for [`Cpu::database_us`].
    pub database: &'a [u32],
}

/// Result of [`run`].
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// Number of clients.
    pub clients: usize,
    /// Number of requests sent.
    pub sent: usize,
    /// Number of requests with status 200 or 201.
    pub done: usize,
    /// Number of other responses by status; 0 stands for a broken connection.
    pub others: BTreeMap<u16, usize>,
    /// Requests counted in `done` per second.
    pub per_second: f64,
    /// Median latency in milliseconds of the requests counted in `done`.
    pub p50_ms: f64,
    /// 99th percentile of the latency in milliseconds of the requests counted in `done`.
    pub p99_ms: f64,
    /// CPU time per request counted in `done`.
    pub cpu: Cpu,
}

/// CPU time per request in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cpu {
    /// CPU time of the client.
    pub client_us: f64,
    /// CPU time of the server.
    pub server_us: f64,
    /// CPU time of the database's own processes.
    pub database_us: f64,
}

impl Cpu {
    /// Returns the sum of all parts.
    pub fn total(&self) -> f64 {
        self.client_us + self.server_us + self.database_us
    }
}

#[derive(Default)]
struct Client {
    milliseconds: Vec<f64>,
    others: BTreeMap<u16, usize>,
}

/// Runs a load until `length` has passed or all requests are sent.
pub async fn run(plan: Plan<'_>) -> anyhow::Result<Load> {
    let clock = |begun: [f64; 3]| {
        let now = [cpu::own(), cpu::of(plan.server), cpu::of(plan.database)];
        std::array::from_fn::<f64, 3, _>(|part| now[part] - begun[part])
    };
    let next = Arc::new(AtomicUsize::new(plan.first));
    let end = plan.requests.len().min(plan.first + plan.count);
    let mut connections = Vec::new();
    for _ in 0..plan.clients {
        connections.push(Connection::open(plan.address).await?);
    }
    let (before, begun) = (clock([0.0; 3]), Instant::now());
    let until = begun + plan.length;
    let clients = connections.into_iter().map(|connection| {
        tokio::spawn(client(connection, Arc::clone(plan.requests), Arc::clone(&next), end, until))
    });
    let mut all = Client::default();
    for client in clients.collect::<Vec<_>>() {
        let client = client.await?;
        all.milliseconds.extend(client.milliseconds);
        client.others.into_iter().for_each(|(status, count)| *all.others.entry(status).or_default() += count);
    }
    let (took, used) = (begun.elapsed().as_secs_f64(), clock(before));
    let sent = all.milliseconds.len() + all.others.values().sum::<usize>();
    Ok(summary(plan.clients, sent, all, took, used))
}

async fn client(
    mut connection: Connection,
    requests: Arc<Vec<Vec<u8>>>,
    next: Arc<AtomicUsize>,
    end: usize,
    until: Instant,
) -> Client {
    let mut client = Client::default();
    let mut begun = Instant::now();
    while begun < until {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            break;
        }
        let answer = connection.ask(&requests[number]).await;
        let now = Instant::now();
        match answer {
            Ok(frame) if matches!(frame.status, 200 | 201) => {
                client.milliseconds.push((now - begun).as_secs_f64() * 1e3);
            }
            Ok(frame) => *client.others.entry(frame.status).or_default() += 1,
            Err(_) => {
                *client.others.entry(0).or_default() += 1;
                break;
            }
        }
        begun = now;
    }
    client
}

fn summary(clients: usize, sent: usize, mut all: Client, seconds: f64, used: [f64; 3]) -> Load {
    let done = all.milliseconds.len();
    let each = |seconds: f64| seconds * 1e6 / done as f64;
    Load {
        clients,
        sent,
        done,
        others: all.others,
        per_second: done as f64 / seconds,
        p50_ms: percentile(&mut all.milliseconds, 0.5),
        p99_ms: percentile(&mut all.milliseconds, 0.99),
        cpu: Cpu { client_us: each(used[0]), server_us: each(used[1]), database_us: each(used[2]) },
    }
}
