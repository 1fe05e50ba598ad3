//! The documentation as a site, built by mdBook as it is released.

use std::fs;
use std::path::Path;
use std::process::Command;

use black_box::cli::{Folder, repository};
use black_box::deployment_tool;

#[test]
fn mdbook_makes_a_site_of_all_pages_without_a_warning() {
    let folder = Folder::new();
    let site = folder.path("site");
    let mut build = Command::new(deployment_tool("venv/bin/mdbook"));
    build.args(["build", "--dest-dir"]).arg(&site).arg(repository("docs")).env("MDBOOK_LOG", "warn");
    let built = build.output().unwrap();
    assert!(built.status.success());
    assert_eq!(String::from_utf8_lossy(&built.stderr), "", "warnings of mdBook");
    for page in listed_pages() {
        let made = site.join(page.replace("README", "index")).with_extension("html");
        let text = fs::read_to_string(&made).unwrap_or_else(|why| panic!("{}: {why}", made.display()));
        assert!(text.contains("<main>"), "{page} has no text");
    }
    assert!(fs::read_to_string(site.join("index.html")).unwrap().contains("Tabellion"));
    // The address that the `type` of a problem names.
    let address = fs::read_to_string(site.join("errors/route-unknown/index.html")).unwrap();
    assert!(address.contains("../../errors.html#route-unknown"), "{address}");
    let errors = fs::read_to_string(site.join("errors.html")).unwrap();
    assert!(errors.contains("id=\"route-unknown\""), "the heading has another anchor");
}

/// The pages that the table of contents lists, relative to `docs/`.
fn listed_pages() -> Vec<String> {
    let contents = fs::read_to_string(repository("docs/SUMMARY.md")).unwrap();
    let links = contents.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let pages: Vec<String> =
        links.filter(|link| Path::new(link).extension().is_some()).map(str::to_owned).collect();
    assert!(pages.len() > 40, "{pages:?}");
    pages
}
