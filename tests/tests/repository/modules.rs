//! Arrows between the modules of one crate: in no folder do they form a circle.
//!
//! An arrow is a path in `use` or in code, read from the text. It is drawn between neighbours: from `a/x.rs` to
//! `b/y.rs` it goes from `a` to `b`. A module and the modules in its folder are one place, so between these there are
//! no arrows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::architecture::{sources, without_tests};
use crate::workspace::Workspace;

#[test]
fn modules_form_no_circles() {
    let members = Workspace::read().members;
    let found: Vec<String> = members
        .iter()
        .filter(|member| !member.is_test())
        .flat_map(|member| {
            let circles = circles(&modules(&member.folder.join("src")));
            circles
                .into_iter()
                .map(|(folder, circle)| format!("{} {folder}: {}", member.name, circle.join(", ")))
        })
        .collect();
    assert!(found.is_empty(), "circles of modules: {found:#?}");
}

#[test]
fn circles_are_found_among_neighbours_in_any_folder() {
    let crate_of = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
        files.iter().map(|(module, text)| ((*module).to_owned(), (*text).to_owned())).collect()
    };
    let tangled = crate_of(&[
        ("a", "use crate::b::Thing;\nmod x;"),
        ("a/x", "use super::Other;"),
        ("b", "fn f() -> crate::c::Value { todo!() }"),
        ("c", "use crate::{other::Thing, a::{x, y}};"),
        ("d/e", "use super::f;"),
        ("d/f", "use crate::d::{self, e::Value};"),
    ]);
    let expected = [
        ("".to_owned(), vec!["a".into(), "b".into(), "c".into()]),
        ("d".to_owned(), vec!["e".into(), "f".into()]),
    ];
    assert_eq!(circles(&tangled), BTreeMap::from(expected).into_iter().collect::<Vec<_>>());
    let layered = crate_of(&[
        ("a", "use crate::b::Thing; // crate::c"),
        ("b", "use super::c;"),
        ("c", "use std::fmt;"),
    ]);
    assert_eq!(circles(&layered), []);
}

/// Returns the text of every module of a crate without comments and tests, by its path: `edge/access`.
fn modules(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in sources(folder) {
        let path = file.strip_prefix(folder).unwrap().with_extension("");
        let path = path.to_str().unwrap();
        let module = path.strip_suffix("/mod").unwrap_or(path).to_owned();
        if !["lib", "main"].contains(&module.as_str()) {
            found.insert(module, without_tests(&fs::read_to_string(file).unwrap()));
        }
    }
    found
}

/// Returns the circles of a crate as pairs of a folder and the names of the modules in it.
fn circles(modules: &BTreeMap<String, String>) -> Vec<(String, Vec<String>)> {
    let mut arrows: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, text) in modules {
        for to in paths(from, text).iter().filter_map(|path| longest_module(path, modules)) {
            if let Some((folder, from, to)) = neighbours(from, &to) {
                arrows.entry(folder).or_default().entry(from).or_default().insert(to);
            }
        }
    }
    arrows
        .iter()
        .flat_map(|(folder, arrows)| knots(arrows).into_iter().map(|knot| (folder.clone(), knot)))
        .collect()
}

/// Returns the folder where two paths part and the names of both in it; nothing if one contains the other.
fn neighbours(from: &str, to: &str) -> Option<(String, String, String)> {
    let (from, to): (Vec<_>, Vec<_>) = (from.split('/').collect(), to.split('/').collect());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let (a, b) = (from.get(shared)?, to.get(shared)?);
    Some((from[..shared].join("/"), (*a).to_owned(), (*b).to_owned()))
}

/// Returns the module that holds the item of a path: its longest beginning that is one.
fn longest_module(path: &[String], modules: &BTreeMap<String, String>) -> Option<String> {
    (1..=path.len()).rev().map(|length| path[..length].join("/")).find(|path| modules.contains_key(path))
}

/// Returns the sets of modules that reach each other.
fn knots(arrows: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from.to_owned()];
        while let Some(next) = open.pop() {
            for to in arrows.get(&next).into_iter().flatten() {
                if reached.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        reached
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        arrows.keys().map(|from| (from, reached(from))).collect();
    let knot = |of: &String| {
        let mutual = reach[of].iter().filter(|to| reach.get(to).is_some_and(|back| back.contains(of)));
        mutual.cloned().collect::<Vec<_>>()
    };
    arrows.keys().map(knot).filter(|knot| knot.len() > 1).collect()
}

/// Returns the paths that begin with `crate` or `super`, as seen from the root of the crate.
fn paths(here: &str, text: &str) -> Vec<Vec<String>> {
    let text: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
    let mut found = Vec::new();
    for (keyword, depth) in [("crate::", 0), ("super::", 1)] {
        for (at, _) in text.match_indices(keyword) {
            let before = &text[..at];
            if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            let (depth, rest) = climb(depth, &text[at + keyword.len()..]);
            let mut base: Vec<String> = match depth {
                0 => Vec::new(),
                _ => here.split('/').map(str::to_owned).collect(),
            };
            base.truncate(base.len().saturating_sub(depth));
            branches(&base, rest, &mut found);
        }
    }
    found
}

/// Counts further `super::` at the beginning of a text.
fn climb(depth: usize, text: &str) -> (usize, &str) {
    match text.strip_prefix("super::") {
        Some(rest) if depth > 0 => climb(depth + 1, rest),
        _ => (depth, text),
    }
}

/// Adds every path of a tree such as `b::{c, d::{e, f}}` to a list; returns what follows the tree.
fn branches<'a>(base: &[String], text: &'a str, found: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = base.to_vec();
    let mut rest = text;
    loop {
        if let Some(mut inner) = rest.strip_prefix('{') {
            loop {
                inner = branches(&path, inner.trim_start(), found).trim_start();
                match inner.strip_prefix(',') {
                    Some(more) => inner = more,
                    None => return inner.strip_prefix('}').unwrap_or(inner),
                }
            }
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        path.push(rest[..end].to_owned());
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(more) => rest = more,
            None => break,
        }
    }
    found.push(path);
    // The new name of `a as b`.
    match rest.trim_start().strip_prefix("as ") {
        Some(renamed) => renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'),
        None => rest,
    }
}
