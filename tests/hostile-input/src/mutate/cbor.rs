//! Mutations of CBOR: the tree is changed and written again, sometimes in unusual spellings.
//!
//! The reader here is loose on purpose, and not the one under test: it takes what it can make sense of and
//! carries the rest along as bytes.

use fastrand::Rng;

use super::bytes;

/// How deep things are wrapped: around the limits of the parsers, and far beyond.
const DEPTHS: [usize; 8] = [1, 1, 2, 15, 16, 17, 200, 20_000];
/// How long strings are made: where the head grows, and around the limits of the parsers.
const LENGTHS: [usize; 9] = [0, 1, 23, 24, 32, 255, 256, 8193, 65_536];
/// Numbers at which something changes: a head's size, a sign, a label's or an algorithm's meaning.
const NUMBERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    15,
    16,
    18,
    23,
    24,
    33,
    34,
    255,
    258,
    394,
    395,
    396,
    65_536,
    i64::MAX as u64,
    u64::MAX,
];
/// Nesting that is read as a tree.
const MAX_NESTING: usize = 40;

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number {
        negative: bool,
        value: u64,
    },
    Text {
        is_text: bool,
        bytes: Vec<u8>,
    },
    /// A byte string that holds CBOR.
    Wrapped(Box<Node>),
    Array(Vec<Node>),
    /// Keys and values in turn.
    Map(Vec<Node>),
    Tag(u64, Box<Node>),
    /// Simple values, floats, and what is not CBOR.
    Raw(Vec<u8>),
}

/// Changes one node of the tree, and perhaps how all of it is spelled.
pub(super) fn mutate(rng: &mut Rng, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut tree = Node::read_all(input);
    let donor = Node::read_all(other).pick(rng).clone();
    let node = tree.pick(rng);
    change(rng, node, donor);
    let mut speller = Speller { out: Vec::with_capacity(input.len()), oddity: oddity(rng), rng };
    speller.node(&tree);
    speller.out
}

/// One document in four is spelled oddly: of its heads, one in so many.
fn oddity(rng: &mut Rng) -> Option<u8> {
    (rng.u8(..4) == 0).then(|| rng.u8(2..40))
}

fn change(rng: &mut Rng, node: &mut Node, donor: Node) {
    match (rng.u8(..8), &mut *node) {
        (0, _) => *node = donor,
        (1, _) => *node = leaf(rng),
        (2, _) => wrap(rng, node),
        (3, Node::Wrapped(inner)) => *node = (**inner).clone(),
        (_, Node::Number { negative, value }) => {
            *negative = rng.bool();
            *value = NUMBERS[rng.usize(..NUMBERS.len())];
        }
        (4, Node::Text { is_text, .. }) => *is_text = !*is_text,
        (5, Node::Text { bytes, .. }) => bytes.resize(LENGTHS[rng.usize(..LENGTHS.len())], b'a'),
        (_, Node::Text { bytes, .. }) => *bytes = bytes::mutate(rng, std::mem::take(bytes), b"did:key:\xff"),
        (_, Node::Array(elements)) => rearrange(rng, elements, 1, donor),
        (_, Node::Map(entries)) => rearrange(rng, entries, 2, donor),
        (_, Node::Tag(number, _)) => *number = NUMBERS[rng.usize(..NUMBERS.len())],
        (_, Node::Wrapped(_) | Node::Raw(_)) => *node = leaf(rng),
    }
}

/// Drops, doubles, swaps or adds an element of `width` nodes.
fn rearrange(rng: &mut Rng, nodes: &mut Vec<Node>, width: usize, donor: Node) {
    let elements = nodes.len() / width;
    if elements == 0 {
        nodes.extend([donor.clone(), donor].into_iter().take(width));
        return;
    }
    let at = rng.usize(..elements) * width;
    match rng.u8(..4) {
        0 => drop(nodes.drain(at..at + width)),
        1 => {
            let twice = nodes[at..at + width].to_vec();
            nodes.extend(twice);
        }
        2 => nodes.rotate_left(at),
        _ => {
            let key = leaf(rng);
            nodes.extend([key, donor].into_iter().rev().take(width).rev());
        }
    }
}

fn leaf(rng: &mut Rng) -> Node {
    let number = NUMBERS[rng.usize(..NUMBERS.len())];
    match rng.u8(..6) {
        0 => Node::Number { negative: rng.bool(), value: number },
        1 => Node::Text { is_text: rng.bool(), bytes: vec![0; LENGTHS[rng.usize(..LENGTHS.len())]] },
        2 => Node::Array(Vec::new()),
        3 => Node::Map(Vec::new()),
        4 => Node::Raw(vec![rng.u8(0xe0..)]),
        _ => Node::Raw([vec![0xfb], rng.u64(..).to_be_bytes().to_vec()].concat()),
    }
}

fn wrap(rng: &mut Rng, node: &mut Node) {
    let inner = std::mem::replace(node, Node::Array(Vec::new()));
    let depth = DEPTHS[rng.usize(..DEPTHS.len())];
    let head: &[u8] = match rng.u8(..6) {
        0 => return *node = Node::Wrapped(Box::new(inner)),
        1 => return *node = Node::Tag(NUMBERS[rng.usize(..NUMBERS.len())], Box::new(inner)),
        2 => b"\x81",
        3 => b"\xa1\x00",
        4 => b"\xd8\x26",
        _ => b"\x9f",
    };
    // Written flat: a tree this deep would exhaust the stack of the mutator, not of the parser.
    let mut bytes = head.repeat(depth);
    bytes.extend(inner.spelled());
    if head == b"\x9f" {
        bytes.resize(bytes.len() + depth, 0xff);
    }
    *node = Node::Raw(bytes);
}

impl Node {
    /// The first item, and what follows it as bytes.
    fn read_all(input: &[u8]) -> Self {
        let mut reader = Loose { input, nesting: 0 };
        match reader.node() {
            Some(node) if reader.input.is_empty() => node,
            Some(node) => Self::Array(vec![node, Self::Raw(reader.input.to_vec())]),
            None => Self::Raw(input.to_vec()),
        }
    }

    /// Any node of the tree, this one included.
    fn pick(&mut self, rng: &mut Rng) -> &mut Self {
        let mut countdown = rng.usize(..self.count());
        self.nth(&mut countdown).expect("there are as many nodes as were counted")
    }

    fn count(&self) -> usize {
        1 + match self {
            Self::Array(nodes) | Self::Map(nodes) => nodes.iter().map(Self::count).sum(),
            Self::Wrapped(inner) | Self::Tag(_, inner) => inner.count(),
            Self::Number { .. } | Self::Text { .. } | Self::Raw(_) => 0,
        }
    }

    fn nth(&mut self, countdown: &mut usize) -> Option<&mut Self> {
        if *countdown == 0 {
            return Some(self);
        }
        *countdown -= 1;
        match self {
            Self::Array(nodes) | Self::Map(nodes) => nodes.iter_mut().find_map(|node| node.nth(countdown)),
            Self::Wrapped(inner) | Self::Tag(_, inner) => inner.nth(countdown),
            Self::Number { .. } | Self::Text { .. } | Self::Raw(_) => None,
        }
    }

    fn spelled(&self) -> Vec<u8> {
        let mut speller = Speller { out: Vec::new(), oddity: None, rng: &mut Rng::with_seed(0) };
        speller.node(self);
        speller.out
    }
}

/// Reads what looks like CBOR; lengths may be indefinite.
struct Loose<'a> {
    input: &'a [u8],
    nesting: usize,
}

impl<'a> Loose<'a> {
    fn node(&mut self) -> Option<Node> {
        self.nesting += 1;
        let node = if self.nesting <= MAX_NESTING { self.item() } else { None };
        self.nesting -= 1;
        node
    }

    fn item(&mut self) -> Option<Node> {
        let (all, initial) = (self.input, *self.input.first()?);
        let length = self.head(initial & 31)?;
        match initial >> 5 {
            major @ (0 | 1) => Some(Node::Number { negative: major == 1, value: length? }),
            2 => Some(self.string(length?, false)?.unwrapped(self.nesting)),
            3 => self.string(length?, true),
            4 => Some(Node::Array(self.nodes(length)?)),
            5 => Some(Node::Map(self.nodes(length.map(|pairs| pairs.saturating_mul(2)))?)),
            6 => Some(Node::Tag(length?, Box::new(self.node()?))),
            _ => Some(Node::Raw(all[..all.len() - self.input.len()].to_vec())),
        }
    }

    /// The argument, or none where the length is indefinite.
    fn head(&mut self, info: u8) -> Option<Option<u64>> {
        let size = match info {
            0..=23 | 31 => 0,
            24..=27 => 1 << (info - 24),
            _ => return None,
        };
        let (head, rest) = self.input.split_at_checked(1 + size)?;
        self.input = rest;
        match info {
            0..=23 => Some(Some(info.into())),
            31 => Some(None),
            _ => Some(Some(head[1..].iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))),
        }
    }

    fn string(&mut self, length: u64, is_text: bool) -> Option<Node> {
        let (bytes, rest) = self.input.split_at_checked(length.try_into().ok()?)?;
        self.input = rest;
        Some(Node::Text { is_text, bytes: bytes.to_vec() })
    }

    fn nodes(&mut self, length: Option<u64>) -> Option<Vec<Node>> {
        let mut nodes = Vec::new();
        while length.is_none_or(|length| (nodes.len() as u64) < length) {
            if length.is_none() && self.input.first() == Some(&0xff) {
                self.input = &self.input[1..];
                break;
            }
            nodes.push(self.node()?);
        }
        Some(nodes)
    }
}

impl Node {
    /// Byte strings that hold a container of CBOR are taken apart: protected headers and proofs.
    fn unwrapped(self, nesting: usize) -> Self {
        let Self::Text { is_text: false, bytes } = &self else { return self };
        let mut reader = Loose { input: bytes, nesting };
        match reader.node() {
            Some(inner @ (Self::Map(_) | Self::Array(_) | Self::Tag(..))) if reader.input.is_empty() => {
                Self::Wrapped(Box::new(inner))
            }
            _ => self,
        }
    }
}

/// Writes CBOR: shortest heads and definite lengths, or now and then not.
struct Speller<'a> {
    out: Vec<u8>,
    oddity: Option<u8>,
    rng: &'a mut Rng,
}

impl Speller<'_> {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Number { negative, value } => self.head(u8::from(*negative), *value),
            Node::Text { is_text, bytes } => self.string(2 + u8::from(*is_text), bytes),
            Node::Wrapped(inner) => {
                let mut within = Speller { out: Vec::new(), oddity: self.oddity, rng: &mut *self.rng };
                within.node(inner);
                let bytes = within.out;
                self.string(2, &bytes);
            }
            Node::Array(nodes) => self.container(4, nodes, nodes.len()),
            Node::Map(nodes) => self.container(5, nodes, nodes.len() / 2),
            Node::Tag(number, inner) => {
                self.head(6, *number);
                self.node(inner);
            }
            Node::Raw(bytes) => self.out.extend(bytes),
        }
    }

    fn string(&mut self, major: u8, bytes: &[u8]) {
        if self.is_odd() {
            self.out.push(major << 5 | 31);
            self.head(major, bytes.len() as u64);
            self.out.extend(bytes);
            self.out.push(0xff);
        } else {
            self.head(major, bytes.len() as u64);
            self.out.extend(bytes);
        }
    }

    fn container(&mut self, major: u8, nodes: &[Node], length: usize) {
        let indefinite = self.is_odd();
        if indefinite {
            self.out.push(major << 5 | 31);
        } else {
            self.head(major, length as u64);
        }
        nodes.iter().for_each(|node| self.node(node));
        if indefinite {
            self.out.push(0xff);
        }
    }

    /// An odd head is longer than it must be, or announces something else.
    fn head(&mut self, major: u8, value: u64) {
        let (value, longer) = match (self.is_odd(), self.rng.u8(..4)) {
            (false, _) => (value, 0),
            (true, 0) => (value.wrapping_add(1), 0),
            (true, 1) => (value.wrapping_sub(1), 0),
            (true, _) => (value, self.rng.u32(1..=4)),
        };
        let shortest: u32 = match value {
            0..24 => 0,
            24..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 3,
            _ => 4,
        };
        let size = (shortest + longer).min(4);
        if size == 0 {
            self.out.push(major << 5 | value as u8);
        } else {
            self.out.push(major << 5 | (23 + size as u8));
            self.out.extend(&value.to_be_bytes()[8 - (1 << (size - 1))..]);
        }
    }

    fn is_odd(&mut self) -> bool {
        self.oddity.is_some_and(|one_in| self.rng.u8(..one_in) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATEMENT: &[u8] = b"\xd2\x84\x44\xa2\x01\x26\x04\xa0\xf6\x43abc";

    #[test]
    fn what_is_read_is_written_the_same() {
        let tree = Node::read_all(b"\xd2\x84\x45\xa2\x01\x26\x04\x40\xa1\x19\x01\x8a\x81\x40\xf6\x43abc");
        assert_eq!(tree.spelled(), b"\xd2\x84\x45\xa2\x01\x26\x04\x40\xa1\x19\x01\x8a\x81\x40\xf6\x43abc");
    }

    #[test]
    fn a_protected_header_is_taken_apart() {
        let Node::Tag(18, array) = Node::read_all(b"\xd2\x84\x43\xa1\x01\x26\xa0\xf6\x40") else {
            panic!("no tag")
        };
        let Node::Array(parts) = *array else { panic!("no array") };
        assert!(matches!(&parts[0], Node::Wrapped(header) if matches!(**header, Node::Map(_))));
    }

    #[test]
    fn what_is_not_cbor_is_carried_along() {
        assert_eq!(Node::read_all(STATEMENT).spelled(), STATEMENT);
        assert_eq!(Node::read_all(b"\x5b\xff").spelled(), b"\x5b\xff");
        assert_eq!(Node::read_all(&[0x81; 5000]).spelled(), [0x81; 5000]);
    }
}
