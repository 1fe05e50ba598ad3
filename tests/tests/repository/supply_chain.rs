//! What we depend on, held against deny.toml: licences, bans and sources.
//!
//! `cargo deny check` says the same and more where it is installed; this needs no tool, no network
//! and no database of advisories, so it cannot be left out.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::workspace::{Workspace, root};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn every_dependency_has_a_licence_that_we_allow() {
    let allowed: BTreeSet<String> = strings(&rules()["licenses"]["allow"]);
    for package in Workspace::read().packages.iter().filter(|package| package.source.is_some()) {
        let licence = package.license.as_deref().unwrap_or("none");
        assert!(permits(licence, &allowed), "{} {} is under {licence}", package.name, package.version);
    }
}

#[test]
fn no_banned_crate_is_among_the_dependencies() {
    let rules = rules();
    let packages = Workspace::read().packages;
    for ban in rules["bans"]["deny"].as_array().unwrap() {
        let (name, reason) = (ban["crate"].as_str().unwrap(), ban["reason"].as_str().unwrap());
        assert!(packages.iter().all(|package| package.name != name), "{name} is banned: {reason}");
    }
}

#[test]
fn every_dependency_comes_from_crates_io_with_its_checksum() {
    let lock: toml::Table = fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    for package in lock["package"].as_array().unwrap() {
        let Some(source) = package.get("source") else { continue };
        assert_eq!(source.as_str(), Some(CRATES_IO), "{package}");
        assert!(package.get("checksum").is_some(), "{package}");
    }
}

/// `.cargo/config.toml` has cargo call it in place of rustc.
#[test]
fn an_optimized_build_names_no_folder_of_the_machine_that_built_it() {
    let folder = tempfile::tempdir().unwrap();
    let (home, built) = (folder.path().join("cargo"), folder.path().join("target/release/deps"));
    fs::create_dir_all(home.join("registry")).unwrap();
    let source = home.join("registry/main.rs");
    fs::write(&source, "fn main() { assert!(std::env::args().count() > 7, concat!(\"few\", file!())) }")
        .unwrap();
    let names_the_folder = |options: &[&str]| {
        let mut wrapped = Command::new(root().join("tools/rustc-wrapper"));
        wrapped.arg("rustc").args(options).arg("--out-dir").arg(&built).arg(&source);
        assert!(wrapped.env("CARGO_HOME", &home).current_dir(folder.path()).status().unwrap().success());
        let binary = fs::read(built.join("main")).unwrap();
        let name = folder.path().as_os_str().as_encoded_bytes();
        binary.windows(name.len()).any(|window| window == name)
    };
    assert!(names_the_folder(&[]), "an ordinary build does, for whoever debugs it");
    assert!(!names_the_folder(&["-C", "opt-level=3", "-C", "strip=symbols"]));
}

/// Features are joined over the workspace: one crate that turns one on changes the others.
#[test]
fn no_dependency_is_built_with_a_feature_that_changes_what_we_rely_on() {
    let workspace = Workspace::read();
    for (name, feature, harm) in [
        ("serde_json", "arbitrary_precision", "numbers are parsed otherwise"),
        ("serde_json", "preserve_order", "objects are compared and written otherwise"),
        ("libsqlite3-sys", "loadable_extension", "a database could load code"),
        ("sqlx-sqlite", "load-extension", "a database could load code"),
        ("rustls", "aws_lc_rs", "a second cryptography library in C"),
    ] {
        assert!(!workspace.features(name).contains(feature), "{name}/{feature} is on: {harm}");
    }
}

#[test]
fn licence_expressions_are_read_as_spdx_says() {
    let allowed =
        BTreeSet::from(["MIT".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned(), "Zlib".to_owned()]);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("MIT AND Zlib", true),
        ("(GPL-3.0 OR MIT) AND Zlib", true),
        ("(GPL-3.0 OR MIT) AND Unicode-3.0", false),
        ("GPL-3.0 AND Zlib OR MIT", true),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("Apache-2.0", false),
        ("none", false),
    ] {
        assert_eq!(permits(expression, &allowed), expected, "{expression}");
    }
}

fn rules() -> toml::Table {
    fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

fn strings(list: &toml::Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Whether an SPDX expression can be met by allowed licences alone. AND binds closer than OR; the
/// old form with a slash means OR.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let permitted = any(&mut words, allowed);
    assert!(words.next().is_none(), "{expression} is not an SPDX expression");
    permitted
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut permitted = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        permitted |= all(words, allowed);
    }
    permitted
}

fn all(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut permitted = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        permitted &= one(words, allowed);
    }
    permitted
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let permitted = any(words, allowed);
        assert_eq!(words.next(), Some(")"), "a bracket is closed");
        return permitted;
    }
    let mut licence = words.next().unwrap().to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", words.next().unwrap());
    }
    allowed.contains(&licence)
}
