//! Evidence bundles: entries of one log in one file, with everything that a relying party needs to verify them offline.
//!
//! A bundle holds Signed Statements with detached payloads, receipts (RFC 9942), the inclusion proof of each entry in
//! the tree of one checkpoint with its cosignatures (C2SP tlog-proof), and the registration policies that admitted the
//! entries, as entries with the same proofs. The file is canonical JSON (RFC 8785) with byte strings in base64url, so
//! that any language reads it without this crate; `schemas/bundle.json` describes it, `vectors/bundle` has cases.
//!
//! [`EvidenceBundle::parse`] reads a file strictly, and [`EvidenceBundle::verify`] gives a [`BundleVerdict`] under a
//! trust store and a witness policy of the reader. The keys in a bundle are claims ([`BundleClaims`]): no verification
//! uses them. A bundle proves that its entries are in the log, and not that it holds all entries of a session: which
//! entries belong to a session is an unsigned list from the log's index ([`BundleSelection`]).
//!
//! Pure: no I/O, no clock. Not here: gathering a bundle from a log (`tabellion bundle`), rules of content types
//! (`registration`), and printing.

mod encoding;
mod limits;
mod model;
mod read;
mod verdict;
mod verify;

pub use limits::{MAX_BUNDLE_BYTES, MAX_ENTRIES, MAX_PATH, MAX_POLICIES, MAX_SELECTIONS};
pub use model::{
    AdmittedBy, BundleClaims, BundleEntry, BundleProof, BundleSelection, EvidenceBundle, MEDIA_TYPE,
    POLICY_TYPE, SelectedBy, VERSION,
};
pub use read::{MalformedBundle, starts_like_a_bundle};
pub use verdict::BundleVerdict;
