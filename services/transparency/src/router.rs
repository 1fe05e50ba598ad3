//! The router of the public listener, with its OpenAPI description.

use axum::Router;
use serving::description;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::edge::below_path::{first_part, served_below};
use crate::edge::middleware;
use crate::routes::app::App;
use crate::routes::description::{ServiceDescription, published};
use crate::routes::{
    agents, batch, checkpoints, configuration, entries, entry, equivocations, erasures, evaluate, evidence,
    issuers, keys, links, pages, payloads, policy, proof, search, sessions, statements, stream_list, streams,
    tail, tlog, witnesses,
};
use crate::ui;

/// All routes with their OpenAPI description, from one list.
fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(ServiceDescription::openapi())
        .routes(routes!(entries::register))
        .routes(routes!(entries::resolve))
        .routes(routes!(batch::register_batch))
        .routes(routes!(keys::all_keys))
        .routes(routes!(keys::one_key))
        .routes(routes!(search::list))
        .routes(routes!(tail::stream))
        .routes(routes!(entry::entry))
        .routes(routes!(links::links))
        .routes(routes!(issuers::issuer))
        .routes(routes!(issuers::chain))
        .routes(routes!(agents::summary))
        .routes(routes!(statements::statement))
        .routes(routes!(statements::transparent))
        .routes(routes!(payloads::payload))
        .routes(routes!(evidence::evidence))
        .routes(routes!(evidence::evidence_page))
        .routes(routes!(equivocations::equivocations))
        .routes(routes!(sessions::session))
        .routes(routes!(stream_list::streams))
        .routes(routes!(streams::stream))
        .routes(routes!(erasures::list))
        .routes(routes!(erasures::one))
        .routes(routes!(policy::policy))
        .routes(routes!(policy::revision))
        .routes(routes!(evaluate::evaluate))
        .routes(routes!(policy::limits))
        .routes(routes!(proof::inclusion))
        .routes(routes!(proof::consistency))
        .routes(routes!(tlog::checkpoint))
        .routes(routes!(tlog::tile))
        .routes(routes!(checkpoints::checkpoints))
        .routes(routes!(checkpoints::checkpoint))
        .routes(routes!(witnesses::witnesses))
        .routes(routes!(configuration::scitt_configuration))
        .routes(routes!(configuration::transparency_configuration))
}

/// The OpenAPI description as checked in (`openapi.json`): pretty JSON, deterministic.
pub fn openapi_json() -> String {
    description::text(&published(described().into_openapi()))
}

/// First parts of addresses that the OpenAPI description leaves out.
const UNDESCRIBED: [&str; 3] = ["ui", "docs", "openapi.json"];

/// The public listener's routes inside the middleware, also below the path of `public_url`.
pub fn router(app: App) -> Router {
    let edge = app.edge.clone();
    let (routes, collected) = described().split_for_parts();
    let routes = routes.merge(ui::routes()).with_state(app);
    let pages = pages::routes(&published(collected.clone())).merge(ui::verify::routes());
    let enclosed = middleware::enclose(routes.merge(pages), edge.clone());
    let described = collected.paths.paths.keys().map(|address| first_part(address));
    served_below(&edge.public_path, &described.chain(UNDESCRIBED).collect::<Vec<_>>(), enclosed)
}
