//! The entries of a header map, before their values are read.

use std::ops::Range;

use super::value::wrong_type;
use crate::cbor::Item;
use crate::label::Label;
use crate::malformed::Malformed;

/// The entries of a header map: label, value, and the offset of the key.
pub(crate) struct HeaderEntries<'i, 'a>(Vec<(Label, &'i Item<'a>, usize)>);

impl<'i, 'a> HeaderEntries<'i, 'a> {
    pub(crate) fn get(&self, label: &Label) -> Option<&'i Item<'a>> {
        self.0.iter().find(|(candidate, ..)| candidate == label).map(|(_, item, _)| *item)
    }

    pub(crate) fn int(&self, label: i64) -> Option<&'i Item<'a>> {
        self.0.iter().find(|(candidate, ..)| *candidate == Label::Int(label)).map(|(_, item, _)| *item)
    }

    /// Returns each label with the byte offset of its key.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&Label, usize)> {
        self.0.iter().map(|(label, _, offset)| (label, *offset))
    }

    /// Returns the byte span of each value, counted from `base`.
    pub(crate) fn spans_from(&self, base: usize) -> Vec<(Label, Range<usize>)> {
        let span = |item: &Item<'_>| item.offset - base..item.end - base;
        self.0.iter().map(|(label, item, _)| (label.clone(), span(item))).collect()
    }
}

pub(crate) fn read_entries<'i, 'a>(
    item: &'i Item<'a>,
    what: &'static str,
) -> Result<HeaderEntries<'i, 'a>, Malformed> {
    let map = item.value.as_map().ok_or_else(|| wrong_type(item, what, "a map"))?;
    let entry = |(key, value): &'i (Item<'a>, Item<'a>)| Ok((Label::read(key)?, value, key.offset));
    map.iter().map(entry).collect::<Result<_, _>>().map(HeaderEntries)
}
