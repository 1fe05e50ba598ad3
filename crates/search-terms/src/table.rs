//! The table of search terms, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use scitt::header::{ContentType, Header};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::document::Encoding;
use crate::form::ValueForm;
use crate::lookup::LookupKind;
use crate::place::{HeaderPath, PayloadPath, ValuePattern};

/// The text of the table.
pub const TABLE: &str = include_str!("../table.json");

/// The parsed table.
static PARSED: LazyLock<TermTable> =
    LazyLock::new(|| jose::json::read_text(TABLE).expect("a test has parsed the table"));

/// Returns the SHA-256 digest of the table's text.
pub fn table_digest() -> [u8; 32] {
    Sha256::digest(TABLE).into()
}

/// The table of search terms.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TermTable {
    #[serde(rename = "version")]
    _version: u64,
    /// The numbers of the kinds, for other implementations. They are those of [`LookupKind`].
    #[serde(rename = "kinds")]
    _kinds: BTreeMap<LookupKind, u8>,
    /// The terms of all statements.
    pub all_statements: CommonTerms,
    content_types: Vec<ContentTerms>,
}

/// The terms of all statements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommonTerms {
    /// Terms in the protected header.
    pub header: Vec<Selector<HeaderPath>>,
    /// The kinds of the digest of the content.
    pub content_digest: Vec<LookupKind>,
}

/// The further terms of statements with one of these content types.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentTerms {
    names: BTreeMap<String, Encoding>,
    /// Terms in the protected header.
    #[serde(default)]
    pub header: Vec<Selector<HeaderPath>>,
    /// Terms in the payload.
    #[serde(default)]
    pub payload: Vec<Selector<PayloadPath>>,
    /// Lists of items that have terms.
    #[serde(default)]
    pub lists: Vec<ItemTerms>,
}

/// The terms of the items of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemTerms {
    /// The path of the items.
    pub at: PayloadPath,
    /// The path of further items within an item, at any depth.
    pub nested: Option<PayloadPath>,
    /// Terms within an item.
    pub terms: Vec<Selector<PayloadPath>>,
}

/// The selector of a term: its kind, the place of its value, and the form in which the value is taken.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selector<P> {
    /// The kind of the term.
    pub kind: LookupKind,
    /// The place of the value.
    pub at: P,
    /// The form of the value.
    #[serde(default)]
    pub form: ValueForm,
    /// Members of the item, and the texts of which each must have one.
    #[serde(default)]
    pub when: BTreeMap<String, Vec<String>>,
    only: Option<Vec<ValuePattern>>,
    #[serde(default)]
    except: Vec<ValuePattern>,
}

impl<P> Selector<P> {
    /// Returns whether a value is taken: it has one of the patterns `only`, if there are some, and none of `except`.
    pub fn takes(&self, value: &str) -> bool {
        let matches = |patterns: &[ValuePattern]| patterns.iter().any(|pattern| pattern.matches(value));
        self.only.as_deref().is_none_or(matches) && !matches(&self.except)
    }
}

impl TermTable {
    /// Returns the table.
    pub fn get() -> &'static TermTable {
        &PARSED
    }

    /// Returns the row of a statement's content type, or of the preimage content type of a hash envelope, with the
    /// encoding of the payload.
    pub fn row_of(&self, header: &Header) -> Option<(&ContentTerms, Encoding)> {
        let content_type = match header.hash_envelope() {
            Some(envelope) => envelope.preimage_content_type.as_ref(),
            None => header.content_type(),
        };
        let media_type = content_type.and_then(ContentType::as_text).map(without_parameters)?;
        self.content_types.iter().find_map(|row| {
            let mut names = row.names.iter();
            let (_, encoding) = names.find(|(name, _)| name.eq_ignore_ascii_case(media_type))?;
            Some((row, *encoding))
        })
    }
}

/// Returns a media type without parameters, and without the blanks around it.
fn without_parameters(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_kind_under_its_number() {
        let numbers: BTreeMap<_, _> = LookupKind::ALL.iter().map(|kind| (*kind, kind.number())).collect();
        assert_eq!(TermTable::get()._kinds, numbers);
    }

    #[test]
    fn the_documentation_names_the_table_by_its_digest() {
        let page = include_str!("../../../docs/search-index.md");
        let digest = data_encoding::HEXLOWER.encode(&table_digest());
        assert!(page.contains(&digest), "another table is another series of heads: {digest}");
    }

    #[test]
    fn no_content_type_has_two_rows() {
        let rows = &TermTable::get().content_types;
        let names: Vec<_> = rows.iter().flat_map(|row| row.names.keys()).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(names.len(), distinct.len());
        assert!(names.iter().all(|name| without_parameters(name) == name.as_str()));
    }
}
