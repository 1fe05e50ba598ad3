//! The filters of a search as a question that a proof answers: values of terms, and a range of leaves.

use merkle::LeafIndex;
use registration::{Lookup, LookupKind};
use search_evidence::{SearchQuestion, search_term};
use verifier::index::SearchTerm;

use super::ListPosition;
use crate::console::{Exit, Failure};

/// Prefix of the digests in the index.
const SHA_256: &str = "sha256:";

/// Converts the filters of a search, as query parameters, and its leaves.
///
/// # Errors
/// If there is no value, or a filter that no proof can be about: the beginning of a value, or a time.
pub fn question<'f>(
    filters: impl Iterator<Item = (&'f str, &'f str)>,
    position: &ListPosition,
) -> Result<SearchQuestion, Failure> {
    let terms = filters.map(|(name, value)| term(name, value)).collect::<Result<Vec<_>, _>>()?;
    if terms.is_empty() {
        return Err(Failure::new(Exit::Usage, "usage", "--prove needs a value to search for"));
    }
    let from = position.after.map_or(0, |leaf| leaf.saturating_add(1));
    Ok(SearchQuestion { terms, from: LeafIndex::new(from), to: position.before.map(LeafIndex::new) })
}

fn term(name: &str, value: &str) -> Result<SearchTerm, Failure> {
    let kind = kind(name).ok_or_else(|| unprovable(name))?;
    let value = match kind {
        LookupKind::Digest | LookupKind::PayloadDigest if !value.starts_with(SHA_256) => {
            format!("{SHA_256}{value}")
        }
        _ => value.to_owned(),
    };
    // The index has long values in a shortened form.
    Ok(search_term(&Lookup::new(kind, &value)))
}

fn unprovable(name: &str) -> Failure {
    Failure::new(Exit::Usage, "usage", format!("no proof can be about {name}"))
        .why("the index proves which entries have a value, and leaves, but neither the beginnings of values nor times")
        .hint("tabellion entry search --by agent=did:web:agent.example --prove")
}

/// The kind of values that a parameter of the search names.
fn kind(name: &str) -> Option<LookupKind> {
    LookupKind::ALL.into_iter().find(|kind| kind.name() == name)
}
