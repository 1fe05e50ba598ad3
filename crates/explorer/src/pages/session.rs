//! An agent session: all its entries as a timeline, with gaps in the audit streams and between conversation records drawn as
//! gaps, and the delegation chains of its execution receipts.

use display::counted;
use maud::{Markup, html};

use super::delegation::{ReceiptChain, receipt_chain};
use crate::layout::{PageFrame, bundle_link, code, facts, next_link, verify_link};
use crate::rows::{self, EntryRow};
use crate::text::line;

/// The entries of a session.
#[derive(Clone, Debug)]
pub struct SessionPage {
    /// The name of the session, as its entries give it.
    pub session: String,
    /// Number of entries by content type, as far as they were counted.
    pub content_types: Vec<(String, u64)>,
    /// Whether there may be more of them: the count goes on.
    pub counting: bool,
    /// Entries and gaps, in the order of their leaves; the records of an audit stream in the order of their numbers.
    pub timeline: Vec<TimelineItem>,
    /// Verification receipts that share a digest with these entries.
    pub receipts: Vec<EntryRow>,
    /// The audit streams of these entries that were read.
    pub streams: Vec<SessionStream>,
    /// Number of their audit streams that were not read.
    pub unread_streams: usize,
    /// Whether the caller can fetch the entries as an evidence bundle.
    pub verifiable: bool,
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
    /// The record before the next conversation record, if it is not the one that the log has there.
    Previous(PreviousRecord),
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

/// What is wrong with the record that a conversation record names as the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreviousRecord {
    /// The log does not find a record with this digest.
    Missing(String),
    /// The record was registered after the one that names it, at this leaf.
    Later(u64),
    /// Another record, at this leaf, follows it already.
    Followed(u64),
    /// It was not looked up, because the page has many.
    LeftOut,
}

/// State of an audit stream.
#[derive(Clone, Debug)]
pub struct SessionStream {
    /// The gateway.
    pub gateway: String,
    /// The stream.
    pub stream: String,
    /// Number of records on the log that were read.
    pub records: usize,
    /// Whether there are more records. What the stream lacks is then not known.
    pub truncated: bool,
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
            @if self.verifiable { (self.verification()) }
            @if !self.streams.is_empty() {
                h2 { "Audit streams" }
                ul {
                    @for stream in &self.streams { li { (state(stream)) } }
                    @if self.unread_streams > 0 {
                        li.gap { (counted(self.unread_streams, "more stream", "more streams")) ", not read: gaps are not shown" }
                    }
                }
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
                        TimelineItem::Previous(record) => { (previous(record)) },
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

    fn verification(&self) -> Markup {
        let session = [("session", self.session.as_str())];
        html! {
            p {
                (verify_link(&session)) ": the signatures and the proofs of all its entries, also as "
                (bundle_link(&session, "session.bundle")) " for " code { "tabellion verify" } "."
            }
        }
    }

    fn counts(&self) -> Markup {
        html! {
            @for (content_type, count) in &self.content_types {
                span.fact { (line(rows::kind(Some(content_type)))) " " b { (count) } } " "
            }
            @if self.counting { "or more: counting continues" }
        }
    }
}

fn previous(record: &PreviousRecord) -> Markup {
    match record {
        PreviousRecord::Missing(digest) => html! {
            li.gap { "Gap: the conversation record before the next one, " (code(digest)) ", is not on the log, or was erased" }
        },
        PreviousRecord::Later(leaf) => html! {
            li.gap { "Out of order: the conversation record before the next one was registered after it, at leaf " (leaf) }
        },
        PreviousRecord::Followed(leaf) => html! {
            li.gap { "Fork: the next conversation record follows the same record as the one at leaf " (leaf) " does" }
        },
        PreviousRecord::LeftOut => html! {
            li {
                p.names {
                    "Whether the record before the next one is on the log was not looked up, since this page has many: ask for "
                    "fewer entries, as in " code { "?limit=10" }
                }
            }
        },
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
    let records = counted(stream.records, "record", "records");
    html! {
        (code(&stream.stream)) " of " (line(&stream.gateway)) ": "
        @if stream.truncated {
            span.bad { (records) " read: there may be more records" }
        } @else {
            (records) ", " (missing(stream.missing)) ", "
            (counted(stream.open, "decision", "decisions")) " without outcome, "
            @if stream.closed { "closed" } @else { "not closed" }
        }
    }
}

fn missing(records: u64) -> Markup {
    html! {
        @if records == 0 { span.good { "none missing" } } @else { span.bad { (records) " missing" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(truncated: bool) -> SessionStream {
        let (gateway, stream) = ("https://gw.example".to_owned(), "stream-1".to_owned());
        SessionStream { gateway, stream, records: 5000, truncated, missing: 0, open: 1, closed: false }
    }

    #[test]
    fn nothing_is_said_of_records_that_were_not_read() {
        let whole = state(&stream(false)).into_string();
        assert!(whole.contains("none missing") && whole.contains("1 decision without outcome"), "{whole}");
        let part = state(&stream(true)).into_string();
        assert!(part.contains("5000 records read: there may be more"), "{part}");
        assert!(!part.contains("none missing") && !part.contains("without outcome"), "{part}");
    }
}
