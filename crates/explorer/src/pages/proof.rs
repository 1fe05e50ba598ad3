//! An inclusion proof (RFC 9162, section 2.1.3), drawn from the leaf to the root.

use maud::{Markup, html};

use crate::layout::{PageFrame, code, entry_link, facts, verify_link};
use crate::text::{Excerpt, block};

/// An inclusion proof, with all nodes on the way to the root.
#[derive(Clone, Debug)]
pub struct ProofPage {
    /// The entry ID.
    pub id: String,
    /// The leaf.
    pub leaf: u64,
    /// Leaves of the tree.
    pub size: u64,
    /// Hash of the leaf, hex.
    pub leaf_hash: String,
    /// Two nodes of each level, from the leaf on.
    pub levels: Vec<ProofLevel>,
    /// The root to which they lead, hex.
    pub root: String,
    /// The signed checkpoint of the tree, as text.
    pub checkpoint: Option<String>,
    /// Whether the caller can fetch the statement with its receipt.
    pub verifiable: bool,
}

/// Two nodes of a level, hex: one from the proof, and one computed from the level before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofLevel {
    /// The left node.
    pub left: String,
    /// The right node.
    pub right: String,
    /// Whether the left one is from the proof; the other one was computed.
    pub left_is_given: bool,
}

impl ProofPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            (facts(&[
                ("Entry", entry_link(&self.id, &self.id)),
                ("Leaf", html! { (self.leaf) " of " (self.size) }),
                ("Hashes in the proof", html! { (self.levels.len()) }),
            ]))
            h2 { "From the leaf to the root" }
            p.note {
                "A dashed box is a hash from the proof. Every other hash was computed by this service from the two above it: "
                "SHA-256 of one byte 01, the left hash and the right hash."
            }
            @if self.verifiable {
                p { (verify_link(&[("entry", &self.id)])) ": it computes the root from the receipt, and checks the signatures." }
            }
            ol.path {
                li { (node("Leaf hash: SHA-256 of one byte 00 and the entry ID", &self.leaf_hash, false)) }
                (steps(&self.levels))
                li { p.down aria-hidden="true" { "▼" } (node("Root: computed from the hashes above", &self.root, false)) }
            }
            h2 { "Signature" }
            @match &self.checkpoint {
                Some(note) => {
                    p { "The log signed a checkpoint with this root:" }
                    (block(&Excerpt::text(note)))
                },
                None => { p.note { "The log signed no checkpoint of exactly this size." } },
            }
        };
        frame.html(&format!("Inclusion proof of leaf {}", self.leaf), "", &content)
    }
}

/// The steps of a proof, as items of a list.
pub fn steps(levels: &[ProofLevel]) -> Markup {
    html! { @for (number, level) in (1..).zip(levels) { li { (drawn(number, level)) } } }
}

fn drawn(number: usize, level: &ProofLevel) -> Markup {
    let name = |side: &str, given: bool| {
        format!("Step {number}, {side}, {}", if given { "from the proof" } else { "from above" })
    };
    html! {
        p.down aria-hidden="true" { "▼" }
        div.pair {
            (node(&name("left", level.left_is_given), &level.left, level.left_is_given))
            (node(&name("right", !level.left_is_given), &level.right, !level.left_is_given))
        }
    }
}

/// A hash with its name. One from the proof has a dashed box.
pub fn node(name: &str, hash: &str, given: bool) -> Markup {
    let class = if given { "node given" } else { "node" };
    html! { div class=(class) { small { (name) } (code(hash)) } }
}
