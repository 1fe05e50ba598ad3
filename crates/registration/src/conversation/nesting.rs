//! Limit on the nesting depth of a record.
//!
//! At most 64 arrays and maps may be open at once. `children` may nest 32 levels of an array and a map each, which
//! would use up this limit, so they do not count. Members named `children` elsewhere, in a tool's input or a message in
//! its native form, do count.

use super::node::{Key, Node, Path, Step};
use super::rule::ConversationRule as Rule;
use super::shape::CHILDREN;
use crate::limits::JSON_DEPTH;
use crate::violation::Violation;

/// Checks the nesting depth of a whole record.
pub(super) fn check(root: &Node<'_>) -> Result<(), Violation> {
    Nesting { path: Path::default() }.value(root, 0, Within::Record)
}

/// The kind of a value, which determines whether a `children` member below it holds entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Record,
    Session,
    Entries,
    Entry,
    /// Any other value.
    Content,
}

impl Within {
    fn member(self, name: Option<&str>) -> Within {
        match (self, name) {
            (Within::Record, Some("session")) => Within::Session,
            (Within::Session, Some("entries")) => Within::Entries,
            (Within::Entry, Some(CHILDREN)) => Within::Entries,
            _ => Within::Content,
        }
    }

    fn item(self) -> Within {
        match self {
            Within::Entries => Within::Entry,
            _ => Within::Content,
        }
    }
}

struct Nesting<'n> {
    path: Path<'n>,
}

impl<'n> Nesting<'n> {
    /// Checks a value inside of `open` arrays and maps.
    fn value(&mut self, node: &'n Node<'n>, open: usize, within: Within) -> Result<(), Violation> {
        match node {
            Node::Array(items) => self.items(items, self.deeper(open)?, within),
            Node::Map(members) => self.members(members, self.deeper(open)?, within),
            Node::Tag(_, content) => self.value(content, self.deeper(open)?, Within::Content),
            _ => Ok(()),
        }
    }

    fn items(&mut self, items: &'n [Node<'n>], open: usize, within: Within) -> Result<(), Violation> {
        items.iter().enumerate().try_for_each(|(i, item)| {
            self.path.enter(Step::Item(i));
            self.value(item, open, within.item())?;
            self.path.leave();
            Ok(())
        })
    }

    fn members(
        &mut self,
        members: &'n [(Key<'n>, Node<'n>)],
        open: usize,
        within: Within,
    ) -> Result<(), Violation> {
        members.iter().try_for_each(|(key, value)| {
            let inner = within.member(key.as_text());
            self.path.enter(Step::to(key));
            match value {
                Node::Array(entries) if within == Within::Entry && inner == Within::Entries => {
                    self.children(entries, open)?
                }
                other => self.value(other, open, inner)?,
            }
            self.path.leave();
            Ok(())
        })
    }

    fn children(&mut self, entries: &'n [Node<'n>], open: usize) -> Result<(), Violation> {
        entries.iter().enumerate().try_for_each(|(i, entry)| {
            self.path.enter(Step::Item(i));
            match entry {
                Node::Map(members) => self.members(members, open, Within::Entry)?,
                other => self.value(other, open, Within::Content)?,
            }
            self.path.leave();
            Ok(())
        })
    }

    fn deeper(&self, open: usize) -> Result<usize, Violation> {
        match open < JSON_DEPTH {
            true => Ok(open + 1),
            false => {
                Err(Rule::Nesting.in_payload(self.path.pointer(), format!("nested deeper than {JSON_DEPTH}")))
            }
        }
    }
}
