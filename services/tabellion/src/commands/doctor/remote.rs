//! What a client needs: the log answers, this computer's clock agrees with it, and its witnesses cosign.

use display::counted;
use jiff::Timestamp;
use serde_json::Value as Json;

use super::finding::Finding;
use crate::commands::verify::now;
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::{Service, ServiceArgs};
use crate::show::{items, text};

/// Seconds that the newest entry may be ahead of this computer's clock.
const CLOCK_TOLERANCE: i64 = 5;
/// Maximum seconds for each request, unless `--timeout` is shorter.
const TIMEOUT: u64 = 10;

/// The findings about a log at an address.
pub struct RemoteFindings {
    /// The log, if it answers.
    pub served: Option<ServedLog>,
    /// The results of the checks.
    pub findings: Vec<Finding>,
}

/// A log that answers, with what it says about itself.
pub struct ServedLog {
    /// Its address.
    pub address: String,
    /// Its name.
    pub origin: String,
    service: Service,
}

/// A tree of a log.
pub struct Tree {
    /// Number of entries.
    pub size: u64,
    /// Root in hex.
    pub root: String,
}

impl ServedLog {
    /// Fetches the newest tree that the log lists as signed, if it lists any.
    pub fn newest_signed(&self) -> Result<Option<Tree>, Failure> {
        // A page with several trees: the newest ones may not be signed yet.
        first_signed(&self.service, "order=newest")
    }

    /// Fetches the root in hex of the tree of this size, if the log lists that as signed.
    pub fn root_of(&self, size: u64) -> Result<Option<String>, Failure> {
        let Some(smaller) = size.checked_sub(1) else { return Ok(None) };
        let next = first_signed(&self.service, &format!("after={smaller}&limit=1"))?;
        Ok(next.filter(|tree| tree.size == size).map(|tree| tree.root))
    }
}

/// Checks the log of `--url` or the setting `log_url`.
pub fn check(context: &Context, service: &ServiceArgs) -> RemoteFindings {
    let service = ServiceArgs { timeout: service.timeout.min(TIMEOUT), ..service.clone() };
    match service.connect(context).and_then(reach) {
        Ok(served) => {
            let what = format!("{} answers at {}", served.origin, served.address);
            let findings = [Finding::ok("log", what), clock(&served.service)];
            let findings = findings.into_iter().chain(witnesses(&served.service)).collect();
            RemoteFindings { served: Some(served), findings }
        }
        Err(failure) => {
            let skipped =
                ["clock", "witnesses"].map(|check| Finding::skipped(check, "the log does not answer"));
            let findings = [Finding::failure("log", &failure)].into_iter().chain(skipped).collect();
            RemoteFindings { served: None, findings }
        }
    }
}

fn reach(service: Service) -> Result<ServedLog, Failure> {
    let policy: Json = service.block_on(service.client.json("v1/policy"))?;
    Ok(ServedLog {
        address: service.client.base().to_string(),
        origin: text(&policy["policy"], "origin"),
        service,
    })
}

/// Fetches a page of signed trees, and returns the first one.
fn first_signed(service: &Service, page: &str) -> Result<Option<Tree>, Failure> {
    let page: Json = service.block_on(service.client.json(&format!("v1/checkpoints?{page}")))?;
    let first = items(&page, "checkpoints").first();
    Ok(first.and_then(|tree| Some(Tree { size: tree["size"].as_u64()?, root: text(tree, "root") })))
}

/// Compares this computer's clock with the time of the newest entry, which cannot be in the future.
fn clock(service: &Service) -> Finding {
    let page: Result<Json, Failure> =
        service.block_on(service.client.json("v1/entries?order=newest&limit=1"));
    let page = match page {
        Ok(page) => page,
        Err(failure) => return Finding::failure("clock", &failure),
    };
    let at = page.pointer("/entries/0/at").and_then(Json::as_str);
    let Some(at) = at.and_then(|at| at.parse::<Timestamp>().ok()) else {
        return Finding::skipped("clock", "the log has no entry with a time");
    };
    let ahead = at.as_second().saturating_sub(i64::try_from(now()).unwrap_or(i64::MAX));
    match ahead > CLOCK_TOLERANCE {
        true => {
            let what =
                format!("this clock is {ahead} s behind the log's newest entry, or the log's was ahead");
            Finding::failed("clock", Exit::Failure, what).fix("timedatectl status")
        }
        false => Finding::ok("clock", format!("not behind the newest entry, of {at}")),
    }
}

fn witnesses(service: &Service) -> Vec<Finding> {
    let listing: Result<Json, Failure> = service.block_on(service.client.json("v1/witnesses"));
    let listing = match listing {
        Ok(listing) => listing,
        Err(failure) => return vec![Finding::failure("witnesses", &failure)],
    };
    let witnesses = items(&listing, "witnesses");
    if witnesses.is_empty() {
        let what = "the log has none: only monitors see a split view";
        return vec![Finding::warning("witnesses", what).fix("tabellion witness add --help")];
    }
    let late = witnesses.iter().filter(|witness| witness["fresh"] != true);
    let names: Vec<String> = late.map(|witness| text(witness, "name")).collect();
    let fix = "tabellion witness status";
    match (listing["quorum_met"] == true, names.as_slice()) {
        (false, _) => {
            let what = format!("the quorum is not met; late: {}", names.join(", "));
            vec![Finding::failed("witnesses", Exit::Stale, what).fix(fix)]
        }
        (true, []) => vec![Finding::ok("witnesses", counted(witnesses.len(), "cosigns", "cosign"))],
        (true, _) => vec![Finding::warning("witnesses", format!("late: {}", names.join(", "))).fix(fix)],
    }
}
