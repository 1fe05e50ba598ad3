//! Times of the explorer's pages on a log that [`grow`](crate::grow) made.
//!
//! A session and a chain of verification receipts are registered first, as a grown log has neither. Then each page is
//! requested once, with cold caches of its own, and once in each round, one request at a time: in each round all pages, so
//! that other load on the machine affects all of them.

mod list;
mod table;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::existing::{GrownEntries, database_of};
use crate::http::{self, Connection, Frame};
use crate::limits::PAGE_GOAL_MS;
use crate::machine;
use crate::numbers::Numbers;
use crate::result::Machine;
use crate::service::{ENTRIES, RunningService};
use crate::statements::ListedStatements;
use crate::stats::percentile;
use list::Page;
pub use table::text;

/// Starts of the lists whose items are rows.
const LISTS: [&str; 2] = ["<ol class=\"rows\">", "<ol class=\"timeline\">"];

/// What is measured.
#[derive(Clone, Debug)]
pub struct PagesPlan {
    /// The program, which has the command `serve`.
    pub program: PathBuf,
    /// Folder of the log.
    pub folder: PathBuf,
    /// Number of requests of each page, after the first.
    pub rounds: NonZeroUsize,
}

/// Times of all pages.
#[derive(Clone, Debug, Serialize)]
pub struct PagesResult {
    /// The machine.
    machine: Machine,
    /// Version of the program.
    program: &'static str,
    /// `sqlite` or `postgres`.
    database: &'static str,
    /// Leaves of the log.
    leaves: u64,
    /// Number of requests of each page, after the first.
    rounds: usize,
    /// The goal for the median in milliseconds.
    goal_ms: f64,
    /// The pages.
    pages: Vec<PageResult>,
}

/// Times of one page.
#[derive(Clone, Debug, Serialize)]
struct PageResult {
    /// Name of the page.
    page: String,
    /// Its path and query.
    path: String,
    /// Number of rows in its lists.
    rows: usize,
    /// Length in bytes.
    bytes: usize,
    /// Milliseconds of the first request.
    first_ms: f64,
    /// Median of the later requests in milliseconds.
    p50_ms: f64,
    /// Their 99th percentile.
    p99_ms: f64,
    /// The slowest of them.
    worst_ms: f64,
}

/// Registers a session and a chain, and measures all pages.
///
/// # Errors
/// If the folder has no log of [`grow`](crate::grow), the service does not start, or a page is not served.
pub async fn measure(plan: &PagesPlan) -> anyhow::Result<PagesResult> {
    let (machine, database) = (machine::describe(), database_of(&plan.folder)?);
    let grown = GrownEntries::read(&plan.folder)?.context("the log was not made by `bench grow`")?;
    ensure!(grown.entries > 0, "the log has no entries whose pages could be measured");
    let service = RunningService::start(&plan.program, &plan.folder, 1, Vec::new()).await?;
    let address = *service.addresses().first().context("the service has no process")?;
    let before = service.metrics().await?.leaves as u64;
    let listed = ListedStatements::sign(&Numbers::unused())?;
    register(address, &listed).await?;
    let pages = list::pages(&grown, &listed, before)?;
    let pages = time_all(address, pages, plan.rounds.get()).await?;
    let leaves = service.metrics().await?.leaves as u64;
    service.stop().await?;
    Ok(PagesResult {
        machine,
        program: env!("CARGO_PKG_VERSION"),
        database: database.name(),
        leaves,
        rounds: plan.rounds.get(),
        goal_ms: PAGE_GOAL_MS,
        pages,
    })
}

/// Registers the statements one after the other: each receipt of the chain needs the one before it.
async fn register(address: SocketAddr, listed: &ListedStatements) -> anyhow::Result<()> {
    let mut connection = Connection::open(address).await?;
    for statement in &listed.statements {
        let request = http::post(ENTRIES, "application/cose", statement.bytes());
        let response = connection.send(&request).await?;
        let body = String::from_utf8_lossy(connection.body(&response));
        ensure!(response.status == 201, "a statement was not registered: {}, {body}", response.status);
    }
    Ok(())
}

async fn time_all(address: SocketAddr, pages: Vec<Page>, rounds: usize) -> anyhow::Result<Vec<PageResult>> {
    let mut connection = Connection::open(address).await?;
    let mut timed = Vec::new();
    for page in pages {
        timed.push(TimedPage::first(&mut connection, page).await?);
    }
    for _ in 0..rounds {
        for page in &mut timed {
            page.again(&mut connection).await?;
        }
    }
    timed.into_iter().map(TimedPage::result).collect()
}

/// A page with the times of its requests.
struct TimedPage {
    page: Page,
    rows: usize,
    bytes: usize,
    first_ms: f64,
    later_ms: Vec<f64>,
}

impl TimedPage {
    /// Requests a page for the first time.
    async fn first(connection: &mut Connection, page: Page) -> anyhow::Result<Self> {
        let (first_ms, response) = request(connection, &page).await?;
        let rows = rows(&String::from_utf8_lossy(connection.body(&response)));
        Ok(Self { page, rows, bytes: response.body, first_ms, later_ms: Vec::new() })
    }

    async fn again(&mut self, connection: &mut Connection) -> anyhow::Result<()> {
        self.later_ms.push(request(connection, &self.page).await?.0);
        Ok(())
    }

    fn result(mut self) -> anyhow::Result<PageResult> {
        let mut quantile = |p| percentile(&mut self.later_ms, p).context("no page was requested again");
        let (p50_ms, p99_ms, worst_ms) = (quantile(0.5)?, quantile(0.99)?, quantile(1.0)?);
        let Self { page: Page { name, path }, rows, bytes, first_ms, .. } = self;
        Ok(PageResult { page: name, path, rows, bytes, first_ms, p50_ms, p99_ms, worst_ms })
    }
}

/// Requests a page, and returns the milliseconds until it has arrived.
async fn request(connection: &mut Connection, page: &Page) -> anyhow::Result<(f64, Frame)> {
    let sent = Instant::now();
    let response = connection.send(&http::get_request(&page.path)).await?;
    let took = sent.elapsed().as_secs_f64() * 1e3;
    ensure!(response.status == 200, "{}: status {}", page.path, response.status);
    Ok((took, response))
}

/// Counts the rows of the lists of a page.
fn rows(page: &str) -> usize {
    let lists = LISTS.iter().flat_map(|start| page.split(start).skip(1));
    lists.filter_map(|list| list.split("</ol>").next()).map(|list| list.matches("<li").count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_items_of_lists_of_rows() {
        let page = "<ul><li>menu</li></ul><ol class=\"rows\"><li>a</li><li class=\"gap\">b</li></ol>\
                    <ol><li>c</li></ol><ol class=\"timeline\"><li>d</li></ol><p><li>";
        assert_eq!(rows(page), 3);
        assert_eq!(rows("<p>none</p>"), 0);
    }
}
