//! The delegation chains of the execution receipts on the page of a session.
//!
//! A receipt names its chain by a digest, which is the subject of the chain's own entry. What is drawn is what the parties
//! of the chain wrote: nothing is verified here.

use std::collections::BTreeMap;

use bytes::Bytes;
use explorer::{DelegationChain, DelegationHop, HopLimit, NameList, ReceiptChain};
use merkle::LeafIndex;
use registration::LookupKind;
use registration::aer::{AerRecord, is_aer};
use registration::agentroa::{AGENTROA_CHAIN, ChainRecord, OutlinedHop, outline};
use scitt::SignedStatement;
use store::{Order, Term};

use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::edge::rate_limit::RequestCharge;
use crate::index::term;
use crate::limits::{CHAIN_ENTRIES, HOP_NAMES, SESSION_CHAINS, SESSION_EXECUTIONS};
use crate::routes::app::App;
use crate::routes::bodies::is_open;
use crate::routes::payloads::kept;
use crate::run_blocking::run_blocking;
use crate::view::entry_view::EntryView;

/// The reader of a page.
#[derive(Clone, Copy)]
pub struct PageReader<'a> {
    /// The service.
    pub app: &'a App,
    /// The caller, who may not read all content.
    pub caller: &'a AuthenticatedCaller,
    /// The charge of the request: each search counts as a read.
    pub charge: &'a RequestCharge,
}

/// Reads the chains of the receipts among these entries, by the leaf of the receipt.
pub async fn chains(
    reader: PageReader<'_>,
    entries: &[EntryView],
) -> Result<BTreeMap<u64, ReceiptChain>, Problem> {
    let receipts = entries.iter().filter(|entry| entry.content_type.as_deref().is_some_and(is_aer));
    let mut chains = BTreeMap::new();
    // The leaf of the receipt under which a chain stands, by the digest of the chain.
    let mut above = BTreeMap::new();
    for (count, receipt) in receipts.enumerate() {
        let chain = match count < SESSION_EXECUTIONS {
            true => reader.chain_of(receipt, &mut above).await?,
            false => Some(ReceiptChain::LeftOut),
        };
        chains.extend(chain.map(|chain| (receipt.index, chain)));
    }
    Ok(chains)
}

impl PageReader<'_> {
    /// Reads the chain that a receipt names; `None` if it names none. `above` has the chains of the page so far.
    async fn chain_of(
        self,
        receipt: &EntryView,
        above: &mut BTreeMap<String, u64>,
    ) -> Result<Option<ReceiptChain>, Problem> {
        let content = match self.app.log.store.entry(LeafIndex::new(receipt.index)).await? {
            Some(entry) => self.content(&entry).await?,
            None => None,
        };
        let record =
            content.and_then(|(statement, payload)| AerRecord::read(statement.header(), &payload).ok());
        let Some(record) = record else { return Ok(Some(ReceiptChain::Unknown)) };
        let Some(named) = &record.receipt().chain else { return Ok(None) };
        let digest = named.digest.to_string();
        Ok(Some(match above.get(&digest) {
            Some(leaf) => ReceiptChain::Above(*leaf),
            None if above.len() == SESSION_CHAINS => ReceiptChain::LeftOut,
            None => {
                let chain = self.find(&digest, receipt.iss.as_deref()).await?;
                above.insert(digest, receipt.index);
                chain
            }
        }))
    }

    /// Finds the chain with this digest: an entry of this issuer if there is one, or else of another one.
    async fn find(self, digest: &str, iss: Option<&str>) -> Result<ReceiptChain, Problem> {
        let of_chain = [term(LookupKind::Subject, digest), term(LookupKind::ContentType, AGENTROA_CHAIN)];
        let mut leaves = Vec::new();
        if let Some(iss) = iss {
            let own = [&of_chain[..], &[term(LookupKind::Issuer, iss)]].concat();
            leaves.extend(self.search(own, 1).await?);
        }
        leaves.extend(self.search(of_chain.to_vec(), CHAIN_ENTRIES).await?);
        let mut closed = None;
        for leaf in leaves {
            let Some(entry) = self.app.log.store.entry(leaf).await? else { continue };
            let id = entry.digest.to_string();
            match self.content(&entry).await? {
                Some((_, payload)) => {
                    if let Some(hops) = run_blocking(payload.len(), || hops_of(&payload, digest)) {
                        let digest = digest.to_owned();
                        return Ok(ReceiptChain::Drawn(DelegationChain { digest, entry_id: id, hops }));
                    }
                }
                None => closed = closed.or(Some(id)),
            }
        }
        Ok(closed.map_or_else(|| ReceiptChain::Missing(digest.to_owned()), ReceiptChain::Closed))
    }

    /// Finds the first entries, oldest first, that match all terms. Counts as a read of the client.
    pub async fn search(self, terms: Vec<Term>, limit: usize) -> Result<Vec<LeafIndex>, Problem> {
        self.charge.charge()?;
        Ok(self.app.index.search(terms, 0..u64::MAX, Order::OldestFirst, limit).await?.entries)
    }

    /// Reads the statement of an entry with its payload; `None` if they are erased, not kept, or closed to the caller.
    async fn content(self, entry: &store::Entry) -> Result<Option<(SignedStatement, Bytes)>, Problem> {
        let Some(bytes) = entry.statement.clone().filter(|_| is_open(self.app, self.caller, entry)) else {
            return Ok(None);
        };
        let statement = SignedStatement::parse(bytes).map_err(|malformed| {
            tracing::error!(%malformed, "a registered statement cannot be read");
            Problem::internal()
        })?;
        let payload = match statement.payload() {
            Some(payload) => Some(statement.bytes().slice_ref(payload)),
            None => kept(self.app, entry).await?,
        };
        Ok(payload.map(|payload| (statement, payload)))
    }
}

/// Returns the hops of a chain, if it has this digest.
fn hops_of(payload: &[u8], digest: &str) -> Option<Vec<DelegationHop>> {
    let record = ChainRecord::read(payload).ok().filter(|record| record.digest().to_string() == digest)?;
    let hops = outline(record.chain());
    let before = std::iter::once(None).chain(hops.iter().map(Some));
    Some(hops.iter().zip(before).map(|(hop, before)| hop_of(hop, before)).collect())
}

fn hop_of(hop: &OutlinedHop, before: Option<&OutlinedHop>) -> DelegationHop {
    let earlier = before.map(dimensions).unwrap_or_default();
    let value_before =
        |name| earlier.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone());
    DelegationHop {
        agent: hop.holder.to_string(),
        signers: hop.signers.clone(),
        issued_at: hop.issued_at.into(),
        expires_at: hop.expires_at.map(String::from),
        tools: name_list(hop.declared.capabilities.grants()),
        withheld: name_list(hop.withheld.iter()),
        limits: dimensions(hop)
            .into_iter()
            .map(|(name, value)| HopLimit {
                before: value_before(name).filter(|before| *before != value),
                name,
                value,
            })
            .collect(),
        excess: match &hop.scope {
            Some(Err(denial)) => Some(denial.to_string()),
            _ => None,
        },
    }
}

/// The dimensions of a hop's scope other than its tools: those in effect, or else those that it declares.
fn dimensions(hop: &OutlinedHop) -> Vec<(&'static str, String)> {
    let (depth, budget, price, slo, classification) = match &hop.scope {
        Some(Ok(scope)) => {
            (Some(scope.depth), &scope.budget, scope.price_class, scope.slo_class, &scope.classification)
        }
        _ => {
            let declared = &hop.declared;
            let (price, slo) = (declared.price_class, declared.slo_class);
            (declared.max_delegation_depth, &declared.budget, price, slo, &declared.classification)
        }
    };
    let all = [
        ("further delegations", depth.map(|depth| depth.to_string())),
        ("budget", budget.as_ref().map(|budget| format!("{} {}", budget.ceiling, budget.unit))),
        ("price class at most", price.map(|class| class.to_string())),
        ("service level at least", slo.map(|class| class.to_string())),
        ("classification at most", classification.as_ref().map(ToString::to_string)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn name_list<T: ToString>(mut names: impl Iterator<Item = T>) -> NameList {
    let first = names.by_ref().take(HOP_NAMES).map(|name| name.to_string()).collect();
    NameList { names: first, more: names.count() }
}
