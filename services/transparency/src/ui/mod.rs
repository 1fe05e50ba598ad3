//! The explorer: pages for people. Each module reads what one page shows, with the functions of the API's handlers, and the
//! crate `explorer` renders it. The pages need the same roles as the API (`edge/access.rs`).
//!
//! The page of the verifier that runs in a browser ([`verify`]) is static. It fetches the evidence that its address names
//! from the routes of the API and from [`bundles`].
//!
//! Not here: HTML (`explorer`), and errors, which the middleware renders (`edge/middleware.rs`).

mod alarms;
mod bundles;
mod checkpoints;
mod conflicts;
mod consistency;
mod delegations;
mod entry;
mod growth;
mod home;
mod issuers;
mod packing;
mod page;
mod payload;
mod policy;
mod previous_records;
mod proof;
mod rows;
mod search;
mod session;
mod status;
pub mod verify;

use axum::Router;
use axum::extract::State;
use axum::response::Redirect;
use axum::routing::get;

use crate::routes::app::App;

/// The routes of all pages.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/", get(to_first_page))
        .route("/ui", get(home::home))
        .route("/ui/", get(to_first_page))
        .route("/ui/style.css", get(page::style))
        .route("/ui/search", get(search::search))
        .route("/ui/entries/{entry_id}", get(entry::entry))
        .route("/ui/entries/{entry_id}/proof", get(proof::proof))
        .route("/ui/entries/{entry_id}/receipt", get(proof::receipt))
        .route("/ui/issuers/{iss}", get(issuers::issuer))
        .route("/ui/issuers/{iss}/chain", get(issuers::chain))
        .route("/ui/sessions", get(session::named))
        .route("/ui/sessions/{session}", get(session::session))
        .route("/ui/bundle", get(bundles::bundle))
        .route("/ui/checkpoints", get(checkpoints::checkpoints))
        .route("/ui/consistency", get(consistency::consistency))
        .route("/ui/policy", get(policy::in_force))
        .route("/ui/policy/{revision}", get(policy::revision))
        .route("/ui/growth", get(growth::growth))
        .route("/ui/status", get(status::status))
        .route("/ui/alarms", get(alarms::alarms))
}

async fn to_first_page(State(app): State<App>) -> Redirect {
    Redirect::to(&format!("{}/ui", app.edge.public_path))
}
