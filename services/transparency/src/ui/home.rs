//! `/ui`: the state of the log.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use explorer::HomePage;
use store::Order;

use super::page::{frame, page, state};
use super::rows::rows;
use crate::config::roles::CallerRole;
use crate::edge::access::AuthenticatedCaller;
use crate::edge::problem::Problem;
use crate::limits::HOME_ENTRIES;
use crate::routes::app::App;
use crate::time::{now, rfc3339};
use crate::view::pages::read;

/// The page of the log.
pub async fn home(
    State(app): State<App>,
    Extension(caller): Extension<AuthenticatedCaller>,
) -> Result<Response, Problem> {
    let log = &app.log;
    let published = log.sequencer.published();
    let head = published.as_deref().map(|published| &published.head);
    let statuses = log.witnessing.statuses();
    let witnesses = &statuses.witnesses;
    let newest = match caller.role >= CallerRole::Reader {
        true => Some(read(log, 0..u64::MAX, Order::NewestFirst, HOME_ENTRIES).await?.0),
        false => None,
    };
    let home = HomePage {
        size: log.readable_size().await?.get(),
        root: head.map(|head| head.root.to_string()),
        at: head.and_then(|head| rfc3339(head.at)),
        age_seconds: head.map(|head| now().saturating_sub(head.at)),
        url: log.identity.public_url.clone(),
        iss: log.identity.iss.clone(),
        checkpoint_key: log.identity.checkpoint_key.clone(),
        state: state(log).to_owned(),
        witnesses: (witnesses.len(), witnesses.iter().filter(|one| one.fresh).count()),
        newest: newest.map(|entries| rows(&entries)),
    };
    Ok(page(home.html(&frame(log))))
}
