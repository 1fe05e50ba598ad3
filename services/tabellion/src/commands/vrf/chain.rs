//! `tabellion vrf chain`: lists a verifier's chained receipts, verifies each statement, and reports gaps and forks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use verifier::{TrustStore, VerificationOutcome};

use super::chained_receipt::{ChainedReceipt, ReceiptCheck};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::service::{Service, ServiceArgs, percent_encoded};
use crate::trust_file::TrustFile;

/// Maximum number of pages of one list.
const MAX_PAGES: usize = 10_000;

#[derive(Debug, Args)]
pub struct Chain {
    /// The verifier (`iss` of the receipts)
    issuer: String,
    /// The agent [default: all agents]
    #[arg(long, value_name = "DID")]
    sub: Option<String>,
    /// The trust file [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Chain {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let trust = TrustFile::find(context, self.trust.as_deref())?.store;
        let service = self.service.connect(context)?;
        let subjects = match self.sub {
            Some(sub) => BTreeSet::from([sub]),
            None => subjects(&service, &self.issuer)?,
        };
        let walked = subjects.iter().map(|sub| ReceiptChain::through(&service, &self.issuer, sub, &trust));
        let chains = walked.collect::<Result<Vec<_>, _>>()?;
        if chains.is_empty() {
            return Err(Failure::new(Exit::NotFound, "not-found", "the log holds no receipt of this issuer"));
        }
        let chains = Chains { chains };
        context.console.result(&chains)?;
        match chains.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }
}

/// Fetches all pages of a list, at most [`MAX_PAGES`].
fn pages<T: serde::de::DeserializeOwned>(
    service: &Service,
    first: String,
    mut take: impl FnMut(T),
) -> Result<(), Failure> {
    let mut next = Some(first);
    for _ in 0..MAX_PAGES {
        let Some(path) = next else { return Ok(()) };
        let (page, more) = service.block_on(service.client.page(&path))?;
        take(page);
        next = more;
    }
    Err(Failure::new(Exit::Failure, "nonsense", "the service's list does not end"))
}

/// Returns the agents about whom the issuer has registered receipts.
fn subjects(service: &Service, issuer: &str) -> Result<BTreeSet<String>, Failure> {
    let mut subjects = BTreeSet::new();
    pages(service, format!("v1/entries?issuer={}", percent_encoded(issuer)), |page: Json| {
        let entries = page.get("entries").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let receipts = entries.iter().filter(|entry| entry.pointer("/facts/receipt_id").is_some());
        subjects.extend(receipts.filter_map(|entry| Some(entry.get("sub")?.as_str()?.to_owned())));
    })?;
    Ok(subjects)
}

#[derive(Serialize)]
struct Chains {
    chains: Vec<ReceiptChain>,
}

impl Chains {
    /// Returns the exit code. A wrong statement, a gap or a fork takes precedence over a statement that could not be
    /// verified.
    fn exit(&self) -> Exit {
        let found = |outcome| self.chains.iter().any(|chain| chain.count(outcome) > 0);
        if found(VerificationOutcome::Failed) || self.chains.iter().any(|chain| !chain.whole) {
            Exit::VerificationFailed
        } else if found(VerificationOutcome::NotVerified) {
            Exit::NotVerified
        } else {
            Exit::Success
        }
    }
}

/// One chain of an issuer, as `GET /v1/issuers/{iss}/chain` describes it on all pages.
#[derive(Serialize)]
struct ReceiptChain {
    issuer: String,
    subject: String,
    /// True without gaps, forks and misplaced receipts, and with at most one end.
    whole: bool,
    receipts: Vec<ChainedReceipt>,
    /// Predecessors that are not in the log.
    gaps: Vec<ChainGap>,
    /// Refused receipts whose position another receipt has.
    forks: Vec<ChainFork>,
    /// The entry IDs of receipts that do not follow the predecessor that they name.
    misplaced: Vec<String>,
    /// The entry IDs of receipts without a successor.
    heads: Vec<String>,
    unchained: u64,
    indexed_to: u64,
}

/// A page of `GET /v1/issuers/{iss}/chain`.
#[derive(Deserialize)]
struct ChainPage {
    receipts: Vec<ChainedReceipt>,
    gaps: Vec<ChainGap>,
    forks: Vec<ChainFork>,
    unchained: u64,
    indexed_to: u64,
}

#[derive(Deserialize, Serialize)]
struct ChainGap {
    entry_id: String,
    position: u64,
    named_by: String,
}

#[derive(Deserialize, Serialize)]
struct ChainFork {
    number: u64,
    rule: String,
    registered: String,
    refused: String,
}

impl ReceiptChain {
    fn through(service: &Service, issuer: &str, sub: &str, trust: &TrustStore) -> Result<Self, Failure> {
        let mut chain = ReceiptChain::of(issuer, sub);
        let first = format!("v1/issuers/{}/chain?sub={}", percent_encoded(issuer), percent_encoded(sub));
        pages(service, first, |page: ChainPage| chain.add(page))?;
        chain.look();
        for receipt in &mut chain.receipts {
            receipt.checked = Some(ReceiptCheck::fetch(service, (issuer, sub), receipt, trust)?);
        }
        Ok(chain)
    }

    /// Returns the number of receipts with this outcome of verification.
    fn count(&self, outcome: VerificationOutcome) -> usize {
        let checked = self.receipts.iter().filter_map(|receipt| receipt.checked.as_ref());
        checked.filter(|checked| checked.outcome == outcome).count()
    }

    fn of(issuer: &str, sub: &str) -> Self {
        ReceiptChain {
            issuer: issuer.to_owned(),
            subject: sub.to_owned(),
            whole: false,
            receipts: Vec::new(),
            gaps: Vec::new(),
            forks: Vec::new(),
            misplaced: Vec::new(),
            heads: Vec::new(),
            unchained: 0,
            indexed_to: 0,
        }
    }

    fn add(&mut self, page: ChainPage) {
        self.receipts.extend(page.receipts);
        self.gaps.extend(page.gaps);
        self.forks.extend(page.forks);
        self.unchained += page.unchained;
        self.indexed_to = self.indexed_to.max(page.indexed_to);
    }

    /// Computes the properties that depend on all pages together.
    fn look(&mut self) {
        self.receipts.sort_by_key(|receipt| (receipt.position, receipt.index));
        let places: BTreeMap<&str, u64> =
            self.receipts.iter().map(|receipt| (receipt.entry_id.as_str(), receipt.position)).collect();
        let missing: BTreeSet<&str> = self.gaps.iter().map(|gap| gap.entry_id.as_str()).collect();
        let followed: BTreeSet<&str> =
            self.receipts.iter().filter_map(|receipt| receipt.previous.as_deref()).collect();
        let in_place = |receipt: &ChainedReceipt| match receipt.previous.as_deref() {
            None => receipt.position == 0,
            Some(previous) if missing.contains(previous) => true,
            Some(previous) => {
                places.get(previous).is_some_and(|before| Some(receipt.position) == before.checked_add(1))
            }
        };
        let misplaced = self.receipts.iter().filter(|receipt| !in_place(receipt));
        let heads = self.receipts.iter().filter(|receipt| !followed.contains(receipt.entry_id.as_str()));
        let id = |receipt: &ChainedReceipt| receipt.entry_id.clone();
        (self.misplaced, self.heads) = (misplaced.map(id).collect(), heads.map(id).collect());
        self.whole = self.gaps.is_empty()
            && self.forks.is_empty()
            && self.misplaced.is_empty()
            && self.heads.len() <= 1;
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "issuer  {}", safe(&self.issuer))?;
        writeln!(out, "agent   {}", safe(&self.subject))?;
        for receipt in &self.receipts {
            self.step(receipt, out)?;
        }
        for fork in &self.forks {
            let ChainFork { number, rule, registered, refused } = fork;
            writeln!(out, "fork    {} is refused ({})", safe(refused), safe(rule))?;
            writeln!(out, "        {} has its place; report {number} holds the proof", safe(registered))?;
        }
        let whole = if self.whole { "whole" } else { "not whole" };
        writeln!(
            out,
            "{whole}: {} receipts ({} verified, {} wrong), {} missing, {} misplaced, {} forks, {} ends; {} outside the chain; as of \
             tree size {}",
            self.receipts.len(),
            self.count(VerificationOutcome::Verified),
            self.count(VerificationOutcome::Failed),
            self.gaps.len(),
            self.misplaced.len(),
            self.forks.len(),
            self.heads.len(),
            self.unchained,
            self.indexed_to
        )
    }

    fn step(&self, receipt: &ChainedReceipt, out: &mut dyn Write) -> io::Result<()> {
        for gap in self.gaps.iter().filter(|gap| gap.named_by == receipt.entry_id) {
            writeln!(out, "{:>6}  {} is missing", gap.position, safe(&gap.entry_id))?;
        }
        let verdict = receipt.verdict.as_deref().unwrap_or("redacted");
        let odd = if self.misplaced.contains(&receipt.entry_id) { ", misplaced" } else { "" };
        let reason = receipt.checked.as_ref().and_then(|checked| checked.reason.as_deref());
        let unverified = reason.map(|reason| format!(", not verified: {}", safe(reason))).unwrap_or_default();
        writeln!(
            out,
            "{:>6}  {} {}{odd}{unverified}",
            receipt.position,
            safe(&receipt.entry_id),
            safe(verdict)
        )
    }
}

impl Report for Chains {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.chains.iter().try_for_each(|chain| chain.human(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(receipts: &[(&str, u64, Option<&str>)], missing: &[&str]) -> ReceiptChain {
        let mut chain = ReceiptChain::of("i", "s");
        for (index, (id, position, previous)) in (1..).zip(receipts) {
            chain.receipts.push(ChainedReceipt {
                entry_id: (*id).to_owned(),
                index,
                position: *position,
                previous: previous.map(str::to_owned),
                receipt_id: None,
                verdict: None,
                checked: None,
            });
        }
        let gap = |id: &&str| ChainGap { entry_id: (*id).to_owned(), position: 0, named_by: String::new() };
        chain.gaps.extend(missing.iter().map(gap));
        chain.look();
        chain
    }

    #[test]
    fn a_chain_is_whole_that_has_every_receipt_in_its_place_and_one_end() {
        let whole = chain(&[("b", 1, Some("a")), ("a", 0, None)], &[]);
        assert!(whole.whole);
        assert_eq!(whole.heads, ["b"]);
        assert_eq!(whole.receipts[0].entry_id, "a", "in order");
        assert!(chain(&[], &[]).whole);
    }

    #[test]
    fn gaps_branches_and_misplaced_receipts_are_seen() {
        assert!(!chain(&[("b", 1, Some("a"))], &["a"]).whole, "a gap");
        let branches = chain(&[("a", 0, None), ("b", 1, Some("a")), ("c", 1, Some("a"))], &[]);
        assert_eq!((branches.whole, branches.heads.len()), (false, 2));
        let skipping = chain(&[("a", 0, None), ("b", 5, Some("a"))], &[]);
        assert_eq!(skipping.misplaced, ["b"]);
        let foreign = chain(&[("a", 0, None), ("b", 1, Some("elsewhere"))], &[]);
        assert_eq!(foreign.misplaced, ["b"], "in the log, and not of this chain");
    }
}
