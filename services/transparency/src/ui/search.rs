//! `/ui/search`: lists of entries. The parameters are those of `/v1/entries`, but the newest entries come first.

use axum::extract::{Query, RawQuery, State};
use axum::response::Response;
use explorer::{SearchField, SearchPage};
use http::Uri;

use super::page::{frame, page, refusal};
use super::rows::rows;
use crate::edge::problem::Problem;
use crate::routes::app::App;
use crate::routes::entry_query::EntryQuery;
use crate::routes::paging::{wrong_page, wrong_page_query};
use crate::routes::search;

/// Entries on a page, unless the query names a limit.
const LIMIT: &str = "50";

/// Parameters that have a field in the form, with its label.
const FIELDS: [(&str, &str); 10] = [
    ("subject_prefix", "Subject begins with"),
    ("issuer", "Issuer"),
    ("session", "Session"),
    ("agent", "Agent"),
    ("content_type", "Content type"),
    ("verdict", "Verdict"),
    ("tool", "Tool"),
    ("payload_digest", "SHA-256 of the payload"),
    ("from_time", "From (2026-01-31T12:00:00Z)"),
    ("to_time", "Before"),
];

/// The page of search results. A refused search shows the form with the reason, with the status of the refusal.
pub async fn search(State(app): State<App>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let pairs = pairs(query.as_deref().unwrap_or_default())?;
    let query = query_of(&pairs);
    let found = match parsed(&query) {
        Ok(parsed) => search::page(&app, &parsed).await,
        Err(problem) => Err(problem),
    };
    let (found, next, refused) = match found {
        Ok((entries, next)) => (Ok(entries), next, None),
        Err(problem) if problem.status.is_client_error() => {
            (Err(problem.detail.into_owned()), None, Some(problem.status))
        }
        Err(problem) => return Err(problem),
    };
    let value = |name: &str| pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
    let field = |(name, label): (&'static str, &'static str)| SearchField {
        name,
        label,
        value: value(name).unwrap_or_default(),
    };
    let view = SearchPage {
        fields: FIELDS.map(field).into(),
        oldest_first: value("order").as_deref() == Some("oldest"),
        next: next.map(|next| format!("/ui/search?{}", with_order(&next))),
        indexed_to: found.as_ref().ok().and_then(|entries| entries.indexed_to),
        found: found.map(|entries| rows(&entries.entries)),
        json: format!("/v1/entries?{query}"),
    };
    let html = view.html(&frame(&app.log));
    Ok(match refused {
        None => page(html),
        Some(status) => refusal(status, html),
    })
}

/// The parameters of a query that have a value: a browser sends the empty fields of a form too.
fn pairs(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let Query(pairs): Query<Vec<(String, String)>> = parse(query)?;
    Ok(pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect())
}

/// The query of `/v1/entries`: the parameters, with the order and the limit of a page.
fn query_of(pairs: &[(String, String)]) -> String {
    let given = |name: &str| pairs.iter().any(|(given, _)| given == name);
    let defaults = [("order", "newest"), ("limit", LIMIT)].into_iter().filter(|(name, _)| !given(name));
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(defaults);
    let encoded = display::percent_encoded;
    pairs.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect::<Vec<_>>().join("&")
}

/// The query of the next page names no order if the oldest entries come first.
fn with_order(next: &str) -> String {
    if next.contains("order=newest") { next.to_owned() } else { format!("{next}&order=oldest") }
}

fn parsed(query: &str) -> Result<EntryQuery, Problem> {
    parse(query).map(|Query(parsed)| parsed)
}

fn parse<T: serde::de::DeserializeOwned>(query: &str) -> Result<Query<T>, Problem> {
    let uri = Uri::try_from(format!("/?{query}")).map_err(|_| wrong_page("the query is malformed".into()))?;
    Query::try_from_uri(&uri).map_err(wrong_page_query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_are_left_out_and_the_newest_entries_come_first() {
        let query = |given: &str| query_of(&pairs(given).unwrap());
        assert_eq!(query(""), "order=newest&limit=50");
        assert_eq!(
            query("issuer=&subject_prefix=a%2Fb&order=oldest"),
            "subject_prefix=a%2Fb&order=oldest&limit=50"
        );
        assert_eq!(with_order("limit=50&after=3"), "limit=50&after=3&order=oldest");
    }
}
