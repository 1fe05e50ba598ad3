//! `/ui/issuers/{iss}`, and the issuer's chain of verification receipts about an agent.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use display::percent_encoded;
use explorer::{ChainItem, ChainPage, DatedLeaf, IssuerPage};
use registration::LookupKind;
use registration::vrf::{VRF_CBOR, VRF_JSON};
use store::Order;

use super::page::{frame, page};
use super::rows::rows;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::index::term;
use crate::limits::HOME_ENTRIES;
use crate::routes::app::App;
use crate::routes::bodies::may_read_type;
use crate::routes::issuers::{self, ChainView, Fork, ReceiptView, WhichChain};
use crate::routes::paging::wrong_page_query;
use crate::routes::search::found;

/// The page of an issuer.
pub async fn issuer(State(app): State<App>, Path(iss): Path<String>) -> Result<Response, Problem> {
    let terms = vec![term(LookupKind::Issuer, &iss)];
    let view = issuers::read(&app, iss).await?;
    let (newest, _) = found(&app, terms, 0..u64::MAX, Order::NewestFirst, HOME_ENTRIES).await?;
    let issuer = IssuerPage {
        issuer: view.issuer,
        entries: view.entries,
        first: seen(view.first_seen),
        last: seen(view.last_seen),
        keys: counts(view.keys),
        content_types: counts(view.content_types),
        counting: view.counting,
        newest: rows(&newest.entries),
    };
    Ok(page(issuer.html(&frame(&app.log))))
}

fn seen(seen: issuers::Seen) -> DatedLeaf {
    DatedLeaf { leaf: seen.index, at: seen.at }
}

fn counts(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    counts.into_iter().collect()
}

/// The page of a chain.
pub async fn chain(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
    Path(iss): Path<String>,
    requested: Result<Query<WhichChain>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(requested) = requested.map_err(wrong_page_query)?;
    let (view, last) = issuers::read_chain(&app, iss, &requested).await?;
    let next = |last: u64| {
        let (issuer, subject) = (percent_encoded(&view.issuer), percent_encoded(&view.subject));
        format!("/ui/issuers/{issuer}/chain?sub={subject}&after={last}")
    };
    let is_readable =
        |content_type: &str| may_read_type(&app, &caller, Some(&view.issuer), Some(content_type));
    let chain = ChainPage {
        verifiable: !view.receipts.is_empty() && [VRF_CBOR, VRF_JSON].into_iter().all(is_readable),
        next: last.map(next),
        items: items(&view),
        unchained: view.unchained,
        ends: view.heads.as_ref().map(Vec::len),
        issuer: view.issuer,
        subject: view.subject,
    };
    Ok(page(chain.html(&frame(&app.log))))
}

/// Receipts, each after the gap before it, and then the forks.
fn items(view: &ChainView) -> Vec<ChainItem> {
    let mut items = Vec::new();
    for receipt in &view.receipts {
        let before = view.gaps.iter().filter(|gap| gap.named_by == receipt.entry_id);
        items.extend(before.map(|gap| ChainItem::Gap { position: gap.position, id: gap.entry_id.clone() }));
        items.push(receipt_item(receipt));
    }
    items.extend(view.forks.iter().map(fork_item));
    items
}

fn receipt_item(receipt: &ReceiptView) -> ChainItem {
    ChainItem::Receipt {
        position: receipt.position,
        id: receipt.entry_id.clone(),
        leaf: receipt.index,
        at: receipt.at.clone(),
        verdict: receipt.verdict.clone(),
    }
}

fn fork_item(fork: &Fork) -> ChainItem {
    ChainItem::Fork {
        rule: fork.rule.clone(),
        registered: fork.registered.clone(),
        refused: fork.refused.clone(),
        at: fork.at.clone(),
    }
}
