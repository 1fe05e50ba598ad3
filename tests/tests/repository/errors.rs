//! The page of error codes: the text of `tabellion help errors` with a heading for each code, and an address for each code in the
//! site, `errors/CODE`, which the `type` of a problem names.
//!
//! `UPDATE_ERRORS=1` writes both files.

use std::fs;

use black_box::cli::repository;

use crate::checked_in::must_be_checked_in;
use crate::site::anchors;

/// Environment variable with which the tests write both files.
const UPDATE: &str = "UPDATE_ERRORS";
/// Start of the table of book.toml with the addresses, which is its last one.
const REDIRECTS: &str = "[output.html.redirect]\n";
/// Start of a heading of a section, in the page.
const SECTION: &str = "\n## ";

#[test]
fn the_page_of_errors_has_the_text_of_the_help_topic() {
    let page = fs::read_to_string(repository("docs/errors.md")).unwrap();
    let (preface, _) = page.split_once(SECTION).unwrap();
    must_be_checked_in("docs/errors.md", &format!("{preface}\n{}", sections(&topic())), UPDATE);
}

#[test]
fn every_code_has_an_address_that_leads_to_its_heading() {
    let topic = topic();
    let codes: Vec<&str> = codes(&topic).collect();
    assert!(codes.len() > 400 && codes.contains(&"route-unknown"), "{codes:?}");
    let headings = anchors(&fs::read_to_string(repository("docs/errors.md")).unwrap());
    let without: Vec<_> = codes.iter().filter(|code| !headings.contains(**code)).collect();
    assert!(without.is_empty(), "docs/errors.md has no heading of {without:?}");

    let book = fs::read_to_string(repository("docs/book.toml")).unwrap();
    let (settings, _) = book.split_once(REDIRECTS).unwrap();
    let redirects: String = codes.iter().map(|code| redirect(code)).collect();
    must_be_checked_in("docs/book.toml", &format!("{settings}{REDIRECTS}{redirects}"), UPDATE);
}

/// The text of `tabellion help errors`.
fn topic() -> String {
    fs::read_to_string(repository("services/tabellion/src/topics/errors.txt")).unwrap()
}

/// Returns the text as Markdown, from its first section on.
fn sections(topic: &str) -> String {
    let first = topic.find("== ").unwrap();
    topic[first..].trim_end().split("\n\n").map(block).collect::<Vec<_>>().join("\n")
}

/// Returns a title of a section, or codes and what is said about them, as Markdown.
fn block(text: &str) -> String {
    if let Some(title) = text.strip_prefix("== ") {
        return format!("## {title}\n");
    }
    let (codes, about) = text.split_once('\n').unwrap();
    let headings: String = if is_code_list(codes) {
        codes.split(' ').map(|code| format!("### `{code}`\n\n")).collect()
    } else {
        format!("### {codes}\n\n")
    };
    let about = about.lines().map(|line| line.strip_prefix("  ").unwrap());
    format!("{headings}```text\n{}\n```\n", about.collect::<Vec<_>>().join("\n"))
}

/// Returns all codes of the topic.
fn codes(topic: &str) -> impl Iterator<Item = &str> {
    let about = topic.split("\n\n").filter_map(|block| block.split_once("\n  "));
    about.map(|(codes, _)| codes).filter(|codes| is_code_list(codes)).flat_map(|codes| codes.split(' '))
}

/// Whether the line lists codes; `(any other name)` does not.
fn is_code_list(line: &str) -> bool {
    line.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_ ".contains(c))
}

/// Returns the line of book.toml for a code. A folder with a page in it has an address without `.html` on every web server.
fn redirect(code: &str) -> String {
    format!("\"/errors/{code}/index.html\" = \"../../errors.html#{code}\"\n")
}
