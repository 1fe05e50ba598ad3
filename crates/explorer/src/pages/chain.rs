//! An issuer's chain of verification receipts about one agent, with its gaps and forks.

use display::counted;
use maud::{Markup, html};

use crate::layout::{PageFrame, bundle_link, entry_link, facts, issuer_link, next_link, time, verify_link};
use crate::text::line;

/// A chain of verification receipts (VRF).
#[derive(Clone, Debug)]
pub struct ChainPage {
    /// The verifier.
    pub issuer: String,
    /// The agent.
    pub subject: String,
    /// Receipts and missing receipts, in the order of the chain; then refused forks.
    pub items: Vec<ChainItem>,
    /// Number of receipts about the agent that are in no chain.
    pub unchained: usize,
    /// Number of receipts that no other one follows, if the whole chain is on this page.
    pub ends: Option<usize>,
    /// Whether the caller can fetch the receipts as an evidence bundle.
    pub verifiable: bool,
    /// Address of the next page.
    pub next: Option<String>,
}

/// A part of a chain.
#[derive(Clone, Debug)]
pub enum ChainItem {
    /// A receipt of the log.
    Receipt {
        /// Place in the chain, from 0.
        position: u64,
        /// The entry ID.
        id: String,
        /// The leaf.
        leaf: u64,
        /// Time of the commit (RFC 3339).
        at: Option<String>,
        /// The verdict, unless only the hash is registered.
        verdict: Option<String>,
    },
    /// A receipt that another one names, and that the log does not hold.
    Gap {
        /// Place in the chain.
        position: u64,
        /// The entry ID that it would have.
        id: String,
    },
    /// A refused statement that claims the place of a registered receipt.
    Fork {
        /// The rule that it broke.
        rule: String,
        /// Entry ID of the registered receipt.
        registered: String,
        /// Digest of the refused statement.
        refused: String,
        /// When it was refused (RFC 3339).
        at: Option<String>,
    },
}

impl ChainPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            (facts(&[
                ("Verifier", issuer_link(&self.issuer)),
                ("Agent", html! { (line(&self.subject)) }),
                ("Receipts in no chain", html! { (self.unchained) }),
                ("State", self.state()),
            ]))
            @if self.verifiable { (self.verification()) }
            ol.timeline {
                @for item in &self.items { (drawn(item)) }
            }
            (next_link(self.next.as_deref(), "More of the chain"))
        };
        frame.html("Chain of verification receipts", "", &content)
    }

    fn verification(&self) -> Markup {
        let chain = [("issuer", self.issuer.as_str()), ("sub", self.subject.as_str())];
        html! {
            p {
                (verify_link(&chain)) ": the signature and the receipt of each of them, also as " (bundle_link(&chain, "chain.bundle"))
                ". That they follow each other is checked by " code { "tabellion vrf chain" } "."
            }
        }
    }

    fn state(&self) -> Markup {
        let gaps = self.items.iter().filter(|item| matches!(item, ChainItem::Gap { .. })).count();
        let forks = self.items.iter().filter(|item| matches!(item, ChainItem::Fork { .. })).count();
        html! {
            @match (self.ends, gaps, forks) {
                (None, ..) => { "This page is a part of the chain." },
                (Some(1), 0, 0) => { span.good { "Whole: no gap, no fork" } },
                (Some(ends), gaps, forks) => {
                    span.bad { (counted(gaps, "gap", "gaps")) ", " (counted(forks, "refused fork", "refused forks")) ", " (counted(ends, "end", "ends")) }
                },
            }
        }
    }
}

fn drawn(item: &ChainItem) -> Markup {
    match item {
        ChainItem::Receipt { position, id, leaf, at, verdict } => html! {
            li {
                p.head {
                    (entry_link(id, &format!("Receipt {position} at leaf {leaf}"))) " " (time(at.as_deref()))
                }
                p.facts { span.fact { b { (line(verdict.as_deref().unwrap_or("only the hash is registered"))) } } }
            }
        },
        ChainItem::Gap { position, id } => html! {
            li.gap { "Gap: receipt " (position) ", " code { (line(id)) } ", is not on the log" }
        },
        ChainItem::Fork { rule, registered, refused, at } => html! {
            li.gap {
                "Refused fork (" (line(rule)) ", " (time(at.as_deref())) "): " code { (line(refused)) }
                " claims the place of " (entry_link(registered, registered))
            }
        },
    }
}
