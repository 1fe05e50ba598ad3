//! An issuer: what it registered, and with which keys.

use maud::{Markup, html};

use crate::layout::{PageFrame, code, facts, time};
use crate::rows::{self, EntryRow};
use crate::text::line;
use display::percent_encoded;

/// An issuer, as the log knows it.
#[derive(Clone, Debug)]
pub struct IssuerPage {
    /// The `iss` of its statements.
    pub issuer: String,
    /// Number of its entries.
    pub entries: u64,
    /// Its first entry.
    pub first: DatedLeaf,
    /// Its last entry.
    pub last: DatedLeaf,
    /// Number of entries by key ID (hex).
    pub keys: Vec<(String, u64)>,
    /// Number of entries by content type.
    pub content_types: Vec<(String, u64)>,
    /// Whether the numbers still grow because not all entries were counted.
    pub counting: bool,
    /// Its newest entries.
    pub newest: Vec<EntryRow>,
}

/// A position and its time.
#[derive(Clone, Debug, Default)]
pub struct DatedLeaf {
    /// The leaf.
    pub leaf: u64,
    /// Time of the commit (RFC 3339).
    pub at: Option<String>,
}

impl IssuerPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let name = percent_encoded(&self.issuer);
        let content = html! {
            (facts(&[
                ("Issuer", code(&self.issuer)),
                ("Entries", html! { (self.entries) @if self.counting { " or more: counting continues" } }),
                ("First", seen(&self.first)),
                ("Last", seen(&self.last)),
            ]))
            h2 { "Content types" }
            (counts(&self.content_types))
            h2 { "Keys" }
            (counts(&self.keys))
            h2 { "Chain of verification receipts" }
            form.search method="get" action={ "/ui/issuers/" (name) "/chain" } {
                label { "About the agent (sub)" input type="text" name="sub" autocomplete="off" required; }
                div { button type="submit" { "Show the chain" } }
            }
            h2 { "Newest entries" }
            (rows::list(&self.newest))
            p { a href={ "/ui/search?issuer=" (name) } { "All entries of this issuer" } }
        };
        frame.html("Issuer", "", &content)
    }
}

fn seen(seen: &DatedLeaf) -> Markup {
    html! { "leaf " (seen.leaf) ", " (time(seen.at.as_deref())) }
}

fn counts(counts: &[(String, u64)]) -> Markup {
    html! {
        ul {
            @for (value, count) in counts { li { code { (line(value)) } ": " (count) } }
        }
    }
}
