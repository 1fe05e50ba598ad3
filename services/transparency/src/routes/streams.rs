//! A gateway's audit stream: its records in order, and the numbers that are missing between them.
//!
//! The records of a stream are numbered from 0, and the last one has the kind `closed`. So a record that was never
//! registered shows as a gap, an admitted call without an outcome as an open decision, and a missing tail as a stream
//! that is not closed. An erased record keeps its number, because its guard stays. A record that is not indexed yet has
//! a guard as well, and is neither missing nor erased.
//!
//! Not here: the decision whether a gap is an omission or only late, which needs a later request.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::StatusCode;
use http::header::CACHE_CONTROL;
use merkle::LeafIndex;
use registration::LookupKind;
use registration::vap::{sequence_guard, stream_key};
use serde::{Deserialize, Serialize};
use store::{Entry, GuardKey, Order};
use utoipa::ToSchema;

use crate::edge::problem::Problem;
use crate::edge::rate_limit::RequestCharge;
use crate::index::term;
use crate::limits::{STREAM_GAPS, STREAM_PAGE, STREAM_RECORDS, STREAM_RECORDS_A_READ};
use crate::log::entry_reader::EntryReader;
use crate::routes::app::App;
use crate::time::rfc3339;
use crate::view::entry_facts::facts_of;

/// A stream of audit records.
#[derive(Debug, Serialize, ToSchema)]
pub struct Stream {
    /// The gateway whose records these are.
    pub gateway: String,
    /// The stream: a session, or `unbound:` and an instance.
    pub stream: String,
    /// In the order of their numbers.
    pub records: Vec<RecordView>,
    /// Numbers below the highest that no record of the log has.
    pub gaps: Vec<Gap>,
    /// Numbers whose record was erased.
    pub erased: Vec<u64>,
    /// Decisions that let a call pass, or asked back, and have no outcome yet.
    pub open_decisions: Vec<Open>,
    /// Outcomes whose decision is not among the records.
    pub unknown_decisions: Vec<Open>,
    /// Whether the stream has its last record; without it, a tail may be missing.
    pub closed: bool,
    /// The tree of which this was read.
    pub tree_size: u64,
    /// Whether the stream may have more records than were read: there are too many, or the newest are not indexed yet.
    /// They may answer open decisions.
    pub truncated: bool,
}

/// An audit record.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecordView {
    /// Its number in the stream.
    pub seq: u64,
    /// Its entry ID.
    pub entry_id: String,
    /// Its leaf.
    pub index: u64,
    /// commitment, amendment, decision, outcome, denials, tools or closed.
    pub kind: String,
    /// The time of the record, as the gateway states it. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// How the call ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The decision that this is the outcome of: its entry ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
}

/// Numbers without a record.
#[derive(Debug, Serialize, ToSchema)]
pub struct Gap {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// A decision without outcome, or an outcome without decision.
#[derive(Debug, Serialize, ToSchema)]
pub struct Open {
    /// The record's number.
    pub seq: u64,
    /// The record's entry ID.
    pub entry_id: String,
}

/// The facts of an audit record.
#[derive(Deserialize)]
struct RecordFacts {
    iss: String,
    sub: String,
    seq: u64,
    kind: String,
    at: Option<u64>,
    verdict: Option<String>,
    tool: Option<String>,
    status: Option<String>,
    decision: Option<String>,
}

/// A stream of a gateway's audit records: in order, with its gaps, the decisions that are open, and whether it has ended.
#[utoipa::path(
    get,
    path = "/v1/streams/{gateway}/{stream}",
    tag = "Log",
    params(
        ("gateway" = String, Path, description = "The iss of its records, percent-encoded"),
        ("stream" = String, Path, description = "The sub of its records, percent-encoded")
    ),
    responses((status = 200, description = "The records of the stream, and the gaps in it", body = Stream), (status = 404, description = "The log has no record of this stream"))
)]
pub async fn stream(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    Path((gateway, stream)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let view = read(&app, &charge, gateway, stream).await?;
    Ok(([(CACHE_CONTROL, "no-cache")], Json(view)).into_response())
}

/// Reads a stream; 404 if the log has no record of it.
pub async fn read(
    app: &App,
    charge: &RequestCharge,
    gateway: String,
    stream: String,
) -> Result<Stream, Problem> {
    let reached = app.index.caught_up().await?;
    let (records, truncated) = records(app, charge, (&gateway, &stream), reached.indexed.to.get()).await?;
    if records.is_empty() {
        return Err(if reached.is_behind() { super::names::behind() } else { unknown() });
    }
    let (gaps, erased) = missing(app, &gateway, &stream, &records).await?;
    let open_decisions = decisions_without_outcome(&records);
    let unknown_decisions = outcomes_without_decision(&records);
    Ok(Stream {
        closed: records.values().any(|record| record.kind == "closed"),
        records: records.into_values().collect(),
        gateway,
        stream,
        gaps,
        erased,
        open_decisions,
        unknown_decisions,
        tree_size: reached.indexed.to.get(),
        truncated: truncated || reached.is_behind(),
    })
}

/// Returns the 404 for a stream, or a gateway, of which the log holds no record.
pub fn unknown() -> Problem {
    let detail = "The log holds no audit record of this name";
    Problem::new(StatusCode::NOT_FOUND, "name-unknown", "Not Found", detail)
}

/// The records by number, which a gateway uses only once each, and `true` if there may be more than were read. A long
/// stream is charged to its client as several reads.
async fn records(
    app: &App,
    charge: &RequestCharge,
    (gateway, stream): (&str, &str),
    size: u64,
) -> Result<(BTreeMap<u64, RecordView>, bool), Problem> {
    let mut records = BTreeMap::new();
    let mut from = 0;
    while records.len() < STREAM_RECORDS {
        let terms = vec![term(LookupKind::Stream, &stream_key(gateway, stream))];
        let page = app.index.search(terms, from..size, Order::OldestFirst, STREAM_PAGE).await?;
        for _ in 0..page.entries.len() / STREAM_RECORDS_A_READ {
            charge.charge()?;
        }
        let mut reader = EntryReader::of(&*app.log.store, &page.entries);
        while let Some(entry) = reader.next().await? {
            let found = record_of(&entry).filter(|(of, name, _)| of == gateway && name == stream);
            records.extend(found.map(|(_, _, record)| (record.seq, record)));
        }
        match page.more_after {
            Some(last) => from = last.get() + 1,
            // If the index was dropped meanwhile, the stream ends where the index does.
            None => return Ok((records, page.indexed.to.get() < size)),
        }
    }
    Ok((records, true))
}

/// Returns gateway, stream and record if the entry is an audit record.
pub fn record_of(entry: &Entry) -> Option<(String, String, RecordView)> {
    let facts: RecordFacts = serde_json::from_value(facts_of(entry).into()).ok()?;
    let record = RecordView {
        seq: facts.seq,
        entry_id: entry.digest.to_string(),
        index: entry.index.get(),
        kind: facts.kind,
        at: facts.at.and_then(rfc3339),
        verdict: facts.verdict,
        tool: facts.tool,
        status: facts.status,
        decision: facts.decision,
    };
    Some((facts.iss, facts.sub, record))
}

/// The numbers below the highest that have no record: gaps, and erased records. A number whose record is only not
/// indexed yet is neither.
async fn missing(
    app: &App,
    gateway: &str,
    stream: &str,
    records: &BTreeMap<u64, RecordView>,
) -> Result<(Vec<Gap>, Vec<u64>), Problem> {
    let (mut gaps, mut erased, mut requested) = (Vec::new(), Vec::new(), 0);
    for range in numbers_between(records) {
        let known = range.end.min(range.start.saturating_add(STREAM_GAPS.saturating_sub(requested)));
        requested += known - range.start;
        let numbers: Vec<u64> = (range.start..known).collect();
        let keys: Vec<GuardKey> = numbers
            .iter()
            .map(|seq| GuardKey(sequence_guard(gateway, stream, *seq).as_bytes().to_vec()))
            .collect();
        let taken = app.log.store.guards(&keys).await?;
        let taken: BTreeMap<u64, LeafIndex> =
            numbers.into_iter().zip(taken).filter_map(|(seq, leaf)| Some((seq, leaf?))).collect();
        let leaves: Vec<LeafIndex> = taken.values().copied().collect();
        let erased_leaves = erased_among(app, &leaves).await?;
        erased.extend(taken.iter().filter(|(_, leaf)| erased_leaves.contains(leaf)).map(|(seq, _)| *seq));
        gaps.extend(without(range, taken.into_keys()));
    }
    Ok((gaps, erased))
}

/// Those of the leaves whose entries are erased.
async fn erased_among(app: &App, leaves: &[LeafIndex]) -> Result<BTreeSet<LeafIndex>, Problem> {
    let mut erased = BTreeSet::new();
    let mut reader = EntryReader::of(&*app.log.store, leaves);
    while let Some(entry) = reader.next().await? {
        if entry.statement.is_none() {
            erased.insert(entry.index);
        }
    }
    Ok(erased)
}

/// The ranges of numbers below and between the existing ones.
fn numbers_between(records: &BTreeMap<u64, RecordView>) -> Vec<Range<u64>> {
    let mut next = 0;
    let mut ranges = Vec::new();
    for seq in records.keys() {
        if *seq > next {
            ranges.push(next..*seq);
        }
        next = seq + 1;
    }
    ranges
}

/// The parts of a range without some of its numbers, which are in ascending order.
fn without(range: Range<u64>, taken: impl IntoIterator<Item = u64>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut from = range.start;
    for seq in taken {
        if seq > from {
            gaps.push(Gap { from, to: seq - 1 });
        }
        from = seq + 1;
    }
    if from < range.end {
        gaps.push(Gap { from, to: range.end - 1 });
    }
    gaps
}

/// Decisions without an outcome. A denied call needs none.
fn decisions_without_outcome(records: &BTreeMap<u64, RecordView>) -> Vec<Open> {
    let ended: BTreeSet<&str> = records.values().filter_map(|record| record.decision.as_deref()).collect();
    let is_open = |record: &&RecordView| {
        record.kind == "decision"
            && record.verdict.as_deref() != Some("denied")
            && !ended.contains(record.entry_id.as_str())
    };
    records.values().filter(is_open).map(Open::of).collect()
}

/// Outcomes whose decision is not among the records.
fn outcomes_without_decision(records: &BTreeMap<u64, RecordView>) -> Vec<Open> {
    let decisions: BTreeSet<&str> = records
        .values()
        .filter(|record| record.kind == "decision")
        .map(|record| record.entry_id.as_str())
        .collect();
    let unknown = |record: &&RecordView| {
        record.decision.as_deref().is_some_and(|decision| !decisions.contains(decision))
    };
    records.values().filter(unknown).map(Open::of).collect()
}

impl Open {
    fn of(record: &RecordView) -> Self {
        Self { seq: record.seq, entry_id: record.entry_id.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_some_of_its_numbers_is_what_is_left() {
        let left = |range: Range<u64>, taken: &[u64]| -> Vec<(u64, u64)> {
            without(range, taken.iter().copied()).into_iter().map(|gap| (gap.from, gap.to)).collect()
        };
        assert_eq!(left(3..8, &[]), [(3, 7)]);
        assert_eq!(left(3..8, &[3]), [(4, 7)]);
        assert_eq!(left(3..8, &[5, 6]), [(3, 4), (7, 7)]);
        assert_eq!(left(3..8, &[7]), [(3, 6)]);
        assert_eq!(left(3..5, &[3, 4]), []);
    }
}
