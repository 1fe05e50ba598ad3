//! Lists of entries, and the search form. The query is the URL.

use display::counted;
use maud::html;

use crate::layout::{PageFrame, next_link};
use crate::rows::{self, EntryRow};
use crate::text::line;

/// A field of the search form.
#[derive(Clone, Debug, Default)]
pub struct SearchField {
    /// Name of the query parameter.
    pub name: &'static str,
    /// Label of the field.
    pub label: &'static str,
    /// The value in this search. The form sends it again, so the field has it as it is, with invisible characters.
    pub value: String,
}

/// A page of search results.
#[derive(Clone, Debug)]
pub struct SearchPage {
    /// The fields of the form.
    pub fields: Vec<SearchField>,
    /// Whether the oldest entries come first.
    pub oldest_first: bool,
    /// The entries that were found, or why the search was refused.
    pub found: Result<Vec<EntryRow>, String>,
    /// Address of the next page.
    pub next: Option<String>,
    /// Size of the tree that was searched, if it is not the whole one.
    pub indexed_to: Option<u64>,
    /// Address of the same search as JSON.
    pub json: String,
}

impl SearchPage {
    /// Renders the page.
    pub fn html(&self, frame: &PageFrame) -> String {
        let content = html! {
            form.search method="get" action="/ui/search" role="search" {
                @for field in &self.fields {
                    label {
                        (field.label)
                        input type="text" name=(field.name) value=(field.value) autocomplete="off"
                            spellcheck="false";
                    }
                }
                label {
                    "Order"
                    select name="order" {
                        option value="newest" selected[!self.oldest_first] { "newest first" }
                        option value="oldest" selected[self.oldest_first] { "oldest first" }
                    }
                }
                div { button type="submit" { "Search" } }
            }
            h2 { "Entries" }
            @match &self.found {
                Err(why) => { p.bad role="alert" { (line(why)) } },
                Ok(rows) if rows.is_empty() => { p.note { "No entry matches." } },
                Ok(rows) => { (rows::list(rows)) },
            }
            (next_link(self.next.as_deref(), "More entries"))
            p.note {
                @if let Some(size) = self.indexed_to {
                    "Searched: the first " (counted(size, "entry", "entries")) " of the log. "
                }
                "The service's list is not a proof that no entry is missing. "
                a href=(self.json) { "The same as JSON" }
            }
        };
        frame.html("Search", "/ui/search", &content)
    }
}
