//! Equivocation: an issuer that claims a place of a chain twice has signed the proof of it, and the proof is kept.
//!
//! One statement is an entry; the other was refused, and is nowhere if not here.
//!
//! Not here: what a chain is (`registration::vrf`), and what becomes of those who break theirs: whoever reads
//! `/v1/equivocations` decides.

use registration::GuardKind;
use store::GuardKey;

/// Whether two claims of this key contradict each other.
pub fn is_proven_by(key: &GuardKey) -> bool {
    GuardKind::of_key(&key.0).is_some_and(GuardKind::is_of_a_chain)
}
