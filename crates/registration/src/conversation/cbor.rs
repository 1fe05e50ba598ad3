//! Strict CBOR parser for conversation records: one item, no equal keys, no nested values as keys, text in UTF-8, no
//! NaN, no integer beyond 64 bits.
//!
//! The CDDL leaves the encoding open, so non-minimal heads and indefinite lengths are accepted. Memory is allocated for
//! the content, never for an announced length. Heads come from [`scitt::cbor`]; the tree is built here, so that errors
//! have a JSON pointer.

use std::borrow::Cow;

use scitt::cbor::{Error, ErrorKind, ItemHead, ItemReader, ItemWriter, Limits, Major};

use super::node::{Key, Node, Path, Step};
use super::rule::ConversationRule as Rule;
use crate::limits::{CONVERSATION_ITEMS, CONVERSATION_READER_DEPTH};
use crate::violation::Violation;

const LIMITS: Limits = Limits { depth: CONVERSATION_READER_DEPTH, items: CONVERSATION_ITEMS };
const TAG_POSITIVE_BIGNUM: u64 = 2;
const TAG_NEGATIVE_BIGNUM: u64 = 3;

/// Parses one item that must fill the bytes.
pub(super) fn read(bytes: &[u8]) -> Result<Node<'_>, Violation> {
    let mut reader = CborReader {
        reader: ItemReader::new(bytes, LIMITS),
        items_left: CONVERSATION_ITEMS,
        path: Path::default(),
    };
    let node = reader.value(CONVERSATION_READER_DEPTH)?;
    match reader.reader.clone().finish() {
        Ok(()) => Ok(node),
        Err(error) => Err(reader.refused(&error)),
    }
}

struct CborReader<'a> {
    reader: ItemReader<'a>,
    items_left: usize,
    path: Path<'a>,
}

impl<'a> CborReader<'a> {
    /// Parses a value that may open `depth` more containers.
    fn value(&mut self, depth: usize) -> Result<Node<'a>, Violation> {
        let head = self.head()?;
        self.count()?;
        match head.major {
            Major::Unsigned => Ok(Node::Unsigned(head.argument)),
            Major::Negative if head.argument > i64::MAX as u64 => {
                Err(self.broken(Rule::Integer, "below -2^63"))
            }
            Major::Negative => Ok(Node::Negative(head.argument)),
            Major::Bytes => self.bytes(&head).map(Node::Bytes),
            Major::Text => self.text(&head).map(Node::Text),
            Major::Array => self.array(&head, self.deeper(depth)?),
            Major::Map => self.map(&head, self.deeper(depth)?),
            Major::Tag => self.tag(head.argument, self.deeper(depth)?),
            Major::Simple => self.simple(&head),
        }
    }

    fn count(&mut self) -> Result<(), Violation> {
        match self.items_left.checked_sub(1) {
            Some(left) => {
                self.items_left = left;
                Ok(())
            }
            None => Err(self.broken(Rule::Items, &format!("more than {CONVERSATION_ITEMS} data items"))),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, Violation> {
        let deeper = depth.checked_sub(1);
        deeper.ok_or_else(|| {
            self.broken(Rule::Nesting, &format!("nested deeper than {CONVERSATION_READER_DEPTH}"))
        })
    }

    fn array(&mut self, head: &ItemHead, depth: usize) -> Result<Node<'a>, Violation> {
        let mut items = Vec::new();
        let mut left = head.argument;
        while self.reader.more(head, &mut left) {
            self.path.enter(Step::Item(items.len()));
            items.push(self.value(depth)?);
            self.path.leave();
        }
        Ok(Node::Array(items))
    }

    fn map(&mut self, head: &ItemHead, depth: usize) -> Result<Node<'a>, Violation> {
        let mut members: Vec<(Key<'a>, Node<'a>)> = Vec::new();
        let mut left = head.argument;
        while self.reader.more(head, &mut left) {
            let (key, step) = self.key()?;
            self.path.enter(step);
            let value = self.value(depth)?;
            self.path.leave();
            members.push((key, value));
        }
        match duplicate(&members) {
            None => Ok(Node::Map(members)),
            Some(key) => Err(Rule::DuplicateMember.in_payload(
                format!("{}{}", self.path.pointer(), Path::of(Step::to(key)).pointer()),
                "a second member of this name",
            )),
        }
    }

    /// Parses a key and returns the path step for it. Keys other than text are parsed as strictly, although no rule
    /// reads them. They may not be arrays, maps or tags, so that the comparison of keys costs no more than parsing
    /// them.
    fn key(&mut self) -> Result<(Key<'a>, Step<'a>), Violation> {
        let head = self.reader.clone().head().map_err(|error| self.refused(&error))?;
        if matches!(head.major, Major::Array | Major::Map | Major::Tag) {
            return Err(self.broken(Rule::Nesting, "a key that is an array, a map or a tag"));
        }
        let key = match self.value(0)? {
            Node::Text(name) => Key::Text(name),
            scalar => Key::Other(encoded(&scalar)),
        };
        let step = match &key {
            Key::Text(name) => Step::Member(name.clone()),
            Key::Other(encoded) => Step::Member(data_encoding::HEXLOWER.encode(encoded).into()),
        };
        Ok((key, step))
    }

    fn tag(&mut self, number: u64, depth: usize) -> Result<Node<'a>, Violation> {
        if matches!(number, TAG_POSITIVE_BIGNUM | TAG_NEGATIVE_BIGNUM) {
            return Err(self.broken(Rule::Integer, "a bignum"));
        }
        Ok(Node::Tag(number, Box::new(self.value(depth)?)))
    }

    fn simple(&mut self, head: &ItemHead) -> Result<Node<'a>, Violation> {
        match (head.info, head.as_float()) {
            (_, Some(number)) if number.is_finite() => Ok(Node::Float(number)),
            (_, Some(number)) => {
                Err(self.broken(Rule::Number, &format!("{number} is not a number of a record")))
            }
            (20, _) => Ok(Node::Bool(false)),
            (21, _) => Ok(Node::Bool(true)),
            (22, _) => Ok(Node::Null),
            _ if head.is_indefinite() => {
                Err(self.refused(&Error { offset: head.offset, kind: ErrorKind::UnexpectedBreak }))
            }
            _ => Ok(Node::Simple(head.argument as u8)),
        }
    }

    fn bytes(&mut self, head: &ItemHead) -> Result<Cow<'a, [u8]>, Violation> {
        let bytes = self.reader.bytes(head);
        bytes.map_err(|error| self.refused(&error))
    }

    fn text(&mut self, head: &ItemHead) -> Result<Cow<'a, str>, Violation> {
        let text = self.reader.text(head);
        text.map_err(|error| self.refused(&error))
    }

    fn head(&mut self) -> Result<ItemHead, Violation> {
        let head = self.reader.head();
        head.map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &Error) -> Violation {
        let rule = match error.kind {
            ErrorKind::NotUtf8 => Rule::Utf8,
            ErrorKind::DuplicateKey => Rule::DuplicateMember,
            ErrorKind::TooDeep => Rule::Nesting,
            ErrorKind::TooManyItems => Rule::Items,
            _ => Rule::Cbor,
        };
        self.broken(rule, &error.to_string())
    }

    fn broken(&self, rule: Rule, detail: &str) -> Violation {
        rule.in_payload(self.path.pointer(), detail)
    }
}

/// Finds a repeated key of a map, in O(n log n) by sorting.
fn duplicate<'m, 'a>(members: &'m [(Key<'a>, Node<'a>)]) -> Option<&'m Key<'a>> {
    let mut keys: Vec<&Key<'a>> = members.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[1])
}

/// Encodes a scalar deterministically.
fn encoded(scalar: &Node<'_>) -> Vec<u8> {
    let mut writer = ItemWriter::new();
    match scalar {
        Node::Unsigned(number) => writer.unsigned(*number),
        Node::Negative(number) => writer.negative(*number),
        Node::Bytes(bytes) => writer.bytes(bytes),
        Node::Text(text) => writer.text(text),
        Node::Float(number) => writer.float(*number),
        Node::Bool(value) => writer.bool(*value),
        Node::Simple(number) => writer.simple(*number),
        Node::Null | Node::Array(_) | Node::Map(_) | Node::Tag(..) => writer.null(),
    };
    writer.into_bytes()
}
