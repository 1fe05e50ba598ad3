//! Delegation chains under execution receipts: what each hop may do, and how it is less than the hop before.

use maud::{Markup, html};

use crate::layout::{code, entry_link, time};
use crate::text::line;

/// The delegation chain of an execution receipt, as far as a page can show it.
#[derive(Clone, Debug)]
pub enum ReceiptChain {
    /// The hops of the chain.
    Drawn(DelegationChain),
    /// The chain stands under an earlier receipt of the page, at this leaf.
    Above(u64),
    /// The log does not have the chain with this digest.
    Missing(String),
    /// The chain is on the log, as this entry, whose content is erased or closed to the reader.
    Closed(String),
    /// The content of the receipt is erased, closed to the reader, or registered by its hash.
    Unknown,
    /// The page has no room for another chain.
    LeftOut,
}

/// A delegation chain of the log.
#[derive(Clone, Debug)]
pub struct DelegationChain {
    /// The digest by which receipts name the chain.
    pub digest: String,
    /// The entry of the chain.
    pub entry_id: String,
    /// The hops, the root first.
    pub hops: Vec<DelegationHop>,
}

/// A hop of a chain, as its object describes it.
#[derive(Clone, Debug)]
pub struct DelegationHop {
    /// The agent that the scope is given to.
    pub agent: String,
    /// The names of the signers.
    pub signers: Vec<String>,
    /// The time of issue (RFC 3339).
    pub issued_at: String,
    /// The end of the chain (RFC 3339); only the root has one.
    pub expires_at: Option<String>,
    /// The tools that the agent may call.
    pub tools: NameList,
    /// The tools of the hop before that this hop does not have.
    pub withheld: NameList,
    /// The other dimensions of the scope.
    pub limits: Vec<HopLimit>,
    /// The reason for which the hop declares more than there was.
    pub excess: Option<String>,
}

/// The beginning of a list of names.
#[derive(Clone, Debug, Default)]
pub struct NameList {
    /// The first names.
    pub names: Vec<String>,
    /// The number of further ones.
    pub more: usize,
}

/// A dimension of a scope.
#[derive(Clone, Debug)]
pub struct HopLimit {
    /// The name of the dimension.
    pub name: &'static str,
    /// The value at this hop.
    pub value: String,
    /// The value at the hop before, if it is another one.
    pub before: Option<String>,
}

/// Renders the chain of a receipt.
pub fn receipt_chain(chain: &ReceiptChain) -> Markup {
    match chain {
        ReceiptChain::Drawn(chain) => drawn(chain),
        ReceiptChain::Above(leaf) => html! {
            p.names { "Its delegation chain is that of the receipt at leaf " (leaf) ", above" }
        },
        ReceiptChain::Missing(digest) => html! {
            p.gap { "Gap: its delegation chain " (code(digest)) " is not on the log" }
        },
        ReceiptChain::Closed(entry) => html! {
            p.gap { "Gap: its delegation chain is " (entry_link(entry, "an entry")) " whose content is not shown here" }
        },
        ReceiptChain::Unknown => html! {
            p.gap { "Gap: the content of the receipt is not shown here, and so its delegation chain is unknown" }
        },
        ReceiptChain::LeftOut => html! {
            p.names {
                "Its delegation chain is left out, since this page has many: ask for fewer entries, as in "
                code { "?limit=10" }
            }
        },
    }
}

fn drawn(chain: &DelegationChain) -> Markup {
    html! {
        details.delegation open {
            summary { "Delegation chain, as its parties wrote it. Hops: " (chain.hops.len()) }
            ol {
                @for (number, hop) in chain.hops.iter().enumerate() {
                    li { (drawn_hop(&chain.entry_id, number, hop)) }
                }
            }
            p.note { "Digest " (code(&chain.digest)) ". No signature of the chain is verified here: " code { "tabellion execution verify" } " does." }
        }
    }
}

fn drawn_hop(entry: &str, number: usize, hop: &DelegationHop) -> Markup {
    html! {
        p.head { (entry_link(entry, &format!("Hop {number}: {}", hop.agent))) }
        p.names {
            "by " (line(&hop.signers.join(", "))) ", " (time(Some(&hop.issued_at)))
            @if let Some(end) = &hop.expires_at { ", ends " (time(Some(end))) }
        }
        p.facts { "may call " (names(&hop.tools)) }
        @if !hop.withheld.names.is_empty() {
            p.facts.withheld { "without " (names(&hop.withheld)) " of the hop before" }
        }
        p.facts {
            @for limit in &hop.limits {
                span.fact {
                    (limit.name) " " b { (line(&limit.value)) }
                    @if let Some(before) = &limit.before { ", before " s { (line(before)) } }
                } " "
            }
        }
        @if let Some(excess) = &hop.excess { p.bad { "Declares more than the hop before: " (line(excess)) } }
    }
}

fn names(list: &NameList) -> Markup {
    html! {
        @for name in &list.names { span.fact { (line(name)) } " " }
        @if list.more > 0 { "and " (list.more) " more" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(agent: &str) -> DelegationHop {
        DelegationHop {
            agent: agent.to_owned(),
            signers: vec!["<b>\u{202e}".to_owned()],
            issued_at: "2026-01-01T00:00:00Z".to_owned(),
            expires_at: None,
            tools: NameList { names: vec!["mcp:crm.<read>".to_owned()], more: 3 },
            withheld: NameList { names: vec!["mcp:crm.*".to_owned()], more: 0 },
            limits: vec![HopLimit { name: "budget", value: "1 EUR".into(), before: Some("2 EUR".into()) }],
            excess: None,
        }
    }

    #[test]
    fn each_hop_leads_to_the_entry_of_the_chain_and_shows_what_it_lost() {
        let chain = DelegationChain {
            digest: "sha256:00".into(),
            entry_id: "ab".into(),
            hops: vec![hop("aha:a/b/c"), hop("aha:a/b/d")],
        };
        let html = receipt_chain(&ReceiptChain::Drawn(chain)).into_string();
        assert_eq!(html.matches("href=\"/ui/entries/ab\"").count(), 2, "{html}");
        for part in
            ["mcp:crm.&lt;read&gt;", "and 3 more", "without", "before <s>2 EUR</s>", "&lt;b&gt;\\u{202e}"]
        {
            assert!(html.contains(part), "no {part}: {html}");
        }
    }

    #[test]
    fn a_chain_that_is_not_on_the_log_is_a_gap() {
        let html = receipt_chain(&ReceiptChain::Missing("sha256:00".into())).into_string();
        assert!(html.contains("class=\"gap\"") && html.contains("<code>sha256:00</code> is not on the log"));
    }
}
