//! Compares the tables with the members in the draft's CDDL.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const CDDL: &str = include_str!("../../../../../vectors/conversation/agent-conversation.cddl");

/// Members of a map by name: true if required, and the type as in the CDDL, without blanks.
type Members = BTreeMap<String, (bool, String)>;

/// The maps of the CDDL whose members have plain names, each with true if it is open.
fn maps_of_the_cddl() -> BTreeMap<String, (bool, Members)> {
    let mut maps = BTreeMap::new();
    let mut lines = CDDL.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_suffix(" = {") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
        let members = body.iter().filter_map(|line| member(line)).collect();
        maps.insert(name.to_owned(), (body.contains(&"* tstr => any"), members));
    }
    maps
}

fn member(line: &str) -> Option<(String, (bool, String))> {
    let line = line.split(" ;").next()?;
    let (name, is) = line.split_once(": ")?;
    let (required, name) = match name.strip_prefix("? ") {
        Some(name) => (false, name),
        None => (true, name),
    };
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    plain.then(|| (name.to_owned(), (required, squeeze(is))))
}

fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn cddl_of(is: Is) -> String {
    let choice = |names: &[&str]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join("/");
    squeeze(&match is {
        Is::Any => "any".to_owned(),
        Is::Text => "tstr".to_owned(),
        Is::Url => "tstr .regexp uri-regexp".to_owned(),
        Is::EntryId => "entry-id".to_owned(),
        Is::TraceFormat => "trace-format-id".to_owned(),
        Is::Unsigned => "uint".to_owned(),
        Is::Number => "number".to_owned(),
        Is::Bool => "bool".to_owned(),
        Is::Timestamp => "abstract-timestamp".to_owned(),
        Is::SessionId => "session-id".to_owned(),
        Is::EntryType(names) | Is::Contributor(names) => choice(names),
        Is::Texts => "[* tstr]".to_owned(),
        Is::OpenMap => "{ * tstr => any }".to_owned(),
        Is::Map(shape) => shape.name.to_owned(),
        Is::Maps(shape) => format!("[* {}]", shape.name),
        Is::Entries => "[* entry]".to_owned(),
    })
}

/// The shapes that are reachable from a record and from trace-metadata.
fn tables() -> BTreeMap<String, (bool, Members)> {
    let mut found = BTreeMap::new();
    let mut open: Vec<&'static Shape> = [&[&RECORD, &TRACE_METADATA][..], &ENTRIES[..]].concat();
    while let Some(shape) = open.pop() {
        let members = shape
            .members
            .iter()
            .map(|member| (member.name.to_owned(), (member.required, cddl_of(member.is))))
            .collect();
        if found.insert(shape.name.to_owned(), (shape.open, members)).is_none() {
            open.extend(shape.members.iter().filter_map(|member| match member.is {
                Is::Map(inner) | Is::Maps(inner) => Some(inner),
                _ => None,
            }));
        }
    }
    found
}

#[test]
fn the_tables_are_the_cddl_member_by_member() {
    let mut cddl = maps_of_the_cddl();
    for envelope in
        ["protected-header", "unprotected-header", "CWT_Claims", "Protected_Header", "Unprotected_Header"]
    {
        cddl.remove(envelope).unwrap_or_else(|| panic!("the CDDL has no {envelope}"));
    }
    let tables = tables();
    assert_eq!(
        tables.keys().collect::<BTreeSet<_>>(),
        cddl.keys().collect::<BTreeSet<_>>(),
        "the maps are not the same"
    );
    for (name, map) in &cddl {
        assert_eq!(&tables[name], map, "{name}");
    }
}

#[test]
fn an_entry_is_one_of_five_maps() {
    let choice =
        CDDL.split("\nentry = ").nth(1).and_then(|rest| rest.split("\nmessage-entry = ").next()).unwrap();
    let named: Vec<&str> = choice.split('/').map(str::trim).collect();
    assert_eq!(named, ENTRIES.map(|shape| shape.name));
}
