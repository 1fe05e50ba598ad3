//! Measurement of one log in one round.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use fastrand::Rng;
use merkle::EntryDigest;

use crate::database::DatabaseHost;
use crate::existing::GrownEntries;
use crate::http;
use crate::limits::{
    ALONE, ALONE_FOR, INDEX_SETTLES, OPEN_CONNECTIONS, POLL, PROOF_CLIENTS, PROVEN, STATEMENTS_PER_SECOND,
    WARM_UP,
};
use crate::load::{self, LoadPlan};
use crate::numbers::Numbers;
use crate::options::{BenchOptions, OfferedRate};
use crate::prometheus::Metrics;
use crate::result::{Counts, LoadResult, LogResult, TypeResult};
use crate::service::{ENTRIES, RunningService};
use crate::statements::{SignedLoad, Statements, sign_all};

/// A log, new or existing, and the statements for it.
pub(crate) struct LogUnderTest<'a> {
    pub(crate) options: &'a BenchOptions,
    /// Folder of the log.
    pub(crate) folder: &'a Path,
    pub(crate) host: &'a DatabaseHost,
    /// Numbers of the statements.
    pub(crate) numbers: &'a Numbers,
}

/// The closed loops, with what they cost the service.
struct ClosedLoops {
    loads: Vec<LoadResult>,
    counts: Counts,
    before: Metrics,
    after: Metrics,
    /// Statements of the loop with most clients.
    statements: Statements,
    /// Number of those that were sent.
    sent: usize,
}

impl LogUnderTest<'_> {
    /// Runs all loads, kills the service, and measures its restart.
    pub(crate) async fn measure(&self, service: RunningService) -> anyhow::Result<LogResult> {
        self.warm_up(&service).await?;
        let closed = self.closed_loops(&service).await?;
        let mut memory_bytes = service.memory_bytes();
        let best = closed.loads.last().map_or(0.0, |load| load.per_second);
        let open = self.open_loops(&service, best).await?;
        let types = self.other_types(&service).await?;
        let known = self.known(&service, &closed).await?;
        let proofs = self.proofs(&service, &closed).await?;
        memory_bytes = memory_bytes.max(service.memory_bytes());
        service.kill();
        let restart_ms = self.restart().await?;
        let (leaves, counts) = (closed.before.leaves as u64, closed.counts);
        let stages = closed.after.stages_since(&closed.before);
        Ok(LogResult {
            leaves,
            closed: closed.loads,
            open,
            types,
            known,
            proofs,
            counts,
            stages,
            memory_bytes,
            restart_ms,
        })
    }

    async fn warm_up(&self, service: &RunningService) -> anyhow::Result<()> {
        let statements = self.sign(WARM_UP)?;
        let plan = LoadPlan { clients: PROOF_CLIENTS, ..self.plan(service, statements.requests()) };
        load::run(plan).await?;
        Ok(())
    }

    async fn closed_loops(&self, service: &RunningService) -> anyhow::Result<ClosedLoops> {
        let before = service.metrics().await?;
        let mut loads = Vec::new();
        let (most, fewer) = self.options.clients.split_last().unwrap_or((&1, &[]));
        for clients in fewer {
            loads.push(self.fewer_clients(service, *clients).await?);
        }
        let statements = self.sign(self.statements_for(STATEMENTS_PER_SECOND as f64))?;
        let (counted, written) = (service.metrics().await?, self.host.wal_bytes().await?);
        let (load, sent) = self.load(service, &statements, *most, None).await?;
        settle(service).await?;
        let (after, now) = (service.metrics().await?, self.host.wal_bytes().await?);
        let (batches, done) = (after.batches - counted.batches, load.done as f64);
        let counts = Counts {
            wal_bytes: now.zip(written).map(|(now, before)| (now - before) / done),
            batches: batches / done,
            signatures_per_batch: (after.signatures - counted.signatures) / batches.max(1.0),
        };
        loads.push(load);
        Ok(ClosedLoops { loads, counts, before, after, statements, sent })
    }

    async fn fewer_clients(&self, service: &RunningService, clients: usize) -> anyhow::Result<LoadResult> {
        let count = if clients == 1 { ALONE } else { self.statements_for(STATEMENTS_PER_SECOND as f64) };
        Ok(self.load(service, &self.sign(count)?, clients, None).await?.0)
    }

    async fn open_loops(&self, service: &RunningService, best: f64) -> anyhow::Result<Vec<LoadResult>> {
        let mut loads = Vec::new();
        for offered in &self.options.offered {
            let rate = match offered {
                OfferedRate::PerSecond(rate) => *rate,
                OfferedRate::Multiple(factor) => factor * best,
            };
            let statements = self.sign(self.statements_for(rate) + OPEN_CONNECTIONS)?;
            loads.push(self.load(service, &statements, OPEN_CONNECTIONS, Some(rate)).await?.0);
        }
        Ok(loads)
    }

    async fn other_types(&self, service: &RunningService) -> anyhow::Result<Vec<TypeResult>> {
        let mut results = Vec::new();
        for content_type in self.options.types.iter().skip(1) {
            let count = self.statements_for(STATEMENTS_PER_SECOND as f64);
            let statements = self.sign_type(content_type, count)?;
            let load = self.load(service, &statements, self.options.most_clients(), None).await;
            let (load, _) = load.with_context(|| content_type.clone())?;
            let statement_bytes = statements.length();
            results.push(TypeResult { content_type: content_type.clone(), statement_bytes, load });
        }
        Ok(results)
    }

    /// Registers statements again that are in the log.
    async fn known(&self, service: &RunningService, closed: &ClosedLoops) -> anyhow::Result<LoadResult> {
        let plan = LoadPlan {
            count: closed.sent,
            clients: self.options.most_clients(),
            ..self.plan(service, closed.statements.requests())
        };
        Ok(load::run(plan).await?.0)
    }

    /// Reads receipts of entries anywhere in the log, or of those that were just registered if their statements are
    /// not known.
    async fn proofs(&self, service: &RunningService, closed: &ClosedLoops) -> anyhow::Result<LoadResult> {
        let digests = match GrownEntries::read(self.folder)? {
            Some(grown) => grown_digests(&grown)?,
            None => closed.statements.bodies().take(closed.sent).take(PROVEN).map(EntryDigest::of).collect(),
        };
        let requests = digests.iter().map(|digest| http::get_request(&format!("{ENTRIES}/{digest}")));
        let requests = Arc::new(requests.collect::<Vec<_>>());
        let plan = LoadPlan { clients: PROOF_CLIENTS, ..self.plan(service, &requests) };
        Ok(load::run(plan).await?.0)
    }

    /// Starts one process, and returns the milliseconds until it has returned a receipt.
    async fn restart(&self) -> anyhow::Result<f64> {
        let statements = self.sign(1)?;
        let begun = Instant::now();
        let service = RunningService::start(&self.options.program, self.folder, 1, Vec::new()).await?;
        let plan = LoadPlan { clients: 1, ..self.plan(&service, statements.requests()) };
        load::run(plan).await?;
        let restart = begun.elapsed().as_secs_f64() * 1e3;
        service.stop().await?;
        Ok(restart)
    }

    fn sign(&self, count: usize) -> anyhow::Result<Statements> {
        self.sign_type(self.options.first_type(), count)
    }

    fn sign_type(&self, content_type: &str, count: usize) -> anyhow::Result<Statements> {
        let (bytes, length) = (self.options.bytes, self.options.length);
        let needed = SignedLoad { content_type, bytes, path: ENTRIES, length };
        Statements::sign_for(&needed, self.numbers, count)
    }

    /// Returns the number of statements that one load needs at a rate.
    fn statements_for(&self, per_second: f64) -> usize {
        (per_second * self.options.length.as_secs_f64()).ceil() as usize
    }

    /// Runs a load with the statements; returns its result, and the number of statements that were sent.
    async fn load(
        &self,
        service: &RunningService,
        statements: &Statements,
        clients: usize,
        offered: Option<f64>,
    ) -> anyhow::Result<(LoadResult, usize)> {
        let length = if clients == 1 { self.options.length.min(ALONE_FOR) } else { self.options.length };
        let plan = self.plan(service, statements.requests());
        load::run(LoadPlan { clients, offered, length, ..plan }).await
    }

    /// Returns the plan of a closed loop with one client that sends all requests.
    fn plan(&self, service: &RunningService, requests: &Arc<Vec<Vec<u8>>>) -> LoadPlan {
        LoadPlan {
            addresses: service.addresses(),
            requests: Arc::clone(requests),
            count: requests.len(),
            clients: 1,
            offered: None,
            length: self.options.length,
            processes: service.processes(),
        }
    }
}

/// Waits until the search index has all leaves, so that its writes are counted; a while at most, as an index may keep
/// its newest entries in memory.
async fn settle(service: &RunningService) -> anyhow::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < INDEX_SETTLES && service.metrics().await?.index_lag > 0.0 {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Returns the digests of random entries that [`grow`](crate::grow) wrote, each made again from its number.
fn grown_digests(grown: &GrownEntries) -> anyhow::Result<Vec<EntryDigest>> {
    let mut random = Rng::with_seed(grown.entries);
    let numbers = (0..PROVEN).map(|_| random.u64(0..grown.entries));
    let mut digests = Vec::new();
    for number in numbers {
        let statements = sign_all(&grown.content_type, number..number + 1, grown.bytes)?;
        digests.extend(statements.iter().map(|statement| statement.digest()));
    }
    Ok(digests)
}
