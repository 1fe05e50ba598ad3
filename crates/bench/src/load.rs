//! Loads: requests by many clients, in a closed or an open loop.
//!
//! In a closed loop each client waits for a response before its next request, so an overloaded service slows its load
//! down. In an open loop requests are due at a fixed rate, and latency counts from the time at which a request was due,
//! so that a service that falls behind cannot hide it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::http::{Connection, Frame};
use crate::process;
use crate::result::{CpuCost, LoadResult};
use crate::stats::percentile;

/// The processes whose CPU time is measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    /// Processes of the service.
    pub(crate) service: Vec<u32>,
    /// Processes of its database, if it has its own.
    pub(crate) database: Vec<u32>,
}

/// Parameters of [`run`].
pub(crate) struct LoadPlan {
    /// Addresses of the service's processes, over which the clients are distributed.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Requests to send, from the first again after the last.
    pub(crate) requests: Arc<Vec<Vec<u8>>>,
    /// Maximum number of requests to send: those in `requests`, unless they may be repeated.
    pub(crate) count: usize,
    /// Number of clients, each with one [`Connection`].
    pub(crate) clients: usize,
    /// Requests per second of an open loop; `None` for a closed loop.
    pub(crate) offered: Option<f64>,
    /// Maximum duration.
    pub(crate) length: Duration,
    /// Processes of the service.
    pub(crate) processes: Processes,
}

/// Runs a load until its duration has passed or all requests are sent. Returns its result, and the number of requests
/// that were sent.
///
/// # Errors
/// If the service is unreachable, or no request succeeds.
pub(crate) async fn run(plan: LoadPlan) -> anyhow::Result<(LoadResult, usize)> {
    let mut connections = Vec::new();
    for address in plan.addresses.iter().cycle().take(plan.clients) {
        connections.push(Connection::open(*address).await?);
    }
    let (before, begun) = (CpuTimes::now(&plan.processes), Instant::now());
    let schedule = Arc::new(Schedule {
        next: AtomicUsize::new(0),
        count: plan.count,
        begun,
        until: begun + plan.length,
        offered: plan.offered,
    });
    let clients = connections.into_iter().map(|connection| {
        tokio::spawn(client(connection, Arc::clone(&plan.requests), Arc::clone(&schedule)))
    });
    let mut all = Responses::default();
    for client in clients.collect::<Vec<_>>() {
        all.add(client.await?);
    }
    let (seconds, used) = (begun.elapsed().as_secs_f64(), CpuTimes::now(&plan.processes).since(&before));
    let sent = schedule.next.load(Ordering::Relaxed).min(plan.count);
    Ok((summary(&plan, all, seconds, used)?, sent))
}

/// Which request is due next, and when.
struct Schedule {
    next: AtomicUsize,
    count: usize,
    begun: Instant,
    until: Instant,
    offered: Option<f64>,
}

impl Schedule {
    /// Waits until the next request is due; returns its index, and the time from which its latency counts.
    async fn next(&self) -> Option<(usize, Instant)> {
        if Instant::now() >= self.until {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.count {
            return None;
        }
        let Some(rate) = self.offered else { return Some((number, Instant::now())) };
        let due = self.begun + Duration::from_secs_f64(number as f64 / rate);
        tokio::time::sleep_until(due.into()).await;
        (due < self.until).then_some((number, due))
    }
}

async fn client(
    mut connection: Connection,
    requests: Arc<Vec<Vec<u8>>>,
    schedule: Arc<Schedule>,
) -> Responses {
    let mut responses = Responses::default();
    while let Some((number, begun)) = schedule.next().await {
        let response = connection.send(&requests[number % requests.len()]).await;
        let broken = response.is_err();
        responses.count(response.ok(), begun.elapsed().as_secs_f64() * 1e3);
        if broken {
            break;
        }
    }
    responses
}

/// Responses by what they say, with latencies in milliseconds.
#[derive(Default)]
struct Responses {
    done: Vec<f64>,
    accepted: usize,
    refused: Vec<f64>,
    refused_with_retry_after: usize,
    others: BTreeMap<u16, usize>,
}

impl Responses {
    /// Counts a response; `None` for a broken connection.
    fn count(&mut self, frame: Option<Frame>, milliseconds: f64) {
        match frame {
            Some(frame) if matches!(frame.status, 200..=202) => {
                self.accepted += usize::from(frame.status == 202);
                self.done.push(milliseconds);
            }
            Some(frame) if matches!(frame.status, 429 | 503) => {
                self.refused_with_retry_after += usize::from(frame.retry_after);
                self.refused.push(milliseconds);
            }
            other => *self.others.entry(other.map_or(0, |frame| frame.status)).or_default() += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.done.extend(other.done);
        self.accepted += other.accepted;
        self.refused.extend(other.refused);
        self.refused_with_retry_after += other.refused_with_retry_after;
        for (status, count) in other.others {
            *self.others.entry(status).or_default() += count;
        }
    }
}

/// CPU seconds of client, service and database.
struct CpuTimes([f64; 3]);

impl CpuTimes {
    fn now(processes: &Processes) -> Self {
        let of = |pids: &[u32]| process::cpu_of(pids);
        Self([process::own_cpu(), of(&processes.service), of(&processes.database)])
    }

    fn since(&self, before: &Self) -> [f64; 3] {
        std::array::from_fn(|part| self.0[part] - before.0[part])
    }
}

fn summary(plan: &LoadPlan, mut all: Responses, seconds: f64, used: [f64; 3]) -> anyhow::Result<LoadResult> {
    let done = all.done.len();
    let each = |seconds: f64| seconds * 1e6 / done as f64;
    let none = || format!("no request succeeded; other responses by status: {:?}", all.others);
    Ok(LoadResult {
        clients: plan.clients,
        offered: plan.offered,
        done,
        accepted: all.accepted,
        refused: all.refused.len(),
        refused_with_retry_after: all.refused_with_retry_after,
        refused_p99_ms: percentile(&mut all.refused, 0.99),
        per_second: done as f64 / seconds,
        p50_ms: percentile(&mut all.done, 0.5).with_context(none)?,
        p99_ms: percentile(&mut all.done, 0.99).with_context(none)?,
        cpu: CpuCost { client_us: each(used[0]), service_us: each(used[1]), database_us: each(used[2]) },
        others: all.others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(status: u16, retry_after: bool) -> Option<Frame> {
        Some(Frame { status, head: 0, body: 0, close: false, retry_after })
    }

    #[test]
    fn responses_are_counted_by_what_they_say() {
        let mut responses = Responses::default();
        for counted in [frame(201, false), frame(202, false), frame(503, true), frame(429, false)] {
            responses.count(counted, 1.0);
        }
        responses.count(frame(400, false), 1.0);
        responses.count(None, 1.0);
        assert_eq!((responses.done.len(), responses.accepted), (2, 1));
        assert_eq!((responses.refused.len(), responses.refused_with_retry_after), (2, 1));
        assert_eq!(responses.others, BTreeMap::from([(0, 1), (400, 1)]));
    }

    #[tokio::test]
    async fn an_open_loop_sends_at_its_rate_and_counts_from_the_time_that_was_due() {
        let begun = Instant::now();
        let schedule = Schedule {
            next: AtomicUsize::new(10),
            count: 12,
            begun,
            until: begun + Duration::from_secs(10),
            offered: Some(100.0),
        };
        let (first, at) = schedule.next().await.unwrap();
        assert_eq!((first, at), (10, begun + Duration::from_millis(100)));
        let (second, at) = schedule.next().await.unwrap();
        assert_eq!((second, at), (11, begun + Duration::from_millis(110)));
        assert!(schedule.next().await.is_none());
    }
}
