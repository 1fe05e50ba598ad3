//! Places in a statement, and patterns of the values there.

use scitt::cbor::Value as Cbor;
use scitt::header::{Header, Label, labels};
use serde::Deserialize;

use crate::node::Node;

/// The path of values in a payload: a JSON pointer (RFC 6901), in which the step `*` leads to all elements of an array.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct PayloadPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    AllElements,
}

impl PayloadPath {
    /// Calls `visit` for each value at the path below this one, in the order of the document.
    pub fn for_each<'v>(&self, root: Node<'v>, visit: &mut dyn FnMut(Node<'v>)) {
        walk(&self.0, root, visit);
    }
}

fn walk<'v>(steps: &[Step], node: Node<'v>, visit: &mut dyn FnMut(Node<'v>)) {
    match steps.split_first() {
        None => visit(node),
        Some((Step::Member(name), rest)) => {
            if let Some(member) = node.member(name) {
                walk(rest, member, visit);
            }
        }
        Some((Step::AllElements, rest)) => node.elements().for_each(|element| walk(rest, element, visit)),
    }
}

impl TryFrom<String> for PayloadPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut steps = text.split('/');
        match steps.next() {
            Some("") if !text.contains('~') => {}
            _ => return Err(format!("{text}: a path begins with `/`, and has no `~`")),
        }
        let step = |step: &str| match step {
            "*" => Step::AllElements,
            name => Step::Member(name.to_owned()),
        };
        Ok(Self(steps.map(step).collect()))
    }
}

/// A label of the protected header, or a claim below label 15.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum HeaderPath {
    Label(Label),
    Claim(Label),
}

impl HeaderPath {
    /// Returns the value at the path.
    pub fn value<'h>(&self, header: &'h Header) -> Option<Cbor<'h>> {
        match self {
            HeaderPath::Label(label) => header.get(label),
            HeaderPath::Claim(label) => header.claims()?.get(label),
        }
    }
}

impl TryFrom<String> for HeaderPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text}: `/` and a label, or `/15/` and a claim, are needed here");
        let path = text.strip_prefix('/').ok_or_else(wrong)?;
        let label = |number: &str| number.parse().map(Label::Int).map_err(|_| wrong());
        match path.split_once('/') {
            None => label(path).map(HeaderPath::Label),
            Some((claims, claim)) if label(claims)? == Label::Int(labels::CWT_CLAIMS) => {
                label(claim).map(HeaderPath::Claim)
            }
            Some(_) => Err(wrong()),
        }
    }
}

/// A text, or with `*` at its end all texts that begin so.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct ValuePattern(String);

impl ValuePattern {
    /// Returns whether a value has the pattern.
    pub fn matches(&self, value: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => value.starts_with(beginning),
            None => value == self.0,
        }
    }
}
