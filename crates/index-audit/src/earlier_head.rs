//! A head among the entries of a log.

use merkle::LeafIndex;

/// A head that was compared before another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierHead {
    /// The leaf of its statement.
    pub leaf: LeafIndex,
    /// The entry ID of its statement.
    pub entry: String,
    /// The horizon of the head.
    pub horizon: LeafIndex,
}
