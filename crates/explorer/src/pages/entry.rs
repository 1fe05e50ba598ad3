//! One entry: what its issuer signed, why the log admitted it, and its proofs.

use maud::{Markup, html};
use serde_json::Value as Json;

use crate::layout::{
    PageFrame, bundle_link, code, entry_link, facts, issuer_link, session_link, time, verify_link,
};
use crate::rows::{self, EntryRow, kind};
use crate::text::{Excerpt, block, line};

/// An entry with its content.
#[derive(Clone, Debug)]
pub struct EntryPage {
    /// The entry as in lists.
    pub row: EntryRow,
    /// Leaf of the policy that admitted it, and the ID of that entry.
    pub policy: (u64, Option<String>),
    /// The rule of that policy.
    pub rule: String,
    /// What the log read from the statement when it was admitted.
    pub facts: Json,
    /// The statement.
    pub body: EntryBody,
    /// Entries that share a value with this one.
    pub related: Vec<RelatedEntries>,
    /// Public URL of the log, for commands.
    pub url: String,
}

/// The statement of an entry, as far as it can be shown.
#[derive(Clone, Debug)]
pub enum EntryBody {
    /// The statement was erased.
    Erased,
    /// The content type is closed to this caller.
    Closed,
    /// The statement.
    Open {
        /// The protected header, with the names of known labels.
        header: Json,
        /// Whether a receipt can be attached to the statement.
        takes_receipts: bool,
        /// The payload; `None` if it is detached.
        payload: Option<PayloadText>,
        /// The statement's bytes in hexadecimal.
        statement: Excerpt,
    },
}

/// A payload, decoded by its content type.
#[derive(Clone, Debug)]
pub struct PayloadText {
    /// How the text came from the bytes, for example that JSON was indented.
    pub form: &'static str,
    /// The text, or a hexadecimal dump.
    pub excerpt: Excerpt,
}

/// Entries that share a value with the entry, or name it, or are named by it.
#[derive(Clone, Debug)]
pub struct RelatedEntries {
    /// The relation.
    pub relation: &'static str,
    /// The shared value; `None` if the relation is between the entries themselves.
    pub value: Option<String>,
    /// The entries.
    pub rows: Vec<EntryRow>,
    /// Whether there are more.
    pub more: bool,
}

impl EntryPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let title = format!("{} at leaf {}", kind(self.row.content_type.as_deref()), self.row.leaf);
        let content = html! {
            (facts(&self.summary()))
            (self.downloads())
            (self.body())
            h2 { "Facts read at admission" }
            (block(&pretty(&self.facts)))
            @for related in &self.related { (group(related)) }
            h2 { "Verify it yourself" }
            @if self.takes_receipts() {
                p { (verify_link(&[("entry", &self.row.id)])) ", with the keys that you trust, or on the command line:" }
            } @else if !self.is_open() {
                p { "With the statement, which this service does not give you, in the file " code { "statement.cose" } ":" }
            }
            (block(&Excerpt::text(&self.commands())))
        };
        frame.html(&title, "", &content)
    }

    fn summary(&self) -> Vec<(&'static str, Markup)> {
        let row = &self.row;
        let (policy, policy_id) = &self.policy;
        let mut summary = vec![("Entry ID", code(&row.id)), ("Committed", time(row.at.as_deref()))];
        if !row.erased {
            summary.push(("Content type", html! { (line(row.content_type.as_deref().unwrap_or("none"))) }));
        }
        summary.extend(row.issuer.as_deref().map(|issuer| ("Issuer", issuer_link(issuer))));
        summary.extend(row.subject.as_deref().map(|subject| ("Subject", html! { (line(subject)) })));
        summary.extend(row.session.as_deref().map(|session| ("Session", session_link(session))));
        let admitted = html! {
            "by the rule " (code(&self.rule)) " of "
            @match policy_id {
                Some(id) => { (entry_link(id, &format!("the policy at leaf {policy}"))) },
                None => { "the policy at leaf " (policy) },
            }
        };
        summary.push(("Admitted", admitted));
        summary
    }

    /// Returns `true` if the caller can fetch the statement.
    fn is_open(&self) -> bool {
        matches!(self.body, EntryBody::Open { .. })
    }

    /// Returns `true` if the caller can fetch the statement with its receipt.
    fn takes_receipts(&self) -> bool {
        matches!(self.body, EntryBody::Open { takes_receipts: true, .. })
    }

    fn downloads(&self) -> Markup {
        let id = &self.row.id;
        html! {
            ul {
                li { a href={ "/ui/entries/" (id) "/proof" } { "Inclusion proof" } ", drawn with every hash" }
                @if self.is_open() {
                    li { a href={ "/v1/entries/" (id) "/statement" } download={ (id) ".cose" } { "Statement" } " (COSE)" }
                    @if self.takes_receipts() {
                        li {
                            a href={ "/v1/entries/" (id) "/transparent" } download={ (id) ".transparent.cose" } {
                                "Statement with receipt"
                            }
                            " (COSE)"
                        }
                    }
                    li { a href={ "/v1/entries/" (id) "/payload" } download={ (id) ".payload" } { "Payload" } }
                    li {
                        "All of this in one " (bundle_link(&[("entry", id.as_str())], &format!("{id}.bundle")))
                        ", with the policy that admitted it, for " code { "tabellion verify" }
                    }
                }
                li { a href={ "/ui/entries/" (id) "/receipt" } download={ (id) ".receipt" } { "Receipt" } " (COSE)" }
                li { a href={ "/v1/entries/" (id) } { "This entry as JSON" } }
            }
        }
    }

    fn body(&self) -> Markup {
        match &self.body {
            EntryBody::Erased => html! { p.note { "The statement was erased. Its proofs still hold." } },
            EntryBody::Closed => {
                html! { p.note { "The content is closed to this caller. Its proofs are public." } }
            }
            EntryBody::Open { header, payload, statement, .. } => html! {
                h2 { "Protected header" }
                (block(&pretty(header)))
                h2 { "Payload" }
                @match payload {
                    Some(content) => { p.note { (content.form) } (block(&content.excerpt)) },
                    None => { p.note { "The payload is detached, and is not shown here." } },
                }
                details {
                    summary { "Statement in hexadecimal, " (statement.bytes) " bytes" }
                    (block(statement))
                }
            },
        }
    }

    fn commands(&self) -> String {
        let (id, url) = (&self.row.id, &self.url);
        if self.takes_receipts() {
            return format!(
                "curl -o statement.cose {url}/v1/entries/{id}/transparent\n\
                 tabellion verify statement.cose\n"
            );
        }
        let statement = match self.is_open() {
            true => format!("curl -o statement.cose {url}/v1/entries/{id}/statement\n"),
            false => String::new(),
        };
        format!(
            "{statement}curl -o statement.receipt {url}/entries/{id}\n\
             tabellion verify statement.cose --receipt statement.receipt\n"
        )
    }
}

fn group(related: &RelatedEntries) -> Markup {
    html! {
        h2 { (related.relation) }
        @if let Some(value) = &related.value { p { (code(value)) } }
        (rows::list(&related.rows))
        @if related.more { p.note { "There are more: search for the value." } }
    }
}

fn pretty(json: &Json) -> Excerpt {
    Excerpt::text(&serde_json::to_string_pretty(json).unwrap_or_default())
}
