//! The documentation as a site (mdBook): every page is in its table of contents, and every link, anchor and included file of
//! every document exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use black_box::cli::repository;

/// Documents outside of `docs/`.
const OTHERS: &[&str] = &["README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md"];
/// The table of contents, which is not a page.
const CONTENTS: &str = "SUMMARY.md";

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let docs = repository("docs");
    let contents = fs::read_to_string(docs.join(CONTENTS)).unwrap();
    let listed: Vec<&str> = links(&contents).collect();
    let unique: BTreeSet<PathBuf> = listed.iter().map(|page| docs.join(page)).collect();
    assert_eq!(listed.len(), unique.len(), "a page is listed twice");
    let pages: BTreeSet<PathBuf> =
        pages(&docs).into_iter().filter(|page| !page.ends_with(CONTENTS)).collect();
    assert!(pages.len() > 40, "{pages:?}");
    assert_eq!(pages, unique);
}

#[test]
fn every_link_anchor_and_included_file_of_the_documents_exists() {
    let mut documents: Vec<PathBuf> = OTHERS.iter().map(|name| repository(name)).collect();
    documents.extend(pages(&repository("docs")));
    let missing: Vec<String> = documents.iter().flat_map(|document| missing(document)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn anchors_are_made_from_headings_as_renderers_make_them() {
    let page =
        "# Two hosts, and the pin\n## `tabellion verify`\n```sh\n# no heading\n```\n## Faults\n## Faults\n";
    let expected = ["faults", "faults-1", "tabellion-verify", "two-hosts-and-the-pin"];
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), expected);
}

/// Returns what a document links to or includes, and is not there.
fn missing(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap();
    let folder = document.parent().unwrap();
    let mut missing = Vec::new();
    for link in links(&text).filter(|link| !link.contains("://")) {
        let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
        let target = if file.is_empty() { document.to_owned() } else { folder.join(file) };
        let exists = match anchor {
            None => target.exists(),
            Some(anchor) => fs::read_to_string(&target).is_ok_and(|page| anchors(&page).contains(anchor)),
        };
        if !exists {
            missing.push(format!("{} links to {link}", document.display()));
        }
    }
    let included = text.split("{{#include ").skip(1).filter_map(|rest| rest.split("}}").next());
    missing.extend(
        included
            .filter(|file| !folder.join(file).is_file())
            .map(|file| format!("{} includes {file}", document.display())),
    );
    missing
}

/// Returns the targets of the links of a page, without those in code blocks.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let texts = page.split("```").step_by(2);
    texts.flat_map(|text| text.split("](").skip(1).filter_map(|rest| rest.split(')').next()))
}

/// Returns the anchors of the headings of a page.
pub fn anchors(page: &str) -> BTreeSet<String> {
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for text in page.split("```").step_by(2) {
        for heading in text.lines().filter(|line| line.starts_with('#')) {
            let words = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let number = uses.entry(anchor.clone()).or_default();
            anchors.insert(if *number == 0 { anchor } else { format!("{anchor}-{number}") });
            *number += 1;
        }
    }
    anchors
}

/// Returns the pages of a folder and of the folders in it.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}
