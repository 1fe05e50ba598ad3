//! The search for one posting that shows that a run is wrong.
//!
//! The log proves its answers about single leaves. Each proof gives hashes of the parts of the run that it leaves out, so
//! the next question is about a posting in a part that differs, until a proof shows a posting that is missing or does not
//! belong there.

use index_audit::{IndexRecomputation, ProofDifference, compare_proof};
use lookup_tree::{IndexHead, IndexQuestion, LeafRange, Posting, RunId, RunProof, ScheduledRun};
use merkle::{LeafIndex, TreeSize};
use registration::Lookup;
use scitt::SignedStatement;
use search_evidence::search_term;
use verifier::index::{IndexAccusation, IndexHeadEvidence, PostingEvidence, SearchProof};

use super::indexed_log::IndexedLog;
use super::terms::{query, term_with_key};
use crate::limits::{MAX_INDEX_PROOFS, MAX_INDEX_QUESTIONS};

/// A proof of the log about a run that holds a leaf.
struct AnsweredQuestion {
    head: IndexHead,
    evidence: IndexHeadEvidence,
    run: ScheduledRun,
    bytes: Vec<u8>,
    proof: RunProof,
}

/// Finds evidence that a run with these postings is not the one that the log commits to. The evidence is of the head under
/// which the log proves, which may be a newer one.
///
/// # Errors
/// Returns the reason why there is none.
pub async fn find_evidence(
    log: &IndexedLog<'_>,
    recomputation: &IndexRecomputation,
    (run, horizon): (&ScheduledRun, LeafIndex),
) -> Result<Vec<IndexAccusation>, String> {
    let mut candidates = first_postings(recomputation, run, horizon)?;
    for _ in 0..MAX_INDEX_PROOFS {
        let answer = ask(log, &candidates).await?;
        if answer.head.size > TreeSize::new(recomputation.next().get()) {
            return Err("the log proves its answers under a newer head".into());
        }
        let own = recomputation.postings(&answer.run, answer.head.horizon);
        let difference = compare_proof(&answer.proof, own).map_err(|why| why.to_string())?;
        let accusations = accuse(log, recomputation, &answer, &difference).await?;
        if !accusations.is_empty() {
            return Ok(accusations);
        }
        if difference.candidates.is_empty() {
            return Err("the proofs of the log show no posting that statements contradict".into());
        }
        candidates = difference.candidates;
    }
    Err(format!("{MAX_INDEX_PROOFS} proofs of the log were not enough"))
}

fn first_postings(
    recomputation: &IndexRecomputation,
    run: &ScheduledRun,
    horizon: LeafIndex,
) -> Result<Vec<Posting>, String> {
    let postings = recomputation.postings(run, horizon);
    let terms =
        postings.filter(|posting| posting.as_ref().map_or(true, |posting| posting.blind_code().is_none()));
    terms.take(MAX_INDEX_QUESTIONS).collect::<Result<_, _>>().map_err(|why| why.to_string())
}

/// Fetches a proof about the first of these postings whose term entries are searched by.
async fn ask(log: &IndexedLog<'_>, candidates: &[Posting]) -> Result<AnsweredQuestion, String> {
    let mut refused = "the part that differs has no entry that is searched by its terms".to_owned();
    for posting in candidates.iter().take(MAX_INDEX_QUESTIONS) {
        let Some(lookup) = term_of(log, *posting).await? else { continue };
        let Some(query) = query(&lookup) else { continue };
        let answer = log.prove(&query, posting.leaf).await.map_err(|why| why.to_string());
        match answer.and_then(|search| AnsweredQuestion::read(search, *posting)) {
            Ok(answer) => return Ok(answer),
            Err(why) => refused = why,
        }
    }
    Err(refused)
}

impl AnsweredQuestion {
    fn read(search: SearchProof, posting: Posting) -> Result<Self, String> {
        let evidence = search.head;
        let statement = SignedStatement::parse(evidence.statement.clone()).map_err(|why| why.to_string())?;
        let head = IndexHead::decode(statement.payload().unwrap_or_default());
        let head = head.map_err(|why| why.to_string())?;
        let runs = head.scheduled_runs().map_err(|why| why.to_string())?;
        let run = runs.into_iter().find(|(run, _)| run.leaves.contains(posting.leaf));
        let (run, summary) = run.ok_or("the log proves under a head without this leaf")?;
        let bytes = proof_of(&search.proofs, run.id)?;
        let proof = RunProof::decode(&bytes).map_err(|why| why.to_string())?;
        let question = IndexQuestion::new([posting.key], one_leaf(posting.leaf));
        let question = question.map_err(|why| why.to_string())?.for_run(&run, &summary);
        let question = question.ok_or("the run has no such leaf")?;
        proof.verify(&question, summary.root).map_err(|why| format!("a proof of the log: {why}"))?;
        Ok(Self { head, evidence, run, bytes, proof })
    }
}

fn proof_of(proofs: &std::collections::BTreeMap<RunId, Vec<u8>>, run: RunId) -> Result<Vec<u8>, String> {
    proofs.get(&run).cloned().ok_or_else(|| format!("the log gives no proof of run {run}"))
}

/// Makes accusations from the first difference that a statement shows.
async fn accuse(
    log: &IndexedLog<'_>,
    recomputation: &IndexRecomputation,
    answer: &AnsweredQuestion,
    difference: &ProofDifference,
) -> Result<Vec<IndexAccusation>, String> {
    for posting in difference.missing.iter().take(MAX_INDEX_QUESTIONS) {
        if let Some(term) = term_of(log, *posting).await? {
            let evidence = evidence_of(log, answer, *posting, &term).await?;
            return Ok(evidence.into_iter().map(IndexAccusation::Omits).collect());
        }
    }
    for posting in difference.added.iter().take(MAX_INDEX_QUESTIONS) {
        if let Some(term) = known_term(log, recomputation, answer, *posting).await? {
            let evidence = evidence_of(log, answer, *posting, &term).await?;
            return Ok(evidence.into_iter().map(IndexAccusation::Adds).collect());
        }
    }
    Ok(Vec::new())
}

/// The evidence about a term of the entry at a leaf: by the log's answer to exactly this question, and by the answer that
/// showed the difference, which may leave out that the entry is blind. None if the statement is not served.
async fn evidence_of(
    log: &IndexedLog<'_>,
    answer: &AnsweredQuestion,
    posting: Posting,
    term: &Lookup,
) -> Result<Vec<PostingEvidence>, String> {
    let Some(entry) = log.entry(posting.leaf).await.map_err(|why| why.to_string())? else {
        return Ok(Vec::new());
    };
    let exact = match query(term) {
        Some(query) => log.prove(&query, posting.leaf).await.ok(),
        None => None,
    };
    let exact = exact.and_then(|search| AnsweredQuestion::read(search, posting).ok());
    let mut evidence = Vec::new();
    for answer in exact.as_ref().into_iter().chain([answer]) {
        let path = log.inclusion(posting.leaf, answer.head.size).await.map_err(|why| why.to_string())?;
        evidence.push(PostingEvidence {
            head: answer.evidence.clone(),
            leaf: posting.leaf,
            statement: entry.statement.bytes().to_vec(),
            payload: entry.payload.as_ref().map(|payload| payload.to_vec()),
            path,
            term: search_term(term),
            proof: answer.bytes.clone(),
        });
    }
    Ok(evidence)
}

/// The term of a posting that the entry at its leaf has.
async fn term_of(log: &IndexedLog<'_>, posting: Posting) -> Result<Option<Lookup>, String> {
    if posting.blind_code().is_some() {
        return Ok(None);
    }
    let entry = log.entry(posting.leaf).await.map_err(|why| why.to_string())?;
    Ok(entry.and_then(|entry| term_with_key(&entry.statement, entry.payload.as_deref(), posting.key)))
}

/// The term of a posting that does not belong in the run, as another entry of the run has it.
async fn known_term(
    log: &IndexedLog<'_>,
    recomputation: &IndexRecomputation,
    answer: &AnsweredQuestion,
    added: Posting,
) -> Result<Option<Lookup>, String> {
    let own = recomputation.postings(&answer.run, answer.head.horizon);
    let mut same = own.filter(|posting| posting.as_ref().map_or(true, |posting| posting.key == added.key));
    let first = same.next().transpose().map_err(|why| why.to_string())?;
    drop(same);
    match first {
        Some(posting) => term_of(log, posting).await,
        None => Ok(None),
    }
}

fn one_leaf(leaf: LeafIndex) -> LeafRange {
    LeafRange::new(leaf.get(), leaf.get().saturating_add(1))
}
