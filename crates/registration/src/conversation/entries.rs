//! The entries of a record, whatever they are nested in.

use super::node::{Node, Path, Step};
use super::shape::CHILDREN;

/// Calls `visit` for every entry, in the order of the record: an entry before its children.
pub(super) fn each<'n>(record: &'n Node<'n>, mut visit: impl FnMut(&Path<'n>, &'n Node<'n>)) {
    let mut path = Path::default();
    path.enter(Step::member("session"));
    if let Some(session) = record.get("session") {
        list(session, "entries", &mut path, &mut visit);
    }
}

/// The recursion is as deep as `children`, which the walk has bounded.
fn list<'n>(
    node: &'n Node<'n>,
    name: &'static str,
    path: &mut Path<'n>,
    visit: &mut impl FnMut(&Path<'n>, &'n Node<'n>),
) {
    path.enter(Step::member(name));
    for (i, entry) in node.items(name).iter().enumerate() {
        path.enter(Step::Item(i));
        visit(path, entry);
        list(entry, CHILDREN, path, visit);
        path.leave();
    }
    path.leave();
}

/// The types of entries.
const TYPES: [&str; 6] = ["user", "assistant", "tool-call", "tool-result", "reasoning", "system-event"];

/// The type of this name.
pub(super) fn type_name(found: &str) -> Option<&'static str> {
    TYPES.into_iter().find(|name| *name == found)
}
