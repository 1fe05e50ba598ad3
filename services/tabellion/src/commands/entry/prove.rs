//! `tabellion entry search --prove`: collects the answer with everything that its verification needs, verifies it offline
//! with the reader's own trust, and only then writes the file.
//!
//! Not here: the format and its verification (the crate `search-evidence`).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use data_encoding::BASE64;
use merkle::{EntryDigest, LeafIndex};
use scitt::SignedStatement;
use search_evidence::{
    AnswerOutcome, AnswerReader, AnswerVerdict, ErasedEntry, PagesVerdict, PolicyIndex, ProvenPages,
    SearchAnswer, SearchQuestion,
};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tlog::policy::WitnessPolicy;
use verifier::index::SearchProof;
use verifier::{Code, TrustStore};

use super::{EntryTable, ListPosition};
use crate::commands::bundle::claims;
use crate::commands::bundle::gather::{CosignedTree, EntryFetcher, Gatherer, ListedEntry};
use crate::commands::verify::search_answer::{exit, print_outcome};
use crate::commands::verify::{now, witness_policy};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::{Service, nonsense};
use crate::trust_file::TrustFile;
use crate::verification::{UNVERIFIED, with_open_checks};

/// Number of entries per page.
const PAGE: usize = 1000;
/// Maximum number of pages of one answer.
const MAX_PAGES: usize = 10_000;
/// Maximum number of heads for which the pages are fetched anew.
const MAX_HEADS: usize = 5;

/// The flags of proven searches.
#[derive(Debug, Args)]
pub struct ProofArgs {
    /// Prove that none is missing; --to-head: up to now
    #[arg(long)]
    pub prove: bool,
    /// Write the proven answer to this file
    #[arg(short, long, value_name = "FILE", requires = "prove")]
    output: Option<PathBuf>,
    /// Add all entries that are newer than the index
    #[arg(long, requires = "prove", hide = true)]
    to_head: bool,
    /// Require the quorum of this policy (C2SP tlog-policy)
    #[arg(long, value_name = "FILE", requires = "prove", hide = true)]
    witness_policy: Option<PathBuf>,
    /// The trust file [default: trust.toml or dev's]
    #[arg(long, value_name = "FILE", requires = "prove", hide = true)]
    trust: Option<PathBuf>,
}

impl ProofArgs {
    /// Collects the answer from the service, verifies it, writes it, and prints its entries.
    ///
    /// # Errors
    /// If the answer is not proven, nothing is written. If it leaves something open, the exit code is
    /// [`Exit::CompleteBut`].
    pub fn run(
        &self,
        context: &Context,
        service: &Service,
        question: SearchQuestion,
        filters: &[(&str, &str)],
    ) -> Result<(), Failure> {
        let reader = Reader {
            trust: TrustFile::find(context, self.trust.as_deref())?.store,
            witnesses: self.witness_policy.as_deref().map(witness_policy).transpose()?,
        };
        let served = ServedPages::fetch(service, &question, filters)?;
        let mut collector = Collector { service, reader: &reader, rows: served.rows };
        let answer = collector.collect(question, served.proofs, &served.head_entry, self.to_head)?;
        let verdict = answer.verify(&reader.at(now()));
        if matches!(verdict.outcome, AnswerOutcome::NotProven | AnswerOutcome::Wrong) {
            return Err(unverified(&verdict));
        }
        if let Some(file) = &self.output {
            files::write(file, &answer.encode(), Access::Ordinary, Existing::Replace)?;
        }
        let report = ProvenEntries::of(verdict, &collector.rows, self.output.as_ref());
        let table = EntryTable::of(&context.console);
        context.console.print(&report, |out| report.human(out, table))?;
        match exit(report.proof.outcome) {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }
}

/// What the reader trusts.
struct Reader {
    trust: TrustStore,
    witnesses: Option<WitnessPolicy>,
}

impl Reader {
    fn at(&self, now: u64) -> AnswerReader<'_> {
        let witnesses = self.witnesses.as_ref();
        AnswerReader { trust: &self.trust, witnesses, monitors: None, attestations: &[], now }
    }
}

/// The JSON of `GET /v1/entries?proof=1`.
#[derive(Deserialize)]
struct ServedPage {
    entries: Vec<Json>,
    proof: ServedProofFile,
}

/// The proof of a page.
#[derive(Deserialize)]
struct ServedProofFile {
    /// The size of the head.
    size: u64,
    leaves: ServedLeaves,
    head_entry: String,
    /// A [`SearchProof`], in base64.
    file: String,
}

/// Leaves from `from` to before `to`.
#[derive(Deserialize)]
struct ServedLeaves {
    to: u64,
}

/// The pages of an answer.
struct ServedPages {
    proofs: Vec<SearchProof>,
    /// The entry ID of the head.
    head_entry: String,
    /// The entries that the service listed, by leaf index.
    rows: BTreeMap<u64, Json>,
}

impl ServedPages {
    /// Fetches pages under one head. If the log makes a new head meanwhile, they are fetched again.
    fn fetch(
        service: &Service,
        question: &SearchQuestion,
        filters: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        for _ in 0..MAX_HEADS {
            if let Some(pages) = Self::fetch_once(service, question, filters)? {
                return Ok(pages);
            }
        }
        let what = "the log makes heads of its index faster than the pages are fetched";
        Err(Failure::new(Exit::TryAgain, "index-head-changed", what))
    }

    /// Fetches pages, oldest first, until all leaves of the head are proven; `None` if they have several heads.
    fn fetch_once(
        service: &Service,
        question: &SearchQuestion,
        filters: &[(&str, &str)],
    ) -> Result<Option<Self>, Failure> {
        let position = ListPosition::between(question.from.get().checked_sub(1), question.to);
        let filters = filters.iter().copied().chain([("proof", "1")]);
        let mut pages = Self { proofs: Vec::new(), head_entry: String::new(), rows: BTreeMap::new() };
        let mut next = Some(position.path(PAGE, filters));
        for _ in 0..MAX_PAGES {
            let Some(path) = next.take() else { return Ok(Some(pages)) };
            let (page, following): (ServedPage, _) = service.block_on(service.client.page(&path))?;
            let end = question.leaves_within(page.proof.size).end.get();
            if page.proof.leaves.to < end {
                next = following;
            }
            if !pages.add(page)? {
                return Ok(None);
            }
        }
        Err(nonsense("the pages do not end"))
    }

    /// Adds a page, unless it has another head than those before: then it returns `false`.
    fn add(&mut self, page: ServedPage) -> Result<bool, Failure> {
        if !self.proofs.is_empty() && self.head_entry != page.proof.head_entry {
            return Ok(false);
        }
        let bytes = BASE64.decode(page.proof.file.as_bytes()).map_err(nonsense)?;
        self.proofs.push(SearchProof::decode(&bytes).map_err(nonsense)?);
        self.head_entry = page.proof.head_entry;
        self.rows.extend(page.entries.into_iter().filter_map(|row| Some((row["index"].as_u64()?, row))));
        Ok(true)
    }
}

/// Collects the evidence for the pages of an answer.
struct Collector<'c> {
    service: &'c Service,
    reader: &'c Reader,
    /// Entries as the service lists them, by leaf index.
    rows: BTreeMap<u64, Json>,
}

impl Collector<'_> {
    fn collect(
        &mut self,
        question: SearchQuestion,
        pages: Vec<SearchProof>,
        head_entry: &str,
        to_head: bool,
    ) -> Result<SearchAnswer, Failure> {
        let tree = CosignedTree::fetch(self.service)?;
        let head: ListedEntry = self.get(&format!("v1/entries/{head_entry}"))?;
        let proven = self.prove(&question, &pages, &tree, head.policy)?;
        let mut gatherer = Gatherer::new(self.service, &self.reader.trust);
        for leaf in &proven.candidates {
            gatherer.add_listed([self.listed(leaf.get())?])?;
        }
        let erased = proven
            .erased()
            .map(|leaf| self.erased(leaf, &tree, &mut gatherer))
            .collect::<Result<Vec<_>, _>>()?;
        if to_head {
            let later = proven.head.head.size.get();
            gatherer.add_listed(self.later(&question, later, tree.size)?)?;
        }
        gatherer.add_listed([head])?;
        let mut evidence = gatherer.finish_at(tree, claims::of(self.service))?;
        claims::add_keys(&mut evidence, &self.reader.trust, self.reader.witnesses.as_ref());
        Ok(SearchAnswer { question, pages, erased, evidence, attestations: Vec::new() })
    }

    /// Verifies the pages under the policy of the head, so that the leaves of the answer are known.
    fn prove(
        &self,
        question: &SearchQuestion,
        pages: &[SearchProof],
        tree: &CosignedTree,
        policy: u64,
    ) -> Result<ProvenPages, Failure> {
        let policy = self.statement_at(policy)?;
        let payload = policy.payload().unwrap_or_default();
        let index = PolicyIndex::read(payload, &tree.origin).map_err(nonsense)?;
        let PagesVerdict { pages, checks } =
            ProvenPages::verify(question, pages, &index.trusted, &self.reader.trust, now());
        pages.ok_or_else(|| {
            let (outcome, reason) = verifier::VerificationOutcome::of(&checks);
            let code = reason.unwrap_or(Code::NotReached);
            let failure = Failure::new(crate::verification::exit(outcome), code.as_str(), UNVERIFIED);
            with_open_checks(failure, &checks)
        })
    }

    /// Returns the proof of an erased entry, and adds the statement that erased it.
    fn erased(
        &self,
        leaf: LeafIndex,
        tree: &CosignedTree,
        gatherer: &mut Gatherer<'_>,
    ) -> Result<ErasedEntry, Failure> {
        let fetcher = EntryFetcher::new(self.service, &self.reader.trust, tree);
        let proof = self.service.block_on(fetcher.proof(leaf.get()))?;
        let links: Json = self.get(&format!("v1/entries/{}/links", proof.entry_id))?;
        let links = links["links"].as_array().into_iter().flatten();
        let mut erasures =
            links.filter(|link| link["by"] == "erased_by").map(|link| link["entries"][0].clone());
        let by = erasures.next().ok_or_else(|| nonsense("an erased entry has no erasure statement"))?;
        gatherer.add_listed([listed(&by)?])?;
        Ok(ErasedEntry { leaf, entry: proof.entry_id, path: proof.path })
    }

    /// Lists the entries of the question from a leaf to the end of the tree that have not been erased.
    fn later(
        &mut self,
        question: &SearchQuestion,
        from: u64,
        size: u64,
    ) -> Result<Vec<ListedEntry>, Failure> {
        let leaves = question.leaves_within(size);
        let from = from.max(leaves.start.get());
        let path = ListPosition::between(from.checked_sub(1), Some(leaves.end)).path(PAGE, []);
        let mut rows = Vec::new();
        self.service.pages(path, |page: RowPage| {
            rows.extend(page.entries);
            Ok(())
        })?;
        rows.retain(|row| row["erased"] == false);
        let entries = rows.iter().map(listed).collect();
        self.rows.extend(rows.into_iter().filter_map(|row| Some((row["index"].as_u64()?, row))));
        entries
    }

    /// Returns the entry at a leaf, from the pages or from the service.
    fn listed(&mut self, leaf: u64) -> Result<ListedEntry, Failure> {
        if let Some(row) = self.rows.get(&leaf) {
            return listed(row);
        }
        let row = self.row_at(leaf)?;
        listed(self.rows.entry(leaf).or_insert(row))
    }

    fn row_at(&self, leaf: u64) -> Result<Json, Failure> {
        let position = ListPosition::between(leaf.checked_sub(1), None);
        let page: RowPage = self.get(&position.path(1, []))?;
        let row = page.entries.into_iter().next().filter(|row| row["index"] == leaf);
        row.ok_or_else(|| nonsense(format!("leaf {leaf} is not listed")))
    }

    fn statement_at(&self, leaf: u64) -> Result<SignedStatement, Failure> {
        let entry: EntryDigest = listed(&self.row_at(leaf)?)?.entry_id;
        self.service.block_on(self.service.client.statement(&entry))
    }

    fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.service.block_on(self.service.client.json(path))
    }
}

/// A list of entries.
#[derive(Deserialize)]
struct RowPage {
    entries: Vec<Json>,
}

fn listed(row: &Json) -> Result<ListedEntry, Failure> {
    ListedEntry::deserialize(row).map_err(nonsense)
}

/// The failure for an answer that does not verify.
fn unverified(verdict: &AnswerVerdict) -> Failure {
    let code = verdict.reason.unwrap_or(Code::NotReached);
    let failure = Failure::new(exit(verdict.outcome), code.as_str(), UNVERIFIED);
    let evidence = &verdict.evidence;
    let parts = evidence.entries.iter().chain(&evidence.policies).filter(|part| !part.is_verified());
    let of_parts = parts.flat_map(|part| &part.checks);
    let checks: Vec<_> =
        verdict.checks.iter().chain(&evidence.checkpoint.checks).chain(of_parts).cloned().collect();
    with_open_checks(failure, &checks)
}

/// The result of a proven search.
#[derive(Serialize)]
struct ProvenEntries {
    entries: Vec<Json>,
    /// The leaf up to which the answer is proven.
    indexed_to: u64,
    more: bool,
    proof: AnswerVerdict,
    /// The file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl ProvenEntries {
    fn of(proof: AnswerVerdict, rows: &BTreeMap<u64, Json>, file: Option<&PathBuf>) -> Self {
        let entries = proof.found.iter().filter_map(|found| rows.get(&found.leaf).cloned()).collect();
        let indexed_to = proof.searched.map_or(0, |searched| searched.to);
        let file = file.map(|file| file.display().to_string());
        Self { entries, indexed_to, more: false, proof, file }
    }

    fn human(&self, out: &mut dyn Write, table: EntryTable) -> io::Result<()> {
        table.write(out, &self.entries)?;
        print_outcome(out, &self.proof)
    }
}
