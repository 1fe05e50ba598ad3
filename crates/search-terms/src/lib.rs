//! The search terms of a statement: the values under which its entry is found.
//!
//! A table (`table.json`) lists for each content type where the terms stand in the protected header and the payload, and
//! in which form they are taken. [`SearchValues::read`] interprets it. Every statement has terms, valid or not: a value
//! counts if it stands at its place, whatever else the payload holds. A payload that is not strict JSON or CBOR, or that
//! the log does not serve, gives a blind code instead, since it may hold any term.
//!
//! The table never changes within a series of index heads, because a proof shows only that the index has all entries
//! with a term, and a reader of the same table must come to the same terms. `docs/search-index.md` describes it for other
//! implementations, and `vectors/search-terms` has cases.
//!
//! Not here: admission, which has parsers of its own (`registration`), and the index (`lookup-tree`).

mod document;
mod form;
pub mod limits;
mod lookup;
mod node;
mod place;
mod search_values;
mod table;
mod term_set;

pub use lookup::{Lookup, LookupKind};
pub use search_values::{ParsedPayload, SearchValues};
pub use table::{TABLE, table_digest};
