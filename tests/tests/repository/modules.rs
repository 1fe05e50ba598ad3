//! Arrows between the modules of one crate: in no folder do they form a circle.
//!
//! An arrow is a path in `use` or in code, read from the text. It is drawn between neighbours: from `a/x.rs` to
//! `b/y.rs` it goes from `a` to `b`. A path through a re-export, such as `crate::Name`, leads to the module that defines
//! the item. A module and the modules in its folder are one place, so between these there are no arrows, and neither to
//! the root of the crate.

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
    let hidden = crate_of(&[
        ("", "mod a;\nmod b;\npub use a::A;\npub(crate) use b::{other, B as Renamed};\npub use c::*;"),
        ("a", "use crate::Renamed;"),
        ("b", "use crate::A;"),
        ("c", "pub struct C;\nuse crate::d::D;"),
        ("d", "pub struct D(crate::C);"),
        ("e", "mod f;\nmod g;\nuse g::G;\npub use f::F;"),
        ("e/f", "use super::G;"),
        ("e/g", "use crate::e::{self, F};"),
        ("h", "use crate::A;\nuse super::C;"),
    ]);
    let expected = [
        ("".to_owned(), vec!["a".to_owned(), "b".to_owned()]),
        ("".to_owned(), vec!["c".to_owned(), "d".to_owned()]),
        ("e".to_owned(), vec!["f".to_owned(), "g".to_owned()]),
    ];
    assert_eq!(circles(&hidden), expected);
}

/// Returns the text of every module of a crate without comments and tests, by its path: `edge/access`. The root of the
/// crate is the empty path.
fn modules(folder: &Path) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for file in sources(folder) {
        let path = file.strip_prefix(folder).unwrap().with_extension("");
        let path = path.to_str().unwrap();
        let module = match path {
            "lib" | "main" => "",
            path => path.strip_suffix("/mod").unwrap_or(path),
        };
        *found.entry(module.to_owned()).or_default() += &without_tests(&fs::read_to_string(file).unwrap());
    }
    found
}

/// Returns the circles of a crate as pairs of a folder and the names of the modules in it.
fn circles(modules: &BTreeMap<String, String>) -> Vec<(String, Vec<String>)> {
    let modules: BTreeMap<String, String> =
        modules.iter().map(|(module, text)| (module.clone(), without_comments(text))).collect();
    let imports = Imports::of(&modules);
    let mut arrows: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, text) in modules.iter().filter(|(module, _)| !module.is_empty()) {
        let items = paths(from, text).into_iter().map(|path| imports.resolve(path));
        for to in items.map(|path| longest_module(&path, &modules)).filter(|to| !to.is_empty()) {
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

/// The names that modules import with `use`, so that a path through a re-export leads to the module of its item.
struct Imports<'m> {
    modules: &'m BTreeMap<String, String>,
    /// The item's path, by the module that imports it and the name in there.
    named: BTreeMap<(String, String), Vec<String>>,
    /// Modules of which everything is imported, by the module that imports it.
    globs: BTreeMap<String, Vec<String>>,
}

impl<'m> Imports<'m> {
    fn of(modules: &'m BTreeMap<String, String>) -> Self {
        let mut imports = Self { modules, named: BTreeMap::new(), globs: BTreeMap::new() };
        for (module, text) in modules {
            for Import { path, name } in declarations(text) {
                let Some(path) = imports.path_from_root(module, path) else { continue };
                match name.as_str() {
                    "*" => imports.globs.entry(module.clone()).or_default().push(path.join("/")),
                    _ => drop(imports.named.insert((module.clone(), name), path)),
                }
            }
        }
        imports
    }

    /// Turns the path of a `use` in a module into one from the root of the crate; `None` for another crate's.
    fn path_from_root(&self, module: &str, path: Vec<String>) -> Option<Vec<String>> {
        let here: Vec<String> =
            module.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let up = path.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match path.first()?.as_str() {
            "crate" => (&here[..0], &path[1..]),
            "self" => (&here[..], &path[1..]),
            "super" => (&here[..here.len().checked_sub(up)?], &path[up..]),
            name => {
                let child = here.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("/");
                self.modules.contains_key(&child).then_some((&here[..], &path[..]))?
            }
        };
        Some([base, rest].concat())
    }

    /// Follows a path through the modules that only import its item.
    fn resolve(&self, mut path: Vec<String>) -> Vec<String> {
        const MOST_IMPORTS: usize = 8;
        for _ in 0..MOST_IMPORTS {
            let module = longest_module(&path, self.modules);
            let depth = module.split('/').filter(|name| !name.is_empty()).count();
            let Some(name) = path.get(depth) else { break };
            let Some(item) = self.item(&module, name) else { break };
            path = [&item[..], &path[depth + 1..]].concat();
        }
        path
    }

    fn item(&self, module: &str, name: &str) -> Option<Vec<String>> {
        let named = self.named.get(&(module.to_owned(), name.to_owned())).cloned();
        let has = |globbed: &&String| {
            let text = self.modules.get(*globbed);
            text.is_some_and(|text| defines(text, name))
        };
        let globbed = || {
            let found = self.globs.get(module)?.iter().find(has)?;
            Some(found.split('/').chain([name]).map(str::to_owned).collect())
        };
        named.or_else(globbed)
    }
}

/// Returns whether a module defines an item of this name.
fn defines(text: &str, name: &str) -> bool {
    ["struct", "enum", "fn", "trait", "type", "const", "static"].iter().any(|kind| {
        text.match_indices(&format!("{kind} {name}")).any(|(at, found)| {
            !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    })
}

/// Returns the imports of all `use` declarations of a module.
fn declarations(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with("pub") {
            branches(&[], &text[at + "use ".len()..], &mut found);
        }
    }
    found
}

/// Returns the folder where two paths part and the names of both in it; nothing if one contains the other.
fn neighbours(from: &str, to: &str) -> Option<(String, String, String)> {
    let (from, to): (Vec<_>, Vec<_>) = (from.split('/').collect(), to.split('/').collect());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let (a, b) = (from.get(shared)?, to.get(shared)?);
    Some((from[..shared].join("/"), (*a).to_owned(), (*b).to_owned()))
}

/// Returns the module that holds the item of a path: its longest beginning that is one, or the root.
fn longest_module(path: &[String], modules: &BTreeMap<String, String>) -> String {
    let beginnings = (1..=path.len()).rev().map(|length| path[..length].join("/"));
    beginnings.into_iter().find(|path| modules.contains_key(path)).unwrap_or_default()
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

/// Returns a text without its comments.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Returns the paths that begin with `crate` or `super`, as seen from the root of the crate.
fn paths(here: &str, text: &str) -> Vec<Vec<String>> {
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
    found.into_iter().map(|import| import.path).collect()
}

/// Counts further `super::` at the beginning of a text.
fn climb(depth: usize, text: &str) -> (usize, &str) {
    match text.strip_prefix("super::") {
        Some(rest) if depth > 0 => climb(depth + 1, rest),
        _ => (depth, text),
    }
}

/// A path of a `use`, and the name that it gets.
struct Import {
    path: Vec<String>,
    /// `*` for everything in the path.
    name: String,
}

/// Adds every path of a tree such as `b::{c, d::{e, f as g}}` to a list; returns what follows the tree.
fn branches<'a>(base: &[String], text: &'a str, found: &mut Vec<Import>) -> &'a str {
    let mut path = base.to_vec();
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix('*') {
            found.push(Import { path, name: "*".to_owned() });
            return after;
        }
        if let Some(mut inner) = rest.strip_prefix('{') {
            loop {
                inner = branches(&path, inner.trim_start(), found).trim_start();
                match inner.strip_prefix(',') {
                    Some(more) => inner = more,
                    None => return inner.strip_prefix('}').unwrap_or(inner),
                }
            }
        }
        let (name, after) = word(rest);
        path.push(name.to_owned());
        rest = after;
        match rest.strip_prefix("::") {
            Some(more) => rest = more,
            None => break,
        }
    }
    let (renamed, rest) = match rest.trim_start().strip_prefix("as ") {
        Some(renamed) => word(renamed),
        None => ("", rest),
    };
    // `self` in braces is the module before them.
    path.pop_if(|name| name == "self");
    let name = if renamed.is_empty() { path.last().cloned().unwrap_or_default() } else { renamed.to_owned() };
    found.push(Import { path, name });
    rest
}

/// Splits a text after its first word.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()))
}
