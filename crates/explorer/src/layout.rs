//! What all pages have in common: head, navigation, banner, and small parts.

use display::percent_encoded;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::text::{brief, line};

/// The stylesheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// Addresses and names of the pages in the navigation.
const NAVIGATION: [(&str, &str); 8] = [
    ("/ui", "Log"),
    ("/ui/search", "Search"),
    ("/ui/checkpoints", "Checkpoints"),
    ("/ui/policy", "Policy"),
    ("/ui/growth", "Growth"),
    ("/ui/status", "Status"),
    ("/ui/verify", "Verify"),
    ("/ui/alarms", "Alarms"),
];

/// What surrounds the content of a page.
#[derive(Clone, Debug, Default)]
pub struct PageFrame {
    /// The log's name (origin).
    pub log: String,
    /// Path at which readers find the service, without a slash at its end: `/log` below `https://example.org/log`, and
    /// empty at the root. It comes before the address of every link and form; views have addresses without it.
    pub path: String,
    /// Text of the banner while the log contradicts itself or registration stopped.
    pub alarm: Option<String>,
}

impl PageFrame {
    /// A whole page. `here` is its address in the navigation, if it has one.
    pub(crate) fn html(&self, title: &str, here: &str, content: &Markup) -> String {
        let icon = html! { link rel="icon" href="data:,"; };
        let body = html! {
            a.skip href="#main" { "Skip to the content" }
            header {
                p.log { "Transparency log " strong { (line(&self.log)) } }
                nav aria-label="Pages" {
                    ul {
                        @for (address, name) in NAVIGATION {
                            li {
                                @if address == here {
                                    a href=(address) aria-current="page" { (name) }
                                } @else {
                                    a href=(address) { (name) }
                                }
                            }
                        }
                    }
                }
            }
            @if let Some(alarm) = &self.alarm {
                div.alarm role="alert" {
                    strong { "Alarm: " } (line(alarm)) " " a href="/ui/alarms" { "What was found" }
                }
            }
            main id="main" {
                h1 { (line(title)) }
                (content)
            }
            footer {
                p {
                    "These pages show the service's own words. Verify them offline with "
                    code { "tabellion verify" } ". " a href="/docs/" { "API" }
                }
            }
        };
        let title = format!("{} · {}", line(title), line(&self.log));
        below(&self.path, document(&title, "/ui/style.css", &icon, &body))
    }
}

/// The page with a path before each address in it. A text on a page contains no `"`, which is `&quot;` there, so what is
/// found is the beginning of an attribute.
fn below(path: &str, page: String) -> String {
    if path.is_empty() {
        return page;
    }
    let path = html! { (path) }.into_string();
    ["href", "action"].iter().fold(page, |page, attribute| {
        page.replace(&format!(" {attribute}=\"/"), &format!(" {attribute}=\"{path}/"))
    })
}

/// A page outside a [`PageFrame`]. Its body is HTML that is part of the program, so it needs no escaping.
pub fn static_page(title: &str, stylesheet: &str, body: &'static str) -> String {
    document(title, stylesheet, &html! {}, &html! { (PreEscaped(body)) })
}

/// A page with its head, to which `more` is added.
fn document(title: &str, stylesheet: &str, more: &Markup, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href=(stylesheet);
                (more)
            }
            body { (body) }
        }
    }
    .into_string()
}

/// A list of names and values.
pub fn facts(rows: &[(&str, Markup)]) -> Markup {
    html! {
        dl {
            @for (name, value) in rows {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// A hash, an identifier or another text without spaces.
pub fn code(text: &str) -> Markup {
    html! { code { (line(text)) } }
}

/// A time (RFC 3339), or that it is unknown.
pub fn time(at: Option<&str>) -> Markup {
    match at {
        Some(at) => html! { time datetime=(line(at)) { (line(at)) } },
        None => html! { span.note { "time unknown" } },
    }
}

/// A link to the page of an entry.
pub fn entry_link(id: &str, text: &str) -> Markup {
    html! { a href={ "/ui/entries/" (percent_encoded(id)) } { (brief(text)) } }
}

/// A link to the page that fetches what these parameters name, such as the statement of an `entry` with its receipt, and
/// verifies it in the browser.
pub fn verify_link(parameters: &[(&str, &str)]) -> Markup {
    html! { a href={ "/ui/verify?" (query(parameters)) } { "Verify in this browser" } }
}

/// A link to the evidence bundle of what these parameters name, as a file of this name.
pub fn bundle_link(parameters: &[(&str, &str)], file: &str) -> Markup {
    html! { a href={ "/ui/bundle?" (query(parameters)) } download=(file) { "evidence bundle" } }
}

fn query(parameters: &[(&str, &str)]) -> String {
    let pairs = parameters.iter().map(|(name, value)| format!("{name}={}", percent_encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// A link to the page of an issuer.
pub fn issuer_link(issuer: &str) -> Markup {
    html! { a href={ "/ui/issuers/" (percent_encoded(issuer)) } { (brief(issuer)) } }
}

/// A link to the page of a session.
pub fn session_link(session: &str) -> Markup {
    html! { a href=(session_address(session, None)) { (brief(session)) } }
}

/// The address of the page of a session, with a query.
///
/// A name that URL parsers do not keep as a part of a path is in the query: they resolve one or two dots, also
/// percent-encoded (WHATWG URL, double-dot path segment).
pub fn session_address(session: &str, query: Option<&str>) -> String {
    let name = percent_encoded(session);
    let (address, separator) = match session {
        "" | "." | ".." => (format!("/ui/sessions?session={name}"), '&'),
        _ => (format!("/ui/sessions/{name}"), '?'),
    };
    match query {
        Some(query) => format!("{address}{separator}{query}"),
        None => address,
    }
}

/// The link to the next page of a list, if there is one.
pub fn next_link(address: Option<&str>, name: &str) -> Markup {
    html! {
        @if let Some(address) = address {
            p { a.next rel="next" href=(address) { (name) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_a_path_every_address_begins_with_it_and_texts_stay() {
        let text = "read <a href=\"/ui\"> or action=\"/ui\"";
        let content = html! {
            p { (text) }
            (entry_link("ab", text))
            (next_link(Some("/ui/search?after=3"), "More"))
            form action="/ui/search" {}
        };
        let frame = |path: &str| PageFrame { path: path.to_owned(), ..PageFrame::default() };
        let at_root = frame("").html("Page", "/ui", &content);
        let html = frame("/a&b/log").html("Page", "/ui", &content);
        let count = |html: &str, address: &str| html.matches(address).count();
        assert_eq!(count(&html, "href=\"/a&amp;b/log/ui"), count(&at_root, "href=\"/ui"));
        for (attribute, address) in [("href", "/docs/"), ("href", "/ui/entries/ab"), ("action", "/ui/search")]
        {
            assert!(html.contains(&format!(" {attribute}=\"/a&amp;b/log{address}")), "{address}: {html}");
            assert!(!html.contains(&format!(" {attribute}=\"{address}")), "{address}: {html}");
        }
        let escaped = "read &lt;a href=&quot;/ui&quot;&gt; or action=&quot;/ui&quot;";
        assert_eq!(count(&html, escaped), 2, "{html}");
        assert!(html.contains("href=\"#main\"") && html.contains("href=\"data:,\""), "{html}");
    }

    #[test]
    fn a_session_has_an_address_that_url_parsers_leave_as_it_is() {
        let address =
            |session: &str| [session_address(session, None), session_address(session, Some("after=3"))];
        assert_eq!(address("a/..b"), ["/ui/sessions/a%2F..b", "/ui/sessions/a%2F..b?after=3"]);
        for dots in [".", ".."] {
            let in_query = format!("/ui/sessions?session={dots}");
            assert_eq!(address(dots), [in_query.clone(), format!("{in_query}&after=3")]);
        }
    }
}
