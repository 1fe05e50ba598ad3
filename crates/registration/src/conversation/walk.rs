//! Validation of a record against the CDDL: steps 6 and 7 of the registration policy.
//!
//! An entry's `type` selects its map, so that every value is visited once. Trying the alternatives of the CDDL's
//! `entry` one by one would take time exponential in the depth of `children` (D7).

use jose::members::quote;

use super::node::{Node, Path, Step};
use super::rule::ConversationRule as Rule;
use super::shape::{self, Is, Member, Shape};
use super::time;
use crate::limits::CONVERSATION_CHILDREN;
use crate::violation::Violation;

/// Validates a value against a map of the CDDL. Missing members and wrong types are reported before unknown members of
/// closed maps.
pub(super) fn check(root: &Node<'_>, shape: &'static Shape) -> Result<(), Violation> {
    let mut walk = Walk::default();
    walk.map(root, shape)?;
    walk.extra.map_or(Ok(()), Err)
}

#[derive(Default)]
struct Walk<'n> {
    path: Path<'n>,
    /// Number of nested entry lists around the current value.
    children: usize,
    /// The first unknown member in a closed map.
    extra: Option<Violation>,
}

impl<'n> Walk<'n> {
    fn map(&mut self, node: &'n Node<'n>, shape: &'static Shape) -> Result<(), Violation> {
        let members = node.as_map().ok_or_else(|| self.unfit(&format!("a {} is a map", shape.name)))?;
        let mut seen = 0u32;
        for (key, value) in members {
            let name = key.as_text().ok_or_else(|| self.odd_key(Step::to(key)))?;
            match shape.member(name) {
                Some((index, member)) => {
                    seen |= 1 << index;
                    self.within(Step::member(name), |walk| walk.value(value, member.is))?;
                }
                None if shape.open => {}
                None => self.note_extra(name, shape),
            }
        }
        let missing =
            shape.members.iter().enumerate().find(|(i, member)| member.required && seen & (1 << i) == 0);
        missing.map_or(Ok(()), |(_, member)| Err(self.missing(member, shape)))
    }

    fn value(&mut self, node: &'n Node<'n>, is: Is) -> Result<(), Violation> {
        match is {
            Is::Any => Ok(()),
            Is::Text | Is::Url | Is::EntryId | Is::TraceFormat => self.text(node).map(drop),
            Is::Unsigned => {
                self.only(node.as_unsigned().is_some(), "an integer of at least 0 is needed here")
            }
            Is::Number => {
                let number = matches!(node, Node::Unsigned(_) | Node::Negative(_) | Node::Float(_));
                self.only(number, "a number is needed here")
            }
            Is::Bool => self.only(matches!(node, Node::Bool(_)), "true or false is needed here"),
            Is::Timestamp => self.timestamp(node),
            Is::SessionId => match node {
                Node::Text(_) | Node::Bytes(_) => Ok(()),
                _ => Err(self.broken(Rule::SessionId, "a session-id is text, or a byte string in CBOR")),
            },
            Is::EntryType(names) => self.one_of(node, names, Rule::EntryType),
            Is::Contributor(names) => self.one_of(node, names, Rule::ContributorType),
            Is::Texts => self.each(node, |walk, item| walk.text(item).map(drop)),
            Is::OpenMap => self.open_map(node),
            Is::Map(shape) => self.map(node, shape),
            Is::Maps(shape) => self.each(node, |walk, item| walk.map(item, shape)),
            Is::Entries => self.entries(node),
        }
    }

    /// Validates `entries`, or an entry's `children`.
    fn entries(&mut self, node: &'n Node<'n>) -> Result<(), Violation> {
        if self.children > CONVERSATION_CHILDREN {
            let detail = format!("more than {CONVERSATION_CHILDREN} levels of children");
            return Err(self.broken(Rule::ChildrenDepth, &detail));
        }
        self.children += 1;
        self.each(node, Self::entry)?;
        self.children -= 1;
        Ok(())
    }

    fn entry(&mut self, node: &'n Node<'n>) -> Result<(), Violation> {
        if node.as_map().is_none() {
            return Err(self.unfit("an entry is a map"));
        }
        let Some(entry_type) = node.get("type") else {
            return Err(Rule::Member.in_payload(self.path.pointer_to("type"), "every entry has a type"));
        };
        match entry_type.as_text().and_then(shape::entry) {
            Some(shape) => self.map(node, shape),
            None => {
                let found = entry_type.as_text().map_or_else(|| "not text".to_owned(), quote);
                Err(Rule::EntryType.in_payload(
                    self.path.pointer_to("type"),
                    format!(
                        "{found} is not one of user, assistant, tool-call, tool-result, reasoning, system-event"
                    ),
                ))
            }
        }
    }

    fn each(
        &mut self,
        node: &'n Node<'n>,
        mut check: impl FnMut(&mut Self, &'n Node<'n>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let items = node.as_array().ok_or_else(|| self.unfit("an array is needed here"))?;
        items
            .iter()
            .enumerate()
            .try_for_each(|(i, item)| self.within(Step::Item(i), |walk| check(walk, item)))
    }

    fn text(&self, node: &'n Node<'n>) -> Result<&'n str, Violation> {
        node.as_text().ok_or_else(|| self.unfit("a string is needed here"))
    }

    fn open_map(&self, node: &'n Node<'n>) -> Result<(), Violation> {
        let members = node.as_map().ok_or_else(|| self.unfit("a map is needed here"))?;
        let odd = members.iter().find(|(key, _)| key.as_text().is_none());
        odd.map_or(Ok(()), |(key, _)| Err(self.odd_key(Step::to(key))))
    }

    fn timestamp(&self, node: &Node<'_>) -> Result<(), Violation> {
        match node {
            Node::Text(text) if time::has_form(text) => Ok(()),
            Node::Text(text) => {
                let detail = format!("{} has not the form of RFC 3339", quote(text));
                Err(self.broken(Rule::Timestamp, &detail))
            }
            Node::Unsigned(number) if *number >= time::LEAST_MILLISECONDS => Ok(()),
            Node::Unsigned(number) => {
                let detail = format!("{number} counts milliseconds here, and looks like seconds");
                Err(self.broken(Rule::EpochMilliseconds, &detail))
            }
            _ => Err(self.unfit("a time is text, or an integer that counts milliseconds")),
        }
    }

    fn one_of(&self, node: &'n Node<'n>, names: &[&str], rule: Rule) -> Result<(), Violation> {
        match self.text(node)? {
            known if names.contains(&known) => Ok(()),
            other => Err(self.broken(rule, &format!("{} is none of {}", quote(other), names.join(", ")))),
        }
    }

    fn only(&self, fits: bool, needed: &str) -> Result<(), Violation> {
        if fits { Ok(()) } else { Err(self.unfit(needed)) }
    }

    fn within(
        &mut self,
        step: Step<'n>,
        check: impl FnOnce(&mut Self) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        self.path.enter(step);
        check(self)?;
        self.path.leave();
        Ok(())
    }

    fn note_extra(&mut self, name: &'n str, shape: &Shape) {
        if self.extra.is_none() {
            let detail = format!("{} has no such member, and takes no others", shape.name);
            self.extra = Some(Rule::ClosedMap.in_payload(self.path.pointer_to(name), detail));
        }
    }

    fn missing(&self, member: &Member, shape: &Shape) -> Violation {
        let detail = format!("{} requires this member", shape.name);
        Rule::Member.in_payload(self.path.pointer_to(member.name), detail)
    }

    fn odd_key(&self, step: Step<'n>) -> Violation {
        let mut path = self.path.clone();
        path.enter(step);
        Rule::MemberName.in_payload(path.pointer(), "the names of members are text")
    }

    fn unfit(&self, needed: &str) -> Violation {
        self.broken(Rule::Type, needed)
    }

    fn broken(&self, rule: Rule, detail: &str) -> Violation {
        rule.in_payload(self.path.pointer(), detail)
    }
}
