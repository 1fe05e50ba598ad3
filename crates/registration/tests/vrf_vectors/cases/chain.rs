//! Chains across statements: what the log must hold, and what only one entry may claim (readings 10 and 11).

use registration::vrf::VrfRule;
use serde_json::json;
use testkit::ed25519;

use super::{breaks, keeps, numbered};
use crate::Case;
use crate::draft::Draft;

/// The first, second and third receipt of one chain.
fn three() -> [Vec<u8>; 3] {
    let first = numbered(0).sign();
    let second = numbered(1).after(&first, 1).sign();
    let third = numbered(2).after(&second, 2).sign();
    [first, second, third]
}

fn unchained(draft: Draft) -> Draft {
    draft.without(-70004).without(-70005)
}

pub fn chain() -> Vec<Case> {
    use VrfRule::{ChainFork, ChainMismatch, ChainPositionTaken, ChainSecondGenesis};
    let [first, second, third] = three();
    let off = json!({ "chain": "off" });
    let other_issuer = || numbered(3).signer(ed25519([7; 32]));
    vec![
        keeps(ChainMismatch, "linked", "the third receipt, after the second", numbered(3).after(&third, 3))
            .in_log([first.clone(), second.clone(), third.clone()]),
        keeps(
            ChainMismatch,
            "not-asked",
            "any position after any receipt, where the policy keeps no chains",
            numbered(1).after(&first, 7),
        )
        .under(off.clone())
        .in_log([first.clone()]),
        keeps(
            ChainMismatch,
            "after-redacted",
            "a redacted receipt holds its place in the chain",
            numbered(1).after(&numbered(0).redacted().sign(), 1),
        )
        .under(json!({ "allow_redacted": true }))
        .in_log([numbered(0).redacted().sign()]),
        breaks(
            ChainMismatch,
            "skips-a-position",
            "position 2 after position 0",
            numbered(1).after(&first, 2),
        )
        .in_log([first.clone()]),
        breaks(
            ChainMismatch,
            "repeats-a-position",
            "position 1 after position 1",
            numbered(2).after(&second, 1),
        )
        .in_log([first.clone(), second.clone()]),
        breaks(
            ChainMismatch,
            "another-issuers-receipt",
            "extends the chain of another verifier",
            other_issuer().after(&first, 1),
        )
        .in_log([first.clone()]),
        breaks(
            ChainMismatch,
            "another-agents-receipt",
            "extends the chain about another agent",
            numbered(1).sub("did:web:other.example").after(&first, 1),
        )
        .in_log([first.clone()]),
        breaks(
            ChainMismatch,
            "after-an-unchained-receipt",
            "a receipt outside any chain has no successor",
            numbered(1).after(&unchained(numbered(0)).sign(), 1),
        )
        .in_log([unchained(numbered(0)).sign()]),
        keeps(
            ChainFork,
            "gap",
            "a receipt whose predecessor the log does not hold: nobody else claimed to follow it",
            numbered(2).after(&second, 2),
        )
        .in_log([first.clone()]),
        keeps(
            ChainFork,
            "not-asked",
            "a fork, where the policy keeps no chains",
            numbered(3).after(&first, 1),
        )
        .under(off.clone())
        .in_log([first.clone(), second.clone()]),
        breaks(
            ChainFork,
            "second-successor",
            "two receipts follow the same one",
            numbered(3).after(&first, 1),
        )
        .in_log([first.clone(), second.clone()]),
        breaks(
            ChainFork,
            "second-successor-of-an-unknown",
            "two receipts follow the same one, which the log does not hold",
            numbered(3).after(&second, 2),
        )
        .in_log([first.clone(), third.clone()]),
        breaks(
            ChainFork,
            "redacted",
            "a fork that does not say what it verified",
            numbered(3).after(&first, 1).redacted(),
        )
        .under(json!({ "allow_redacted": true }))
        .in_log([first.clone(), second.clone()]),
        breaks(
            ChainFork,
            "same-receipt-id",
            "breaks two rules, and is told by the one that proves the issuer dishonest",
            Draft::changed(|receipt| {
                receipt["receipt_id"] = testkit::receipt_json(1)["receipt_id"].clone();
                receipt["tier"] = json!(1);
            })
            .after(&first, 1),
        )
        .in_log([first.clone(), second.clone()]),
        keeps(
            ChainPositionTaken,
            "another-position",
            "two receipts after receipts that the log does not hold",
            numbered(4).after(&numbered(5).sign(), 3),
        )
        .in_log([first.clone(), third.clone()]),
        keeps(
            ChainPositionTaken,
            "not-asked",
            "one position twice, where the policy keeps no chains",
            numbered(4).after(&numbered(5).sign(), 2),
        )
        .under(off.clone())
        .in_log([first.clone(), third.clone()]),
        keeps(
            ChainPositionTaken,
            "after-a-wrong-hash",
            "the right receipt at a position where one stands that names a receipt which the log does not hold",
            numbered(3).after(&third, 3),
        )
        .in_log([first.clone(), second.clone(), numbered(4).after(&numbered(5).sign(), 3).sign(), third.clone()]),
        breaks(
            ChainPositionTaken,
            "after-another",
            "two receipts at one position, each after one that the log holds at the position before",
            numbered(6).after(&numbered(4).after(&numbered(5).sign(), 2).sign(), 3),
        )
        .in_log([
            first.clone(),
            numbered(4).after(&numbered(5).sign(), 2).sign(),
            numbered(7).after(&numbered(8).sign(), 2).sign(),
            numbered(9).after(&numbered(7).after(&numbered(8).sign(), 2).sign(), 3).sign(),
        ]),
        breaks(
            ChainMismatch,
            "another-at-the-position-before",
            "the log holds the first receipt of the chain, and the second names another one",
            numbered(1).after(&numbered(5).sign(), 1),
        )
        .in_log([first.clone()]),
        keeps(
            ChainSecondGenesis,
            "another-agent",
            "a chain for each agent",
            numbered(1).sub("did:web:other.example"),
        )
        .in_log([first.clone()]),
        keeps(ChainSecondGenesis, "another-issuer", "a chain for each verifier", other_issuer())
            .in_log([first.clone()]),
        keeps(ChainSecondGenesis, "not-asked", "two chains, where the policy keeps none", numbered(1))
            .under(off)
            .in_log([first.clone()]),
        breaks(
            ChainSecondGenesis,
            "second-genesis",
            "the issuer starts the agent's chain anew, without what it said before",
            numbered(1),
        )
        .in_log([first]),
    ]
}

pub fn strict() -> Vec<Case> {
    use VrfRule::{ChainRequired, ChainUnknownPredecessor};
    let [first, second, _] = three();
    let strict = || json!({ "chain": "strict" });
    vec![
        keeps(
            ChainUnknownPredecessor,
            "known",
            "the log holds the predecessor",
            numbered(1).after(&first, 1),
        )
        .under(strict())
        .in_log([first]),
        keeps(
            ChainUnknownPredecessor,
            "linked",
            "it may still come, where the policy says \"linked\"",
            numbered(2).after(&second, 2),
        ),
        breaks(
            ChainUnknownPredecessor,
            "unknown",
            "the log does not hold the predecessor",
            numbered(2).after(&second, 2),
        )
        .under(strict()),
        keeps(ChainRequired, "first", "the first receipt of a chain", numbered(0)).under(strict()),
        keeps(
            ChainRequired,
            "linked",
            "a receipt outside any chain, where the policy says \"linked\"",
            unchained(numbered(0)),
        ),
        breaks(ChainRequired, "unchained", "a receipt outside any chain", unchained(numbered(0)))
            .under(strict()),
    ]
}
