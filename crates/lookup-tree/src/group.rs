//! Compact encoding of sorted postings: a group for each key.
//!
//! A group is the key (16 bytes), the number of its leaves, the first leaf less a base that the reader knows, and the
//! difference of each further leaf to the one before it. Numbers are unsigned LEB128 in their shortest form. Blocks of a
//! store and proofs have this encoding.

use merkle::LeafIndex;

use crate::posting::{Posting, TermKey};

/// Maximum length of a number in bytes.
const MAX_NUMBER_BYTES: usize = 10;

/// Error: bytes that are not the encoding of sorted postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct GroupError {
    /// Offset of the refused part.
    pub offset: usize,
    /// Kind of error.
    pub kind: GroupErrorKind,
}

/// Reasons why bytes are not the encoding of sorted postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupErrorKind {
    /// The bytes end inside a group.
    #[error("the bytes end inside a group")]
    UnexpectedEnd,
    /// A number beyond 64 bits, or longer than its shortest form.
    #[error("a number is not in its shortest form, or exceeds 64 bits")]
    Number,
    /// A group without leaves.
    #[error("a group has no leaf")]
    EmptyGroup,
    /// A leaf beyond 64 bits, or a difference of zero between two leaves.
    #[error("the leaves of a group do not ascend")]
    Leaf,
    /// A key that does not come after the key before it.
    #[error("the keys of groups do not ascend")]
    Key,
}

/// Encodes postings that are added in order.
#[derive(Clone, Debug)]
pub(crate) struct GroupEncoder {
    base: LeafIndex,
    /// Complete groups.
    groups: Vec<u8>,
    last: Option<Posting>,
    /// Number of leaves in the open group, and their encoding.
    count: u64,
    leaves: Vec<u8>,
}

impl GroupEncoder {
    pub(crate) fn new(base: LeafIndex) -> Self {
        Self { base, groups: Vec::new(), last: None, count: 0, leaves: Vec::new() }
    }

    /// The last posting that was added.
    pub(crate) fn last(&self) -> Option<Posting> {
        self.last
    }

    /// Length in bytes of the encoding with one more posting.
    pub(crate) fn length_with(&self, posting: Posting) -> usize {
        let number = number_length(self.number_of(posting));
        match self.continues(posting) {
            true => self.groups.len() + 16 + number_length(self.count + 1) + self.leaves.len() + number,
            false => self.length() + 16 + number_length(1) + number,
        }
    }

    /// Adds a posting that comes after the one before it, with a leaf that is not before the base.
    pub(crate) fn push(&mut self, posting: Posting) {
        let number = self.number_of(posting);
        if !self.continues(posting) {
            self.close_group();
        }
        write_number(&mut self.leaves, number);
        self.count += 1;
        self.last = Some(posting);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.close_group();
        self.groups
    }

    fn length(&self) -> usize {
        match self.count {
            0 => self.groups.len(),
            count => self.groups.len() + 16 + number_length(count) + self.leaves.len(),
        }
    }

    fn continues(&self, posting: Posting) -> bool {
        self.last.is_some_and(|last| last.key == posting.key)
    }

    /// The number that stands for a leaf: the difference to the leaf before it, or to the base.
    fn number_of(&self, posting: Posting) -> u64 {
        let before = self.last.filter(|last| last.key == posting.key).map_or(self.base, |last| last.leaf);
        posting.leaf.get().saturating_sub(before.get())
    }

    fn close_group(&mut self) {
        if let Some(last) = self.last.filter(|_| self.count > 0) {
            self.groups.extend_from_slice(last.key.as_bytes());
            write_number(&mut self.groups, self.count);
            self.groups.append(&mut self.leaves);
            self.count = 0;
        }
    }
}

/// Reads the postings of encoded groups, in order. After an error it ends.
#[derive(Clone, Debug)]
pub(crate) struct GroupReader<'b> {
    bytes: &'b [u8],
    at: usize,
    base: LeafIndex,
    last: Option<Posting>,
    /// Leaves of the open group that are not read yet.
    left: u64,
}

impl<'b> GroupReader<'b> {
    pub(crate) fn new(bytes: &'b [u8], base: LeafIndex) -> Self {
        Self { bytes, at: 0, base, last: None, left: 0 }
    }

    fn read(&mut self) -> Result<Option<Posting>, GroupError> {
        let posting = match (self.left, self.last) {
            (1.., Some(last)) => self.next_of_group(last)?,
            _ if self.at == self.bytes.len() => return Ok(None),
            _ => self.first_of_group()?,
        };
        self.left -= 1;
        self.last = Some(posting);
        Ok(Some(posting))
    }

    fn first_of_group(&mut self) -> Result<Posting, GroupError> {
        let offset = self.at;
        let error = |kind| GroupError { offset, kind };
        let key = self.bytes[self.at..].first_chunk().ok_or(error(GroupErrorKind::UnexpectedEnd))?;
        let key = TermKey::from_bytes(*key);
        if self.last.is_some_and(|last| last.key >= key) {
            return Err(error(GroupErrorKind::Key));
        }
        self.at += key.as_bytes().len();
        self.left = self.number()?;
        if self.left == 0 {
            return Err(error(GroupErrorKind::EmptyGroup));
        }
        Ok(Posting { key, leaf: self.leaf_after(self.base)? })
    }

    fn next_of_group(&mut self, last: Posting) -> Result<Posting, GroupError> {
        let offset = self.at;
        let leaf = self.leaf_after(last.leaf)?;
        if leaf == last.leaf {
            return Err(GroupError { offset, kind: GroupErrorKind::Leaf });
        }
        Ok(Posting { leaf, ..last })
    }

    fn leaf_after(&mut self, before: LeafIndex) -> Result<LeafIndex, GroupError> {
        let offset = self.at;
        let leaf = before.get().checked_add(self.number()?).map(LeafIndex::new);
        leaf.ok_or(GroupError { offset, kind: GroupErrorKind::Leaf })
    }

    fn number(&mut self) -> Result<u64, GroupError> {
        let offset = self.at;
        let error = |kind| GroupError { offset, kind };
        let mut number: u64 = 0;
        for nth in 0..MAX_NUMBER_BYTES {
            let byte = *self.bytes.get(self.at).ok_or(error(GroupErrorKind::UnexpectedEnd))?;
            self.at += 1;
            let digit = u64::from(byte & 0x7f);
            let shifted = digit << (7 * nth);
            if shifted >> (7 * nth) != digit {
                return Err(error(GroupErrorKind::Number));
            }
            number |= shifted;
            if byte & 0x80 == 0 {
                let shortest = nth == 0 || digit > 0;
                return if shortest { Ok(number) } else { Err(error(GroupErrorKind::Number)) };
            }
        }
        Err(error(GroupErrorKind::Number))
    }
}

impl Iterator for GroupReader<'_> {
    type Item = Result<Posting, GroupError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        if read.is_err() {
            (self.at, self.left) = (self.bytes.len(), 0);
        }
        read.transpose()
    }
}

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number_length(number: u64) -> usize {
    let bits = (u64::BITS - number.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<u64>, GroupErrorKind> {
        let reader = GroupReader::new(bytes, LeafIndex::new(10));
        reader.map(|read| read.map(|posting| posting.leaf.get()).map_err(|why| why.kind)).collect()
    }

    #[test]
    fn only_the_shortest_encoding_in_order_is_read() {
        let group = |key: u8, rest: &[u8]| [&[key; 16][..], rest].concat();
        assert_eq!(read(&[]), Ok(vec![]));
        assert_eq!(read(&group(1, &[2, 0, 0x80, 0x01])), Ok(vec![10, 138]));
        for (bytes, kind) in [
            (vec![1; 15], GroupErrorKind::UnexpectedEnd),
            (group(1, &[]), GroupErrorKind::UnexpectedEnd),
            (group(1, &[2, 0]), GroupErrorKind::UnexpectedEnd),
            (group(1, &[1, 0x80]), GroupErrorKind::UnexpectedEnd),
            (group(1, &[1, 0x80, 0x00]), GroupErrorKind::Number),
            (group(1, &[&[1][..], &[0xff; 9], &[0x02]].concat()), GroupErrorKind::Number),
            (group(1, &[&[1][..], &[0x80; 10], &[0x01]].concat()), GroupErrorKind::Number),
            (group(1, &[0]), GroupErrorKind::EmptyGroup),
            (group(1, &[2, 0, 0]), GroupErrorKind::Leaf),
            (group(1, &[&[1][..], &[0xff; 9], &[0x01]].concat()), GroupErrorKind::Leaf),
            ([group(2, &[1, 0]), group(1, &[1, 0])].concat(), GroupErrorKind::Key),
            ([group(2, &[1, 0]), group(2, &[1, 1])].concat(), GroupErrorKind::Key),
        ] {
            assert_eq!(read(&bytes), Err(kind), "{bytes:?}");
        }
    }

    #[test]
    fn lengths_are_known_before_postings_are_added() {
        let mut encoder = GroupEncoder::new(LeafIndex::new(5));
        for (key, leaf) in [(1, 5), (1, 6), (1, 200), (2, 5), (3, u64::MAX), (4, 1 << 40), (4, 1 << 41)] {
            let posting = Posting { key: TermKey::from_bytes([key; 16]), leaf: LeafIndex::new(leaf) };
            let length = encoder.length_with(posting);
            encoder.push(posting);
            assert_eq!(encoder.clone().finish().len(), length);
        }
    }
}
