//! Checkpoints, and the witnesses that cosign them.

use display::counted;
use maud::{Markup, html};

use super::consistency::size_form;
use crate::layout::{PageFrame, code, next_link, time, verify_link};
use crate::text::{Excerpt, block, line};

/// The newest checkpoints and all witnesses.
#[derive(Clone, Debug, Default)]
pub struct CheckpointsPage {
    /// Checkpoints, newest first.
    pub rows: Vec<CheckpointRow>,
    /// Address of older ones.
    pub next: Option<String>,
    /// The witnesses.
    pub witnesses: Vec<WitnessRow>,
    /// The witness or group that must cosign a checkpoint before it is served.
    pub quorum: Option<String>,
    /// Whether enough witnesses have cosigned lately.
    pub quorum_met: bool,
}

/// A signed checkpoint.
#[derive(Clone, Debug)]
pub struct CheckpointRow {
    /// Leaves of the tree.
    pub size: u64,
    /// Root of the tree, hex.
    pub root: String,
    /// Time of the commit (RFC 3339).
    pub at: Option<String>,
    /// The signed note, with its cosignatures.
    pub note: String,
}

/// A witness of the log.
#[derive(Clone, Debug)]
pub struct WitnessRow {
    /// Its name.
    pub name: String,
    /// Its verifier key.
    pub key: String,
    /// Leaves of the largest tree that it cosigned.
    pub size: Option<u64>,
    /// When it did, by its own clock (RFC 3339).
    pub at: Option<String>,
    /// Leaves of the newest tree that it has not cosigned.
    pub behind: u64,
    /// Whether it has cosigned lately.
    pub fresh: bool,
    /// Why it did not cosign when it was last contacted.
    pub trouble: Option<String>,
}

impl CheckpointsPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            h2 { "Witnesses" }
            @if self.witnesses.is_empty() {
                p.note { "This log has no witnesses." }
            } @else {
                @if let Some(quorum) = &self.quorum {
                    p {
                        "A checkpoint is served after " (line(quorum)) " cosigned it: "
                        @if self.quorum_met { span.good { "met" } } @else { span.bad { "not met" } }
                    }
                }
                ol.rows { @for witness in &self.witnesses { li { (cosigned(witness)) } } }
            }
            h2 { "Consistency of two checkpoints" }
            p.note { "The proof that the larger tree begins with the smaller one, drawn with every hash." }
            (size_form(self.rows.get(1).map(|row| row.size), self.rows.first().map(|row| row.size)))
            h2 { "Checkpoints" }
            ol.rows { @for row in &self.rows { li { (checkpoint(row)) } } }
            (next_link(self.next.as_deref(), "Older checkpoints"))
        };
        frame.html("Checkpoints and witnesses", "/ui/checkpoints", &content)
    }
}

fn cosigned(witness: &WitnessRow) -> Markup {
    html! {
        p.head {
            strong { (line(&witness.name)) } " "
            @if witness.fresh { span.good { "fresh" } } @else { span.bad { "not fresh" } }
        }
        p.names {
            @match witness.size {
                Some(size) => {
                    "cosigned " (counted(size, "leaf", "leaves")) ", " (time(witness.at.as_deref())) ", " (witness.behind) " behind"
                },
                None => { "has cosigned nothing yet" },
            }
            @if let Some(trouble) = &witness.trouble { ", last attempt: " (line(trouble)) }
        }
        p.names { (code(&witness.key)) }
    }
}

fn checkpoint(row: &CheckpointRow) -> Markup {
    html! {
        p.head {
            a href={ "/v1/checkpoints/" (row.size) } { "Size " (row.size) } " " (time(row.at.as_deref()))
        }
        p.names { "root " (code(&row.root)) }
        details { summary { "Signed note" } (block(&Excerpt::text(&row.note))) }
        p.names { (verify_link(&[("checkpoint", &row.size.to_string())])) ": its signature and the cosignatures" }
    }
}
