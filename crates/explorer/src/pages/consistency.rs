//! A consistency proof (RFC 9162, section 2.1.4), drawn from the hash at which it begins to the roots of both trees.

use display::counted;
use maud::{Markup, html};

use super::proof::{ProofLevel, node, steps};
use crate::layout::{PageFrame, facts, verify_link};
use crate::text::{Excerpt, block};

/// A consistency proof, with all nodes on the ways to both roots.
#[derive(Clone, Debug)]
pub struct ConsistencyPage {
    /// Number of hashes in the proof.
    pub hashes: usize,
    /// The hash at which both ways begin, hex.
    pub start: String,
    /// Whether the proof has that hash. If not, it is the root of the older tree.
    pub start_is_given: bool,
    /// The smaller tree.
    pub older: ProvenTree,
    /// The larger tree.
    pub newer: ProvenTree,
    /// Public URL of the log, for commands.
    pub url: String,
}

/// One of the two trees of a consistency proof.
#[derive(Clone, Debug)]
pub struct ProvenTree {
    /// Leaves of the tree.
    pub size: u64,
    /// Two nodes of each step, from the start on.
    pub levels: Vec<ProofLevel>,
    /// The root to which they lead, hex.
    pub root: String,
    /// The checkpoint of this size, if the log signed one.
    pub signed: Option<CheckpointNote>,
}

/// A checkpoint next to the root that was computed.
#[derive(Clone, Debug)]
pub struct CheckpointNote {
    /// The signed note, as text.
    pub note: String,
    /// Whether the log signed the root that was computed.
    pub is_the_same: bool,
}

impl ConsistencyPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let (older, newer) = (&self.older, &self.newer);
        let json = format!("/v1/proof/consistency?first={}&second={}", older.size, newer.size);
        let content = html! {
            (facts(&[
                ("Smaller tree", html! { (leaves(older)) }),
                ("Larger tree", html! { (leaves(newer)) }),
                ("Hashes in the proof", html! { (self.hashes) ", " a href=(json) { "as JSON" } }),
            ]))
            (size_form(Some(older.size), Some(newer.size)))
            p.note {
                "The proof shows that the larger tree begins with the smaller one: none of its entries was removed, changed or "
                "moved. A dashed box is a hash from the proof. Every other hash was computed by this service from the two above "
                "it: SHA-256 of one byte 01, the left hash and the right hash."
            }
            @if !self.start_is_given {
                p.note { "The smaller tree is a whole part of the larger one, so the proof leaves out its root." }
            }
            @for tree in [older, newer] {
                h2 { "To the root of " (leaves(tree)) }
                ol.path { (self.way(tree)) }
            }
            h2 { "Signatures" }
            @for tree in [older, newer] { (signature(tree)) }
            (self.commands())
        };
        frame.html(&format!("Consistency proof from {} to {}", leaves(older), leaves(newer)), "", &content)
    }

    /// The hashes from the start to the root of a tree.
    fn way(&self, tree: &ProvenTree) -> Markup {
        let start =
            if self.start_is_given { "Start: from the proof" } else { "Start: root of the smaller tree" };
        html! {
            li { (node(start, &self.start, self.start_is_given)) }
            @if !tree.levels.is_empty() {
                (steps(&tree.levels))
                li { p.down aria-hidden="true" { "▼" } (node("Root: computed from the hashes above", &tree.root, false)) }
            }
        }
    }

    /// How to verify the proof, if the log signed the larger tree.
    fn commands(&self) -> Markup {
        if self.newer.signed.is_none() {
            return html! {};
        }
        html! {
            h2 { "Verify it yourself" }
            p {
                "The verifier in the browser checks the signatures of checkpoints, not this proof. The command line checks all of "
                "it, best with a checkpoint that you saved earlier or have from someone else:"
            }
            (block(&Excerpt::text(&self.command())))
        }
    }

    fn command(&self) -> String {
        let (older, newer, url) = (&self.older, self.newer.size, &self.url);
        let size = older.size;
        let (fetch, known) = match older.signed {
            Some(_) => (
                format!("curl -o checkpoint-{size} {url}/v1/checkpoints/{size}\n"),
                format!("--known checkpoint-{size}"),
            ),
            None => (String::new(), format!("--first {size} --root {}", older.root)),
        };
        format!("{fetch}tabellion proof consistency {known} --second {newer} --verify --url {url}\n")
    }
}

/// The form that leads to the proof between two sizes.
pub fn size_form(first: Option<u64>, second: Option<u64>) -> Markup {
    html! {
        form.search method="get" action="/ui/consistency" {
            label { "Smaller size" input type="number" name="first" min="1" value=[first] required; }
            label { "Larger size" input type="number" name="second" min="1" value=[second] required; }
            div { button type="submit" { "Show the proof" } }
        }
    }
}

fn signature(tree: &ProvenTree) -> Markup {
    html! {
        h3 { "Size " (tree.size) }
        @match &tree.signed {
            None => { p.note { "The log signed no checkpoint of exactly this size." } },
            Some(signed) => {
                @if signed.is_the_same {
                    p { "The log signed a checkpoint with this root:" }
                } @else {
                    p.bad role="alert" { "The log signed a checkpoint with another root. Save this page and tell the operator:" }
                }
                (block(&Excerpt::text(&signed.note)))
                p { (verify_link(&[("checkpoint", &tree.size.to_string())])) ": its signature and the cosignatures" }
            },
        }
    }
}

fn leaves(tree: &ProvenTree) -> String {
    counted(tree.size, "leaf", "leaves")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(size: u64, signed: Option<bool>) -> ProvenTree {
        let signed = signed.map(|is_the_same| CheckpointNote { note: format!("note {size}"), is_the_same });
        ProvenTree { size, levels: Vec::new(), root: format!("root {size}"), signed }
    }

    fn page(older: Option<bool>, newer: Option<bool>) -> ConsistencyPage {
        ConsistencyPage {
            hashes: 1,
            start: "start".to_owned(),
            start_is_given: false,
            older: tree(1, older),
            newer: tree(2, newer),
            url: "https://log.example".to_owned(),
        }
    }

    #[test]
    fn a_signed_root_that_is_another_one_is_an_alert() {
        let html = page(Some(true), Some(false)).html(&PageFrame::default());
        assert_eq!(html.matches("a checkpoint with another root").count(), 1, "{html}");
        assert!(html.contains("1 leaf to 2 leaves"), "{html}");
    }

    #[test]
    fn the_command_has_what_the_log_signed() {
        let signed = page(Some(true), Some(true)).command();
        assert!(signed.contains("--known checkpoint-1 --second 2 --verify"), "{signed}");
        let unsigned = page(None, Some(true)).command();
        assert!(unsigned.starts_with("tabellion proof consistency --first 1 --root root 1"), "{unsigned}");
        let html = page(Some(true), None).html(&PageFrame::default());
        assert!(!html.contains("tabellion proof") && html.contains("no checkpoint of exactly"), "{html}");
    }
}
