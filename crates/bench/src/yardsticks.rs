//! Measurements of the parts of a registration alone, and of another service.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;

use crate::database::DatabaseHost;
use crate::echo::EchoServer;
use crate::limits::STATEMENTS_PER_SECOND;
use crate::load::{self, LoadPlan, Processes};
use crate::numbers::Numbers;
use crate::options::{BenchOptions, PeerService};
use crate::peer::{RunningPeer, needs_postgres};
use crate::raw;
use crate::result::{LoadResult, Yardsticks};
use crate::statements::{SignedLoad, Statements};

/// What is measured before the log of a round.
pub(crate) struct YardstickPlan<'a> {
    pub(crate) options: &'a BenchOptions,
    /// Statements whose bytes are sent and inserted, again and again.
    pub(crate) statements: &'a Statements,
    /// Numbers for statements of a peer, which keeps those of earlier rounds.
    pub(crate) numbers: &'a Numbers,
    /// The database for raw inserts; `None` for an existing log, in whose database nothing else is created.
    pub(crate) raw_host: Option<&'a DatabaseHost>,
    /// All databases of the measurement, of which a peer may need a PostgreSQL server.
    pub(crate) servers: Vec<&'a DatabaseHost>,
}

impl YardstickPlan<'_> {
    /// Measures raw inserts, HTTP echo and the peer, in this order.
    pub(crate) async fn measure(&self) -> anyhow::Result<Yardsticks> {
        let raw = match self.raw_host {
            Some(host) => {
                let name = format!("bench_{}_raw", std::process::id());
                Some(raw::measure(host, &name, self.statements, self.options.length).await?)
            }
            None => None,
        };
        Ok(Yardsticks { raw, echo: self.echo().await?, peer: self.peer().await? })
    }

    async fn echo(&self) -> anyhow::Result<Vec<LoadResult>> {
        let echo = EchoServer::start(&self.options.program, &self.options.echo).await?;
        let processes = Processes { service: vec![echo.pid()], database: Vec::new() };
        let mut loads = Vec::new();
        for clients in self.options.clients.iter().copied() {
            let plan = self.plan(echo.address, self.statements.requests(), clients, &processes);
            loads.push(load::run(LoadPlan { count: usize::MAX, ..plan }).await?.0);
        }
        Ok(loads)
    }

    async fn peer(&self) -> anyhow::Result<Vec<LoadResult>> {
        let Some(peer) = &self.options.peer else { return Ok(Vec::new()) };
        if !needs_postgres(peer) {
            return self.peer_loads(peer, None, Vec::new()).await;
        }
        let is_server = |host: &&&DatabaseHost| matches!(host, DatabaseHost::Postgres(_));
        let server = self.servers.iter().find(is_server);
        let server = server.context("the peer needs a PostgreSQL server, and --db names none")?;
        let name = format!("bench_{}_peer", std::process::id());
        let url = server.create(&name).await?;
        let loads = self.peer_loads(peer, Some(&url), server.pids()).await?;
        server.drop(&name).await?;
        Ok(loads)
    }

    /// Runs a load with new statements for each number of clients.
    async fn peer_loads(
        &self,
        peer: &PeerService,
        postgres: Option<&str>,
        database: Vec<u32>,
    ) -> anyhow::Result<Vec<LoadResult>> {
        let running = RunningPeer::start(peer, postgres).await?;
        let processes = Processes { service: running.pid().into_iter().collect(), database };
        let length = self.options.length;
        let count = STATEMENTS_PER_SECOND * length.as_secs_f64().ceil() as usize;
        let (content_type, bytes) = (self.options.first_type(), self.options.bytes);
        let needed = SignedLoad { content_type, bytes, path: &peer.path, length };
        let mut loads = Vec::new();
        for clients in self.options.clients.iter().copied() {
            let statements = Statements::sign_for(&needed, self.numbers, count)?;
            let plan = self.plan(peer.address, statements.requests(), clients, &processes);
            loads.push(load::run(plan).await.context("the peer")?.0);
        }
        Ok(loads)
    }

    /// Returns the plan of a closed loop that sends each request once.
    fn plan(
        &self,
        address: SocketAddr,
        requests: &Arc<Vec<Vec<u8>>>,
        clients: usize,
        processes: &Processes,
    ) -> LoadPlan {
        LoadPlan {
            addresses: vec![address],
            requests: Arc::clone(requests),
            count: requests.len(),
            clients,
            offered: None,
            length: self.options.length,
            processes: processes.clone(),
        }
    }
}
