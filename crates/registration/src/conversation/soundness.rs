//! Checks beyond the CDDL: step 9 of the registration policy.

use std::collections::HashSet;

use jose::members::quote;

use super::entries;
use super::node::{Node, Path, Step};
use super::rule::ConversationRule as Rule;
use crate::violation::Violation;

/// Checks a record that the walk over the CDDL has accepted.
pub(super) fn check(record: &Node<'_>) -> Result<(), Violation> {
    unique_ids(record)?;
    let Some(attribution) = record.get("file-attribution") else { return Ok(()) };
    let mut path = Path::default();
    path.enter(Step::member("file-attribution"));
    each(attribution, "files", &mut path, |file, path| {
        check_path(file, path)?;
        each(file, "conversations", path, |conversation, path| {
            each(conversation, "ranges", path, check_range)
        })
    })
}

fn unique_ids(record: &Node<'_>) -> Result<(), Violation> {
    let mut seen = HashSet::new();
    let mut twice = None;
    entries::each(record, |path, entry| {
        if let Some(id) = entry.text("id")
            && !seen.insert(id)
            && twice.is_none()
        {
            let detail = format!("a second entry with the id {}", quote(id));
            twice = Some(Rule::EntryIdUnique.in_payload(path.pointer_to("id"), detail));
        }
    });
    twice.map_or(Ok(()), Err)
}

fn each<'n>(
    node: &'n Node<'n>,
    name: &'static str,
    path: &mut Path<'n>,
    mut check: impl FnMut(&'n Node<'n>, &mut Path<'n>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    path.enter(Step::member(name));
    for (i, item) in node.items(name).iter().enumerate() {
        path.enter(Step::Item(i));
        check(item, path)?;
        path.leave();
    }
    path.leave();
    Ok(())
}

fn check_path(file: &Node<'_>, path: &Path<'_>) -> Result<(), Violation> {
    let name = file.text("path").unwrap_or_default();
    let why = match name {
        "" => "names no file",
        absolute if absolute.starts_with('/') || starts_at_a_drive(absolute) => "is not relative",
        up if up.split('/').any(|part| part == "..") => "leaves the repository",
        odd if odd.contains(['\0', '\\']) => "has a NUL or a backslash",
        _ => return Ok(()),
    };
    Err(Rule::AttributionPath.in_payload(path.pointer_to("path"), format!("{} {why}", quote(name))))
}

/// Returns whether a path begins with a Windows drive, `C:/` or `C:\`. Elsewhere a colon is an ordinary character.
fn starts_at_a_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

fn check_range(range: &Node<'_>, path: &mut Path<'_>) -> Result<(), Violation> {
    let line = |name| range.get(name).and_then(Node::as_unsigned).unwrap_or(0);
    let (start, end) = (line("start-line"), line("end-line"));
    if start < 1 || start > end {
        let detail = format!("lines {start} to {end}: lines count from 1, and a range ends after it starts");
        return Err(Rule::LineRange.in_payload(path.pointer(), detail));
    }
    let Some(hash) = range.text("content-hash") else { return Ok(()) };
    let algorithm = range.text("content-hash-alg").unwrap_or("sha-256");
    let digits = match algorithm {
        "sha-256" => 64,
        "sha-384" => 96,
        "sha-512" => 128,
        // Other algorithms have no registered names, so their hashes are not checked.
        _ => return Ok(()),
    };
    if hash.len() == digits && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    let detail = format!("{algorithm} gives {digits} hex digits, not {}", quote(hash));
    Err(Rule::HashLength.in_payload(path.pointer_to("content-hash"), detail))
}
