//! `/ui/sessions/{session}` and `/ui/sessions?session=`: the timeline of an agent session.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use explorer::{PreviousRecord, ReceiptChain, SessionPage, SessionStream, TimelineItem, session_address};
use serde::Deserialize;

use super::delegations::{self, PageReader};
use super::page::{frame, page};
use super::previous_records;
use super::rows::{row, rows};
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::edge::rate_limit::RequestCharge;
use crate::limits::SESSION_STREAMS;
use crate::routes::app::App;
use crate::routes::bodies::may_read_viewed;
use crate::routes::paging::wrong_page_query;
use crate::routes::plain_number;
use crate::routes::sessions::{self, SessionPaging, StreamReference};
use crate::routes::streams::{self, Stream};
use crate::view::entry_view::EntryView;

/// The page of a session.
pub async fn session(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    Extension(caller): Extension<AuthenticatedCaller>,
    Path(session): Path<String>,
    paging: Result<Query<SessionPaging>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(paging) = paging.map_err(wrong_page_query)?;
    read(PageReader { app: &app, caller: &caller, charge: &charge }, session, &paging).await
}

/// A session and a position in it, as a query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSession {
    /// Its name.
    session: String,
    /// List entries after this leaf.
    #[serde(default, deserialize_with = "plain_number")]
    after: Option<u64>,
    /// How many, at most.
    #[serde(default, deserialize_with = "plain_number")]
    limit: Option<usize>,
}

/// The page of a session whose name cannot be a part of a path.
pub async fn named(
    State(app): State<App>,
    Extension(charge): Extension<RequestCharge>,
    Extension(caller): Extension<AuthenticatedCaller>,
    query: Result<Query<NamedSession>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(NamedSession { session, after, limit }) = query.map_err(wrong_page_query)?;
    let reader = PageReader { app: &app, caller: &caller, charge: &charge };
    read(reader, session, &SessionPaging::page(after, limit)).await
}

async fn read(reader: PageReader<'_>, session: String, paging: &SessionPaging) -> Result<Response, Problem> {
    let PageReader { app, caller, charge } = reader;
    let (view, next) = sessions::read(app, charge, session, paging).await?;
    let streams = streams(app, charge, &view.streams).await?;
    let chains = delegations::chains(reader, &view.entries).await?;
    let misplaced = previous_records::misplaced(reader, &view.session, &view.entries).await?;
    let is_readable = |entry: &EntryView| !entry.erased && may_read_viewed(app, caller, entry);
    let session = SessionPage {
        timeline: timeline(&view.entries, &streams, chains, misplaced),
        receipts: rows(&view.receipts),
        verifiable: view.entries.iter().chain(&view.receipts).all(is_readable),
        unread_streams: view.streams.len().saturating_sub(streams.len()),
        streams: streams.iter().map(state).collect(),
        next: next.map(|next| session_address(&view.session, Some(&next))),
        content_types: view.content_types.into_iter().collect(),
        counting: view.counting,
        session: view.session,
    };
    Ok(page(session.html(&frame(&app.log))))
}

/// Reads the audit streams of a session. Each one counts as a read of the client.
async fn streams(
    app: &App,
    charge: &RequestCharge,
    references: &[StreamReference],
) -> Result<Vec<Stream>, Problem> {
    let mut streams = Vec::new();
    for reference in references.iter().take(SESSION_STREAMS) {
        charge.charge()?;
        streams.push(streams::read(app, charge, reference.gateway.clone(), reference.stream.clone()).await?);
    }
    Ok(streams)
}

/// The entries, and before each audit record the gap that ends with it, before each conversation record what is wrong with the
/// record that it names. Execution receipts have their chains, and decisions without an outcome are marked.
fn timeline(
    entries: &[EntryView],
    streams: &[Stream],
    mut chains: BTreeMap<u64, ReceiptChain>,
    mut misplaced: BTreeMap<u64, PreviousRecord>,
) -> Vec<TimelineItem> {
    let lacking = lacking_outcomes(streams);
    let numbers: Vec<RecordNumbers<'_>> = streams.iter().map(numbers_of).collect();
    let mut timeline = Vec::with_capacity(entries.len());
    for entry in in_order(entries, &numbers) {
        for (stream, numbers) in streams.iter().zip(&numbers) {
            let Some(seq) = numbers.get(entry.entry_id.as_str()) else { continue };
            let gap = stream.gaps.iter().find(|gap| gap.to.checked_add(1) == Some(*seq));
            timeline.extend(gap.map(|gap| TimelineItem::Gap {
                stream: stream.stream.clone(),
                from: gap.from,
                to: gap.to,
            }));
        }
        timeline.extend(misplaced.remove(&entry.index).map(TimelineItem::Previous));
        timeline.push(TimelineItem::Entry {
            row: Box::new(row(entry)),
            chain: chains.remove(&entry.index),
            lacks_outcome: lacking.contains(entry.entry_id.as_str()),
        });
    }
    timeline
}

/// The numbers of the records of an audit stream, by entry ID.
type RecordNumbers<'s> = HashMap<&'s str, u64>;

fn numbers_of(stream: &Stream) -> RecordNumbers<'_> {
    stream.records.iter().map(|record| (record.entry_id.as_str(), record.seq)).collect()
}

/// The entries in the order of their leaves, with the records of each audit stream in the order of their numbers: statements
/// that are registered side by side get leaves in any order.
fn in_order<'e>(entries: &'e [EntryView], numbers: &[RecordNumbers<'_>]) -> Vec<&'e EntryView> {
    let mut ordered: Vec<&EntryView> = entries.iter().collect();
    for numbers in numbers {
        let number = |entry: &EntryView| numbers.get(entry.entry_id.as_str());
        let of_stream = ordered.iter().copied().enumerate().filter(|(_, entry)| number(entry).is_some());
        let (places, mut records): (Vec<usize>, Vec<&EntryView>) = of_stream.unzip();
        records.sort_by_key(|record| number(record));
        places.into_iter().zip(records).for_each(|(place, record)| ordered[place] = record);
    }
    ordered
}

/// Entry IDs of the decisions without an outcome. A stream that was not read to its end names none: the rest may have their
/// outcomes.
fn lacking_outcomes(streams: &[Stream]) -> BTreeSet<&str> {
    let read_to_the_end = streams.iter().filter(|stream| !stream.truncated);
    read_to_the_end
        .flat_map(|stream| &stream.open_decisions)
        .map(|decision| decision.entry_id.as_str())
        .collect()
}

fn state(stream: &Stream) -> SessionStream {
    SessionStream {
        gateway: stream.gateway.clone(),
        stream: stream.stream.clone(),
        records: stream.records.len(),
        truncated: stream.truncated,
        missing: stream.gaps.iter().map(|gap| gap.to - gap.from + 1).sum(),
        open: stream.open_decisions.len(),
        closed: stream.closed,
    }
}
