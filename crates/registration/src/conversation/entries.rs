//! Iteration over the entries of a record at any depth.

use super::node::{Node, Path, Step};
use super::shape::CHILDREN;

/// Calls `visit` for every entry in document order: an entry precedes its children.
pub(super) fn each<'n>(record: &'n Node<'n>, mut visit: impl FnMut(&Path<'n>, &'n Node<'n>)) {
    let mut path = Path::default();
    path.enter(Step::member("session"));
    if let Some(session) = record.get("session") {
        list(session, "entries", &mut path, &mut visit);
    }
}

/// Visits a list of entries. The recursion is as deep as `children`, which the walk over the CDDL has limited.
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

/// The values of an entry's `type`.
const TYPES: [&str; 6] = ["user", "assistant", "tool-call", "tool-result", "reasoning", "system-event"];

/// Returns the static string for an entry type, or `None` if it is unknown.
pub(super) fn type_name(found: &str) -> Option<&'static str> {
    TYPES.into_iter().find(|name| *name == found)
}
