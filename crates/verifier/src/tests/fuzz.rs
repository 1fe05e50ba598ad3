//! Hostile bytes: no panic, and no mutation that verifies.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

static WORLD: LazyLock<World> = LazyLock::new(World::new);

proptest! {
    #[test]
    fn a_mutated_transparent_statement_neither_panics_nor_verifies_as_another(place: usize, flip in 1u8..=255) {
        let mut bytes = WORLD.transparent();
        let length = bytes.len();
        bytes[place % length] ^= flip;
        let verdict = WORLD.verify_bytes(&bytes, &[]);
        if verdict.is_verified() {
            // Only bytes that nobody signs may change: those that leave statement and proof as they are.
            prop_assert_eq!(verdict.statement.unwrap().entry, WORLD.statement.digest());
            prop_assert_eq!(verdict.receipts[0].position.unwrap().to_string(), "leaf 4 of 9");
        }
    }

    #[test]
    fn a_cut_or_extended_message_never_verifies(cut in 1usize..200, tail in proptest::collection::vec(any::<u8>(), 1..20)) {
        let bytes = WORLD.transparent();
        let cut = &bytes[..bytes.len() - cut.min(bytes.len())];
        prop_assert!(!WORLD.verify_bytes(cut, &[]).is_verified());
        prop_assert!(!WORLD.verify_bytes(&[&bytes[..], &tail].concat(), &[]).is_verified());
    }

    #[test]
    fn arbitrary_bytes_are_no_receipt(junk in proptest::collection::vec(any::<u8>(), 0..100)) {
        prop_assert!(!WORLD.verify_bytes(WORLD.statement.bytes(), &[&junk]).is_verified());
        prop_assert!(!WORLD.verify_bytes(&junk, &[&WORLD.receipt]).is_verified());
    }

    #[test]
    fn arbitrary_text_is_no_trust_store(text in ".{0,200}") {
        let _ = TrustStore::from_toml(&text);
        let _ = trust::read_key(&text);
    }
}
