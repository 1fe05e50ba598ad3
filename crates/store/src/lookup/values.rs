//! The values that a search by prefix lists, stored with each run: sorted, and cut into blocks.
//!
//! A value is stored as the length of what it shares with the value before it, and the rest. A search merges the values of
//! the runs. So a new value costs a few bytes at the end of a table and changes no index of all values; and with the last
//! posting of a run that has the value, the value itself leaves the run.

use std::collections::{BTreeSet, VecDeque};

use lookup_tree::TermKey;

use super::LookupIndex;
use super::catalog::{Build, StoredRun};
use super::terms::ListedValue;
use crate::StoreError;

/// Maximum length in bytes of a block, apart from its first value.
const BLOCK_BYTES: usize = 7_000;
/// Number of blocks of a run that a search reads at once.
const SEARCHED_BLOCKS: usize = 2;

/// Some neighbouring listed values of one kind in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueBlock {
    /// The first value.
    pub first: ListedValue,
    /// The values after it. Each is encoded as three parts: the number of bytes at its beginning that it shares with the value before it
    /// and the number of its other bytes, both as big-endian integers of two bytes, and these other bytes.
    pub bytes: Vec<u8>,
}

impl ValueBlock {
    /// Reads all values; [`StoreError::Damaged`] if it is not a block.
    fn values(&self) -> Result<Vec<ListedValue>, StoreError> {
        let mut values = vec![self.first.clone()];
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            let last = values.last().map_or("", |last| &last.value);
            let value = next_value(last, &mut rest).filter(|value| value.as_str() > last);
            let value = value.ok_or_else(|| StoreError::Damaged("a block of values is malformed".into()))?;
            values.push(ListedValue { kind: self.first.kind, value });
        }
        Ok(values)
    }
}

fn next_value(last: &str, rest: &mut &[u8]) -> Option<String> {
    let (shared, other) = (length(rest)?, length(rest)?);
    let (other, left) = rest.split_at_checked(other)?;
    *rest = left;
    let shared = last.as_bytes().get(..shared)?;
    String::from_utf8([shared, other].concat()).ok()
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    let (length, left) = rest.split_first_chunk::<2>()?;
    *rest = left;
    Some(usize::from(u16::from_be_bytes(*length)))
}

/// Cuts the values of a run into blocks.
#[derive(Default)]
pub(super) struct ValueWriter {
    block: Option<ValueBlock>,
    last: String,
}

impl ValueWriter {
    /// Adds the next value. Returns the block before it, if the value does not belong into that one.
    pub(super) fn push(&mut self, value: ListedValue) -> Option<ValueBlock> {
        let fits = |block: &&mut ValueBlock| {
            block.first.kind == value.kind && block.bytes.len() + 4 + value.value.len() <= BLOCK_BYTES
        };
        if let Some(block) = self.block.as_mut().filter(fits) {
            append(&mut block.bytes, &self.last, &value.value);
            self.last = value.value;
            return None;
        }
        self.last.clone_from(&value.value);
        self.block.replace(ValueBlock { first: value, bytes: Vec::new() })
    }

    /// Returns the last block; `None` if there is no value.
    pub(super) fn finish(&mut self) -> Option<ValueBlock> {
        self.block.take()
    }
}

fn append(bytes: &mut Vec<u8>, last: &str, value: &str) {
    let shared = last.bytes().zip(value.bytes()).take_while(|(a, b)| a == b).count();
    let other = &value.as_bytes()[shared..];
    // Listed values are far shorter than 64 KiB.
    for length in [shared, other.len()] {
        bytes.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    }
    bytes.extend_from_slice(other);
}

/// Values of one run, read in order.
pub(super) struct RunValues {
    build: Build,
    /// Where to read on; `None` at the end.
    from: Option<ListedValue>,
    /// Number of blocks read at once. The first of them is the last one of before.
    blocks: usize,
    read: VecDeque<ListedValue>,
}

impl RunValues {
    /// Reads the values of a run that are not before `from`.
    pub(super) fn new(run: &StoredRun, from: ListedValue, blocks: usize) -> Self {
        Self { build: run.build, from: Some(from), blocks, read: VecDeque::new() }
    }

    /// Returns values that are in memory.
    pub(super) fn ready(values: Vec<ListedValue>) -> Self {
        Self { build: Build::default(), from: None, blocks: 0, read: values.into() }
    }

    /// Returns the next value without taking it.
    async fn peek(&mut self, store: &dyn LookupIndex) -> Result<Option<&ListedValue>, StoreError> {
        while self.read.is_empty() {
            let Some(from) = self.from.take() else { break };
            let blocks = store.value_blocks(self.build, &from, self.blocks).await?;
            for block in &blocks {
                self.read.extend(block.values()?.into_iter().filter(|value| *value >= from));
            }
            if blocks.len() == self.blocks {
                self.from = self.read.back().map(ListedValue::successor);
            }
        }
        Ok(self.read.front())
    }
}

/// The values of several runs, in order, each once.
pub(super) struct MergedValues {
    inputs: Vec<RunValues>,
    /// Keys of values that are left out.
    without: BTreeSet<TermKey>,
}

impl MergedValues {
    pub(super) fn of(inputs: Vec<RunValues>, without: BTreeSet<TermKey>) -> Self {
        Self { inputs, without }
    }

    /// Takes the next value.
    pub(super) async fn next(&mut self, store: &dyn LookupIndex) -> Result<Option<ListedValue>, StoreError> {
        loop {
            let mut least: Option<ListedValue> = None;
            for input in &mut self.inputs {
                if let Some(value) = input.peek(store).await?
                    && least.as_ref().is_none_or(|least| value < least)
                {
                    least = Some(value.clone());
                }
            }
            let Some(value) = least else { return Ok(None) };
            for input in &mut self.inputs {
                input.read.pop_front_if(|next| *next == value);
            }
            if self.without.is_empty() || !self.without.contains(&value.key()) {
                return Ok(Some(value));
            }
        }
    }
}

/// What a search by prefix lists: values of a kind that begin with `prefix`, in byte order, and are greater than `after` if it
/// is given.
pub(super) struct ValueSearch<'q> {
    pub(super) kind: u8,
    pub(super) prefix: &'q str,
    pub(super) after: Option<&'q str>,
    pub(super) limit: usize,
}

impl ValueSearch<'_> {
    /// Returns the least value that may be listed.
    pub(super) fn first(&self) -> ListedValue {
        let value = |text: &str| ListedValue { kind: self.kind, value: text.to_owned() };
        // No value has U+0000: the values after "a\0b" are those after "a".
        let after = self.after.and_then(|after| after.split('\0').next());
        let prefix = value(self.prefix);
        after.map_or(prefix.clone(), |after| value(after).successor().max(prefix))
    }

    /// Returns whether a value that is not before the first one is listed. The values after one that is not are not either.
    pub(super) fn lists(&self, value: &ListedValue) -> bool {
        value.kind == self.kind && value.value.starts_with(self.prefix)
    }

    /// Lists the values of these runs, and of those in memory that the search lists.
    pub(super) async fn list(
        &self,
        store: &dyn LookupIndex,
        runs: &[StoredRun],
        in_memory: Vec<ListedValue>,
    ) -> Result<Vec<String>, StoreError> {
        if self.prefix.contains('\0') {
            return Ok(Vec::new());
        }
        let stored = runs.iter().map(|run| RunValues::new(run, self.first(), SEARCHED_BLOCKS));
        let inputs = stored.chain([RunValues::ready(in_memory)]).collect();
        let mut values = MergedValues::of(inputs, BTreeSet::new());
        let mut found = Vec::new();
        while found.len() < self.limit
            && let Some(next) = values.next(store).await?
            && self.lists(&next)
        {
            found.push(next.value);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(values: &BTreeSet<ListedValue>) -> Vec<ValueBlock> {
        let mut writer = ValueWriter::default();
        let mut blocks: Vec<ValueBlock> =
            values.iter().cloned().filter_map(|value| writer.push(value)).collect();
        blocks.extend(writer.finish());
        blocks
    }

    proptest! {
        #[test]
        fn what_is_cut_into_blocks_is_read_back_in_order(
            values in proptest::collection::btree_set((0_u8..3, "[ab規🦀]{0,40}"), 0..2000),
        ) {
            let values: BTreeSet<ListedValue> =
                values.into_iter().map(|(kind, value)| ListedValue { kind, value }).collect();
            let blocks = blocks(&values);
            prop_assert!(blocks.iter().all(|block| block.bytes.len() <= BLOCK_BYTES));
            let read: Vec<ListedValue> = blocks.iter().flat_map(|block| block.values().unwrap()).collect();
            prop_assert_eq!(read, Vec::from_iter(values));
        }

        #[test]
        fn damaged_bytes_are_refused_or_read_in_order(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let first = ListedValue { kind: 1, value: "abc".to_owned() };
            if let Ok(values) = (ValueBlock { first, bytes }).values() {
                prop_assert!(values.is_sorted());
            }
        }
    }
}
