//! `tabellion vrf chain`: lists a verifier's chained receipts, or those of all verifiers about an agent, verifies each
//! statement, and reports gaps and forks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use display::counted;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use verifier::VerificationOutcome;

use super::chained_receipt::{ChainFork, ChainName, ChainedReceipt, ReceiptCheck};
use crate::commands::verify::now;
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::entry_evidence::{EntryEvidence, EvidenceSource};
use crate::service::{Service, ServiceArgs, percent_encoded, served_list};
use crate::trust_file::TrustFile;

/// Maximum number of receipts of all listed chains together, which bounds the memory.
const MAX_RECEIPTS: usize = 100_000;

#[derive(Debug, Args)]
pub struct Chain {
    /// The verifier (`iss` of the receipts)
    #[arg(required_unless_present = "agent")]
    issuer: Option<String>,
    /// The agent [default: all agents]
    #[arg(long, value_name = "DID")]
    sub: Option<String>,
    /// All verifiers' chains about this agent
    #[arg(long, value_name = "DID", conflicts_with_all = ["issuer", "sub"])]
    agent: Option<String>,
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
        let source = EvidenceSource::new(&service, &trust, now());
        let mut chains = ListedChains { chains: Vec::new() };
        for (issuer, sub) in self.names(&service)? {
            let room = MAX_RECEIPTS.saturating_sub(chains.receipts());
            chains.chains.push(ListedChain::through(&service, &source, &issuer, &sub, room)?);
        }
        if chains.chains.is_empty() {
            return Err(Failure::new(Exit::NotFound, "not-found", "the log holds no such receipt"));
        }
        context.console.result(&chains)?;
        match chains.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }

    /// The chains to list, as pairs of verifier and agent.
    fn names(&self, service: &Service) -> Result<BTreeSet<(String, String)>, Failure> {
        match (&self.issuer, &self.sub, &self.agent) {
            (Some(issuer), Some(sub), _) => Ok(BTreeSet::from([(issuer.clone(), sub.clone())])),
            (Some(issuer), None, _) => chains_found_by(service, "issuer", issuer),
            (None, _, agent) => chains_found_by(service, "subject", agent.as_deref().unwrap_or_default()),
        }
    }
}

/// Returns the pairs of verifier and agent of the registered receipts with this value.
fn chains_found_by(
    service: &Service,
    name: &str,
    value: &str,
) -> Result<BTreeSet<(String, String)>, Failure> {
    let mut chains = BTreeSet::new();
    let first = format!("v1/entries?{name}={}", percent_encoded(value));
    service.pages(first, |page: Json| {
        let entries = served_list(&page, "entries")?;
        let receipts = entries.iter().filter(|entry| entry.pointer("/facts/receipt_id").is_some());
        let text = |entry: &Json, name: &str| entry.get(name)?.as_str().map(str::to_owned);
        chains.extend(receipts.filter_map(|entry| Some((text(entry, "iss")?, text(entry, "sub")?))));
        must_fit(chains.len(), MAX_RECEIPTS)
    })?;
    Ok(chains)
}

fn must_fit(found: usize, room: usize) -> Result<(), Failure> {
    if found <= room {
        return Ok(());
    }
    let what = format!("the log holds more than {MAX_RECEIPTS} of these receipts");
    Err(Failure::new(Exit::Failure, "chain-too-long", what).hint("tabellion vrf chain ISSUER --sub DID"))
}

#[derive(Serialize)]
struct ListedChains {
    chains: Vec<ListedChain>,
}

impl ListedChains {
    /// The number of receipts of all chains.
    fn receipts(&self) -> usize {
        self.chains.iter().map(|chain| chain.receipts.len()).sum()
    }

    /// Returns the exit code. A wrong statement, a gap or a fork takes precedence over a statement that could not be
    /// verified, or was erased.
    fn exit(&self) -> Exit {
        let found = |outcome| self.chains.iter().any(|chain| chain.count(outcome) > 0);
        if found(VerificationOutcome::Failed) || self.chains.iter().any(ListedChain::has_fault) {
            Exit::VerificationFailed
        } else if found(VerificationOutcome::NotVerified) || self.chains.iter().any(|chain| !chain.whole) {
            Exit::NotVerified
        } else {
            Exit::Success
        }
    }
}

/// One chain of an issuer, as `GET /v1/issuers/{iss}/chain` describes it on all pages.
#[derive(Serialize)]
struct ListedChain {
    issuer: String,
    subject: String,
    /// True without gaps, erased receipts, forks and misplaced receipts, and with at most one end.
    whole: bool,
    receipts: Vec<ChainedReceipt>,
    /// Predecessors that are not in the log.
    gaps: Vec<ChainGap>,
    /// Predecessors that are in the log, but without their bytes: nothing about them can be verified.
    erased: Vec<ChainGap>,
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
struct ListedPage {
    receipts: Vec<ChainedReceipt>,
    gaps: Vec<ChainGap>,
    forks: Vec<ChainFork>,
    unchained: u64,
    indexed_to: u64,
}

/// A predecessor that a receipt names and the chain does not list.
#[derive(Deserialize, Serialize)]
struct ChainGap {
    entry_id: String,
    position: u64,
    named_by: String,
}

impl ListedChain {
    /// Fetches the chain's description, at most `room` receipts, and then verifies one statement after the other.
    fn through(
        service: &Service,
        source: &EvidenceSource<'_>,
        issuer: &str,
        sub: &str,
        room: usize,
    ) -> Result<Self, Failure> {
        let mut chain = ListedChain::of(issuer, sub);
        let first = format!("v1/issuers/{}/chain?sub={}", percent_encoded(issuer), percent_encoded(sub));
        service.pages(first, |page: ListedPage| {
            chain.add(page);
            must_fit(chain.receipts.len(), room)
        })?;
        for predecessor in chain.unlisted_predecessors() {
            if is_erased(source, &predecessor.entry_id)? {
                chain.erased.push(predecessor);
            }
        }
        chain.look();
        let name = ChainName { issuer, subject: sub };
        for receipt in &mut chain.receipts {
            receipt.checked = Some(ReceiptCheck::fetch(source, name, receipt)?);
        }
        for fork in &mut chain.forks {
            fork.prove(service, source, name, &chain.receipts)?;
        }
        Ok(chain)
    }

    /// Returns the number of receipts with this outcome of verification.
    fn count(&self, outcome: VerificationOutcome) -> usize {
        let checked = self.receipts.iter().filter_map(|receipt| receipt.checked.as_ref());
        checked.filter(|checked| checked.outcome == outcome).count()
    }

    fn of(issuer: &str, sub: &str) -> Self {
        ListedChain {
            issuer: issuer.to_owned(),
            subject: sub.to_owned(),
            whole: false,
            receipts: Vec::new(),
            gaps: Vec::new(),
            erased: Vec::new(),
            forks: Vec::new(),
            misplaced: Vec::new(),
            heads: Vec::new(),
            unchained: 0,
            indexed_to: 0,
        }
    }

    fn add(&mut self, page: ListedPage) {
        self.receipts.extend(page.receipts);
        self.gaps.extend(page.gaps);
        self.forks.extend(page.forks);
        self.unchained += page.unchained;
        self.indexed_to = self.indexed_to.max(page.indexed_to);
    }

    /// Returns the predecessors that are neither among the receipts nor missing in the log.
    fn unlisted_predecessors(&self) -> Vec<ChainGap> {
        let receipts = self.receipts.iter().map(|receipt| receipt.entry_id.as_str());
        let gaps = self.gaps.iter().map(|gap| gap.entry_id.as_str());
        let known: BTreeSet<&str> = receipts.chain(gaps).collect();
        let unlisted = |receipt: &ChainedReceipt| {
            let previous = receipt.previous.as_deref().filter(|previous| !known.contains(previous))?;
            Some(ChainGap {
                entry_id: previous.to_owned(),
                position: receipt.position.saturating_sub(1),
                named_by: receipt.entry_id.clone(),
            })
        };
        self.receipts.iter().filter_map(unlisted).collect()
    }

    /// Returns whether the chain shows that something is wrong. An erased receipt does not.
    fn has_fault(&self) -> bool {
        let in_order = self.gaps.is_empty() && self.forks.is_empty() && self.misplaced.is_empty();
        !in_order || self.heads.len() > 1
    }

    /// Computes the properties that depend on all pages together. The place of an erased receipt is the one that its
    /// successor gives it. The last receipt before that place is taken to be followed: by the erased receipt, or by others
    /// before it, which nothing names if they were erased as well.
    fn look(&mut self) {
        self.receipts.sort_by_key(|receipt| (receipt.position, receipt.index));
        let places: BTreeMap<&str, u64> =
            self.receipts.iter().map(|receipt| (receipt.entry_id.as_str(), receipt.position)).collect();
        let unread = self.gaps.iter().chain(&self.erased);
        let unread: BTreeSet<&str> = unread.map(|gap| gap.entry_id.as_str()).collect();
        let listed: BTreeSet<u64> = places.values().copied().collect();
        let last_before = |erased: &ChainGap| listed.range(..erased.position).next_back().copied();
        let followed_by_erased: BTreeSet<u64> = self.erased.iter().filter_map(last_before).collect();
        let followed: BTreeSet<&str> =
            self.receipts.iter().filter_map(|receipt| receipt.previous.as_deref()).collect();
        let in_place = |receipt: &ChainedReceipt| match receipt.previous.as_deref() {
            None => receipt.position == 0,
            Some(previous) if unread.contains(previous) => true,
            Some(previous) => {
                places.get(previous).is_some_and(|before| Some(receipt.position) == before.checked_add(1))
            }
        };
        let misplaced = self.receipts.iter().filter(|receipt| !in_place(receipt));
        let is_followed = |receipt: &ChainedReceipt| {
            followed.contains(receipt.entry_id.as_str()) || followed_by_erased.contains(&receipt.position)
        };
        let heads = self.receipts.iter().filter(|receipt| !is_followed(receipt));
        let id = |receipt: &ChainedReceipt| receipt.entry_id.clone();
        (self.misplaced, self.heads) = (misplaced.map(id).collect(), heads.map(id).collect());
        self.whole = self.erased.is_empty() && !self.has_fault();
    }

    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "issuer  {}", safe(&self.issuer))?;
        writeln!(out, "agent   {}", safe(&self.subject))?;
        for receipt in &self.receipts {
            self.step(receipt, out)?;
        }
        for fork in &self.forks {
            let ChainFork { number, rule, registered, refused, reason, .. } = fork;
            writeln!(out, "fork    {} is refused ({})", safe(refused), safe(rule))?;
            let proof =
                reason.as_deref().map_or("holds the proof".into(), |why| format!("proves nothing: {why}"));
            writeln!(out, "        {} has its place; report {number} {}", safe(registered), safe(&proof))?;
        }
        let whole = if self.whole { "whole" } else { "not whole" };
        let erased = match self.erased.len() {
            0 => String::new(),
            count => format!("{count} erased, "),
        };
        writeln!(
            out,
            "{whole}: {} ({} verified, {} wrong), {} missing, {erased}{} misplaced, {}, {}; {} outside the chain; as of \
             tree size {}",
            counted(self.receipts.len(), "receipt", "receipts"),
            self.count(VerificationOutcome::Verified),
            self.count(VerificationOutcome::Failed),
            self.gaps.len(),
            self.misplaced.len(),
            counted(self.forks.len(), "fork", "forks"),
            counted(self.heads.len(), "end", "ends"),
            self.unchained,
            self.indexed_to
        )
    }

    fn step(&self, receipt: &ChainedReceipt, out: &mut dyn Write) -> io::Result<()> {
        for gap in self.gaps.iter().filter(|gap| gap.named_by == receipt.entry_id) {
            writeln!(out, "{:>6}  {} is missing", gap.position, safe(&gap.entry_id))?;
        }
        for erased in self.erased.iter().filter(|erased| erased.named_by == receipt.entry_id) {
            writeln!(out, "{:>6}  {} was erased", erased.position, safe(&erased.entry_id))?;
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

/// Returns whether the log has an entry whose bytes were erased.
fn is_erased(source: &EvidenceSource<'_>, entry: &str) -> Result<bool, Failure> {
    Ok(matches!(source.fetch(entry)?, EntryEvidence::NotServed(fault) if fault.code == "erased"))
}

impl Report for ListedChains {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.chains.iter().try_for_each(|chain| chain.human(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(receipts: &[(&str, u64, Option<&str>)], missing: &[&str]) -> ListedChain {
        let mut chain = listed(receipts, missing);
        chain.look();
        chain
    }

    fn listed(receipts: &[(&str, u64, Option<&str>)], missing: &[&str]) -> ListedChain {
        let mut chain = ListedChain::of("i", "s");
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

    #[test]
    fn an_erased_receipt_makes_a_chain_not_whole_and_accuses_nobody() {
        let mut erased = listed(&[("a", 0, None), ("c", 2, Some("b"))], &[]);
        erased.erased = erased.unlisted_predecessors();
        erased.look();
        assert_eq!((erased.erased[0].entry_id.as_str(), erased.erased[0].position), ("b", 1));
        assert!(!erased.whole);
        assert!(!erased.has_fault(), "in its place, with one end");
        assert_eq!(erased.heads, ["c"]);
        let exit = ListedChains { chains: vec![erased] }.exit();
        assert!(matches!(exit, Exit::NotVerified), "nothing is wrong, and not everything was verified");
    }

    #[test]
    fn erased_receipts_in_a_row_accuse_nobody() {
        let mut erased = listed(&[("a", 0, None), ("e", 4, Some("d"))], &[]);
        erased.erased = erased.unlisted_predecessors();
        erased.look();
        assert_eq!(erased.heads, ["e"]);
        assert!(!erased.whole && !erased.has_fault(), "nothing names the receipts between a and d");
    }

    #[test]
    fn missing_and_listed_predecessors_are_not_looked_for() {
        let chain = listed(&[("b", 1, Some("a")), ("c", 2, Some("b"))], &["a"]);
        assert!(chain.unlisted_predecessors().is_empty());
    }
}
