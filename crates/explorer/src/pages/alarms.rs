//! Alarms: what is wrong with the log, and contradictions of issuers.

use display::counted;
use maud::{Markup, html};

use crate::layout::{PageFrame, code, entry_link, facts, next_link, time};
use crate::text::{Excerpt, block, line};

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct AlarmsPage {
    /// Why registration stopped, if it did.
    pub obstacles: Vec<String>,
    /// Trees of the log of which at most one can be true.
    pub conflicts: Vec<TreeConflict>,
    /// Contradictions between what is stored and what was signed.
    pub findings: Vec<String>,
    /// Number of further findings.
    pub omitted: u64,
    /// Statements that were refused because they contradict entries of the same issuer.
    pub contradictions: Vec<IssuerContradiction>,
    /// Address of more contradictions.
    pub next: Option<String>,
}

/// Two trees of the log that contradict each other.
#[derive(Clone, Debug)]
pub struct TreeConflict {
    /// How the service learned of it, as a sentence.
    pub report: String,
    /// The trees.
    pub trees: [TreeView; 2],
    /// Whether the signatures of this log on both notes alone prove that it signed two roots of one size.
    pub proven: bool,
}

/// One of two trees that contradict each other, as far as the service knows it.
#[derive(Clone, Debug)]
pub struct TreeView {
    /// Where it was found, for example in the database.
    pub source: String,
    /// Leaves of the tree.
    pub size: u64,
    /// Root of the tree, hex.
    pub root: Option<String>,
    /// The name of a time, and the time (RFC 3339).
    pub time: (&'static str, Option<String>),
    /// Signatures on the note: the key's name and ID, and whether it verifies.
    pub signatures: Vec<(String, SignatureState)>,
    /// The signed note.
    pub note: Option<String>,
}

/// What the service knows of a signature on a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureState {
    /// It verifies with the checkpoint key of this log.
    OfThisLog,
    /// It verifies with the key of a witness, which made it at this time (RFC 3339).
    OfWitness(Option<String>),
    /// It does not verify with the key that it names.
    Wrong,
    /// The key is neither this log's nor that of one of its witnesses.
    UnknownKey,
}

/// Two statements of one issuer of which at most one can be true.
#[derive(Clone, Debug)]
pub struct IssuerContradiction {
    /// Number of the report.
    pub number: u64,
    /// The rule that the refused statement breaks.
    pub rule: Option<String>,
    /// Entry ID of the registered statement.
    pub registered: String,
    /// Digest of the refused statement.
    pub refused: String,
    /// When it was refused (RFC 3339).
    pub at: Option<String>,
}

impl AlarmsPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            h2 { "The log itself" }
            @if self.findings.is_empty() && self.obstacles.is_empty() && self.conflicts.is_empty() {
                p.good { "No contradiction of the signed tree heads was found." }
                p.note {
                    "This is the service's own statement. Monitors and witnesses check from outside that everyone sees the same log: "
                    a href="/ui/checkpoints" { "Checkpoints and witnesses" }
                    ". The alarms of a monitor are in its own list: " code { "tabellion monitor alerts" }
                }
            } @else {
                (self.alarm())
            }
            @if !self.conflicts.is_empty() {
                h2 { "Checkpoints that disagree" }
                @for one in &self.conflicts { (conflict(one)) }
            }
            h2 { "Contradictions of issuers" }
            p.note { "Statements that were refused because their issuer had signed the contrary. Both signatures are evidence." }
            @if self.contradictions.is_empty() { p { "None was reported." } }
            ol.timeline { @for one in &self.contradictions { li.gap { (contradiction(one)) } } }
            (next_link(self.next.as_deref(), "Later reports"))
            p { a href="/v1/equivocations" { "Reports as JSON, with the refused statements" } }
        };
        frame.html("Alarms", "/ui/alarms", &content)
    }

    fn alarm(&self) -> Markup {
        html! {
            // Between a witness's report and the stop of the sequencer there are only trees that disagree.
            @if !self.obstacles.is_empty() || !self.findings.is_empty() {
                div.alarm {
                    ul {
                        @for obstacle in &self.obstacles { li { (line(obstacle)) } }
                        @for finding in &self.findings { li { (line(finding)) } }
                        @if self.omitted > 0 { li { "and " (counted(self.omitted, "more finding", "more findings")) } }
                    }
                }
            }
            p {
                "Do not rely on new receipts of this log until its operator has explained this. Keep the receipts and "
                "checkpoints that you have: they are evidence."
            }
        }
    }
}

fn conflict(conflict: &TreeConflict) -> Markup {
    html! {
        section {
            p { (line(&conflict.report)) }
            @if conflict.proven {
                p.bad { "This log signed both roots of one size: the two notes prove it to everyone who has its key." }
            }
            div.pair { @for one in &conflict.trees { (tree(one)) } }
        }
    }
}

fn tree(tree: &TreeView) -> Markup {
    let unknown = || html! { span.note { "not known to this page" } };
    let (name, at) = &tree.time;
    let rows = [
        ("Size", html! { (tree.size) }),
        ("Root", tree.root.as_deref().map_or_else(unknown, code)),
        (*name, time(at.as_deref())),
        ("Signatures", if tree.signatures.is_empty() { unknown() } else { signatures(&tree.signatures) }),
    ];
    html! {
        div.node {
            h3 { (line(&tree.source)) }
            (facts(&rows))
            @if let Some(note) = &tree.note {
                details { summary { "Signed note" } (block(&Excerpt::text(note))) }
            }
        }
    }
}

fn signatures(signatures: &[(String, SignatureState)]) -> Markup {
    html! {
        ul {
            @for (key, state) in signatures {
                li {
                    (code(key)) ": "
                    @match state {
                        SignatureState::OfThisLog => { "this log's, valid" },
                        SignatureState::OfWitness(at) => { "a witness's, valid, " (time(at.as_deref())) },
                        SignatureState::Wrong => { span.bad { "not valid" } },
                        SignatureState::UnknownKey => { "by a key that the service does not know" },
                    }
                }
            }
        }
    }
}

fn contradiction(one: &IssuerContradiction) -> Markup {
    html! {
        p.head { "Report " (one.number) " " (time(one.at.as_deref())) }
        p { "Rule " (code(one.rule.as_deref().unwrap_or("unknown"))) }
        p { "Registered: " (entry_link(&one.registered, &one.registered)) }
        p { "Refused: " (code(&one.refused)) }
    }
}
