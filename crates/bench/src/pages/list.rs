//! The pages that are measured: every kind of list at its beginning, in its middle and at its end, and single entries.

use anyhow::Context;
use url::form_urlencoded::byte_serialize;

use crate::existing::GrownEntries;
use crate::limits::{LISTED_ENTRIES, PAGE_ROWS};
use crate::statements::{ISS, ListedStatements, sign_all, subject};

/// A page of the explorer.
pub(super) struct Page {
    /// Its name in reports.
    pub(super) name: String,
    /// Its path and query.
    pub(super) path: String,
}

impl Page {
    fn new(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self { name: name.into(), path: path.into() }
    }
}

/// Returns the pages of a log that had `leaves` leaves before the listed statements were registered.
pub(super) fn pages(
    grown: &GrownEntries,
    listed: &ListedStatements,
    leaves: u64,
) -> anyhow::Result<Vec<Page>> {
    let (middle, end) = (leaves / 2, leaves + LISTED_ENTRIES);
    let mut pages = vec![Page::new("start", "/ui")];
    pages.extend(searches("search", "", middle));
    pages.extend(searches("search, issuer", &format!("issuer={}", encoded(ISS)), middle));
    pages.extend(searches(
        "search, content type",
        &format!("content_type={}", encoded(&grown.content_type)),
        middle,
    ));
    let agent = format!("agent={}", encoded(&listed.agent));
    pages.extend(searches("search, agent", &agent, end + LISTED_ENTRIES / 2));
    pages.push(Page::new(
        "search, beginning of a subject",
        format!("/ui/search?subject_prefix={}", encoded(&prefix(grown))),
    ));
    pages.push(Page::new("issuer", format!("/ui/issuers/{}", encoded(ISS))));
    pages.extend(session(&listed.session, leaves));
    let (verifier, agent) = (encoded(&listed.verifier), encoded(&listed.agent));
    pages.push(Page::new("chain of receipts", format!("/ui/issuers/{verifier}/chain?sub={agent}")));
    pages.extend(checkpoints(end));
    pages.push(Page::new("consistency", format!("/ui/consistency?first={middle}&second={end}")));
    for name in ["policy", "growth", "status", "alarms"] {
        pages.push(Page::new(name, format!("/ui/{name}")));
    }
    for (name, number) in [("newest", grown.entries - 1), ("middle", grown.entries / 2), ("oldest", 0)] {
        let path = format!("/ui/entries/{}", digest(grown, number)?);
        pages.push(Page::new(format!("proof, {name}"), format!("{path}/proof")));
        pages.push(Page::new(format!("entry, {name}"), path));
    }
    Ok(pages)
}

/// The newest, middle and oldest page of a search.
fn searches(name: &str, filter: &str, middle: u64) -> [Page; 3] {
    let page = |place: &str, position: &str| {
        let query: Vec<&str> = [filter, position].into_iter().filter(|part| !part.is_empty()).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        Page::new(format!("{name}, {place}"), format!("/ui/search{query}"))
    };
    [page("newest", ""), page("middle", &format!("before={middle}")), page("oldest", "order=oldest")]
}

/// The first, middle and last page of the session, whose records begin at a leaf.
fn session(session: &str, first: u64) -> [Page; 3] {
    let path = format!("/ui/sessions/{}?limit={PAGE_ROWS}", encoded(session));
    let after = |rows: u64| format!("{path}&after={}", first + rows - 1);
    [
        Page::new("session, first", path.clone()),
        Page::new("session, middle", after(PAGE_ROWS)),
        Page::new("session, last", after(LISTED_ENTRIES - PAGE_ROWS)),
    ]
}

/// The newest checkpoints, those in the middle of the registrations one by one, and the oldest.
fn checkpoints(middle: u64) -> [Page; 3] {
    let before = |size: u64| format!("/ui/checkpoints?before={size}");
    [
        Page::new("checkpoints, newest", "/ui/checkpoints"),
        Page::new("checkpoints, middle", before(middle)),
        Page::new("checkpoints, oldest", before(PAGE_ROWS)),
    ]
}

/// The beginning of the subjects of ten entries in the middle of the log.
fn prefix(grown: &GrownEntries) -> String {
    let mut prefix = subject(grown.entries / 2);
    prefix.pop();
    prefix
}

/// Returns the entry ID of the statement with this number.
fn digest(grown: &GrownEntries, number: u64) -> anyhow::Result<String> {
    let statements = sign_all(&grown.content_type, number..number + 1, grown.bytes)?;
    Ok(statements.first().context("a log without entries")?.digest().to_string())
}

fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::numbers::Numbers;
    use crate::statements::OPAQUE;

    #[test]
    fn every_page_has_its_own_name_and_path() {
        let grown = GrownEntries { entries: 1000, content_type: OPAQUE.to_owned(), bytes: 512 };
        let listed = ListedStatements::sign(&Numbers::unused()).unwrap();
        let pages = pages(&grown, &listed, 1001).unwrap();
        let names: BTreeSet<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        let paths: BTreeSet<&str> = pages.iter().map(|page| page.path.as_str()).collect();
        assert_eq!((names.len(), paths.len()), (pages.len(), pages.len()));
        let path = |name: &str| &pages.iter().find(|page| page.name == name).unwrap().path;
        assert_eq!(path("search, newest"), "/ui/search");
        assert_eq!(
            path("search, issuer, middle"),
            "/ui/search?issuer=https%3A%2F%2Fbench.example&before=500"
        );
        assert!(path("session, middle").ends_with("?limit=50&after=1050"), "{}", path("session, middle"));
    }
}
