//! An agent session: all its entries as a timeline, with gaps in the audit streams drawn as gaps, and the
//! delegation chains of its execution receipts.

use display::counted;
use maud::{Markup, html};

use super::delegation::{ReceiptChain, receipt_chain};
use crate::layout::{PageFrame, code, facts, next_link};
use crate::rows::{self, EntryRow};
use crate::text::line;

/// The entries of a session.
#[derive(Clone, Debug)]
pub struct SessionPage {
    /// The name of the session, as its entries give it.
    pub session: String,
    /// Number of entries by content type.
    pub content_types: Vec<(String, u64)>,
    /// Entries and gaps, in the order of their leaves.
    pub timeline: Vec<TimelineItem>,
    /// Verification receipts that share a digest with these entries.
    pub receipts: Vec<EntryRow>,
    /// The audit streams of these entries.
    pub streams: Vec<SessionStream>,
    /// Address of the next page.
    pub next: Option<String>,
}

/// A part of a timeline.
#[derive(Clone, Debug)]
pub enum TimelineItem {
    /// An entry.
    Entry {
        /// The entry as in lists.
        row: Box<EntryRow>,
        /// The delegation chain of an execution receipt.
        chain: Option<ReceiptChain>,
        /// Whether this is a decision that let a call pass, and the log has no outcome of it.
        lacks_outcome: bool,
    },
    /// Numbers of an audit stream without a record.
    Gap {
        /// The stream.
        stream: String,
        /// The first missing number.
        from: u64,
        /// The last missing number.
        to: u64,
    },
}

/// State of an audit stream.
#[derive(Clone, Debug)]
pub struct SessionStream {
    /// The gateway.
    pub gateway: String,
    /// The stream.
    pub stream: String,
    /// Number of records on the log.
    pub records: usize,
    /// Number of missing records.
    pub missing: u64,
    /// Number of decisions without an outcome.
    pub open: usize,
    /// Whether the stream has its last record.
    pub closed: bool,
}

impl SessionPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            (facts(&[("Session", code(&self.session)), ("Entries", self.counts())]))
            p.note { "Issuers choose the names of sessions: entries of different issuers may mean different sessions." }
            @if !self.streams.is_empty() {
                h2 { "Audit streams" }
                ul { @for stream in &self.streams { li { (state(stream)) } } }
            }
            h2 { "Timeline" }
            ol.timeline {
                @for item in &self.timeline {
                    @match item {
                        TimelineItem::Entry { row, chain, lacks_outcome } => {
                            li {
                                (rows::entry(row))
                                @if *lacks_outcome { p.gap { "No outcome of this decision is on the log" } }
                                @if let Some(chain) = chain { (receipt_chain(chain)) }
                            }
                        },
                        TimelineItem::Gap { stream, from, to } => { li.gap { (gap(stream, *from, *to)) } },
                    }
                }
            }
            (next_link(self.next.as_deref(), "Later entries"))
            @if !self.receipts.is_empty() {
                h2 { "Verification receipts about its outputs" }
                (rows::list(&self.receipts))
            }
        };
        frame.html("Agent session", "", &content)
    }

    fn counts(&self) -> Markup {
        html! {
            @for (content_type, count) in &self.content_types {
                span.fact { (line(rows::kind(Some(content_type)))) " " b { (count) } } " "
            }
        }
    }
}

fn gap(stream: &str, from: u64, to: u64) -> Markup {
    html! {
        "Gap: "
        @if from == to { "record " (from) } @else { "records " (from) " to " (to) }
        " of the stream " (code(stream)) @if from == to { " is" } @else { " are" } " not on the log"
    }
}

fn state(stream: &SessionStream) -> Markup {
    html! {
        (code(&stream.stream)) " of " (line(&stream.gateway)) ": " (counted(stream.records, "record", "records")) ", "
        @if stream.missing == 0 { span.good { "none missing" } } @else { span.bad { (stream.missing) " missing" } }
        ", " (counted(stream.open, "decision", "decisions")) " without outcome, "
        @if stream.closed { "closed" } @else { "not closed" }
    }
}
