//! Pages of a search with the proof that they are complete (`GET /v1/entries?proof=1`).
//!
//! Not here: the choice of a page and its proofs (`index::proof`), and the verification of the file (`verifier::index`).

use std::collections::BTreeMap;

use data_encoding::BASE64;
use lookup_tree::{RunId, TermKey};
use store::{Order, Term};
use verifier::index::{IndexHeadEvidence, SearchProof, SearchTerm};

use super::entry_page::{BlindEntry, Entries, PageLeaves, PageProof};
use super::entry_query::EntryQuery;
use crate::edge::problem::Problem;
use crate::index::proof::{AnswerProver, FoundPage};
use crate::routes::app::App;
use crate::view::pages::read_leaves;

/// Reads a page of entries with its proof; returns it with the query of the next page.
pub async fn page(app: &App, search: &EntryQuery) -> Result<(Entries, Option<String>), Problem> {
    let limit = search.limit(app.edge.limits.load().page)?;
    let terms = terms(&search.provable_terms()?);
    let keys: Vec<TermKey> = terms.iter().map(SearchTerm::key).collect();
    let within = search.within(&*app.log.store).await?;
    app.index.caught_up().await?;
    let prover = app.index.prover().await?;
    let page = prover.find(&keys, within.clone(), search.order(), limit).await?;
    let (entries, taken) = read_leaves(&app.log, &page.entries).await?;
    let page = page.cut_after(taken, search.order());
    let proofs = prover.prove(&keys, &page).await?;
    let last = match search.order() {
        Order::OldestFirst => {
            let end = within.end.min(prover.head.head.size.get());
            page.leaves.end.get().checked_sub(1).filter(|last| last + 1 < end)
        }
        Order::NewestFirst => Some(page.leaves.start.get()).filter(|start| *start > within.start),
    };
    let indexed_to = Some(prover.head.head.size.get());
    let blind = BlindEntry::list(&page.blind);
    let proof = Some(proof_of(app, &prover, terms, &page, proofs).await?);
    let entries = Entries { entries, indexed_to, blind, more_blind: false, proof };
    Ok((entries, last.map(|last| search.next(last, limit))))
}

/// The terms of a search that names exact values.
fn terms(terms: &[Term]) -> Vec<SearchTerm> {
    let values = terms.iter().flat_map(|term| term.values.iter().map(|value| (term.kind, value)));
    values.map(|(kind, value)| SearchTerm { kind, value: value.clone().into_bytes() }).collect()
}

async fn proof_of(
    app: &App,
    prover: &AnswerProver,
    terms: Vec<SearchTerm>,
    page: &FoundPage,
    proofs: BTreeMap<RunId, Vec<u8>>,
) -> Result<PageProof, Problem> {
    let head = &prover.head;
    let receipt = app.log.receipts.fresh(head.leaf, &app.log.sequencer).await?;
    let evidence =
        IndexHeadEvidence { statement: head.statement.bytes().to_vec(), receipt: receipt.to_vec() };
    let file = SearchProof { head: evidence, terms, leaves: page.leaves, proofs };
    Ok(PageProof {
        size: head.head.size.get(),
        leaves: PageLeaves { from: page.leaves.start.get(), to: page.leaves.end.get() },
        head_entry: head.entry.to_string(),
        file: BASE64.encode(&file.encode()),
    })
}
