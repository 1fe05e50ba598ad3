//! The registration policy in force, and all policies before it.

use maud::html;
use serde_json::Value as Json;

use crate::layout::{PageFrame, code, entry_link, facts, time, verify_link};
use crate::text::{Excerpt, block};

/// The registration policy and its history.
#[derive(Clone, Debug)]
pub struct PolicyPage {
    /// The policy that this page shows.
    pub row: PolicyRow,
    /// Its document.
    pub document: Json,
    /// All policies, newest first.
    pub history: Vec<PolicyRow>,
    /// Whether the caller can fetch its statement with its receipt.
    pub verifiable: bool,
}

/// A policy of the log.
#[derive(Clone, Debug)]
pub struct PolicyRow {
    /// Number of earlier policies.
    pub revision: u64,
    /// The leaf that holds it.
    pub leaf: u64,
    /// The ID of that entry.
    pub id: String,
    /// SHA-256 of the canonical document, hex.
    pub digest: String,
    /// Time of the commit (RFC 3339).
    pub at: Option<String>,
    /// Size of the log from which on it decides.
    pub in_force_from: u64,
}

impl PolicyPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let row = &self.row;
        let document = serde_json::to_string_pretty(&self.document).unwrap_or_default();
        let content = html! {
            (facts(&[
                ("Revision", html! { (row.revision) }),
                ("Entry", entry_link(&row.id, &format!("leaf {}", row.leaf))),
                ("In force from", html! { "leaf " (row.in_force_from) ", " (time(row.at.as_deref())) }),
                ("Digest", code(&row.digest)),
            ]))
            @if self.verifiable {
                p {
                    (verify_link(&[("entry", &row.id)]))
                    ": that the operator signed this policy, and that it is in the log. Its admissions are decided again by "
                    code { "tabellion audit" } "."
                }
            }
            h2 { "History" }
            ol.rows {
                @for past in &self.history {
                    li {
                        p.head {
                            a href={ "/ui/policy/" (past.revision) } { "Revision " (past.revision) }
                            " " (time(past.at.as_deref()))
                        }
                        p.names { "in force from leaf " (past.in_force_from) }
                    }
                }
            }
            h2 { "Document" }
            (block(&Excerpt::text(&document)))
        };
        frame.html("Registration policy", "/ui/policy", &content)
    }
}
