//! Verification of a SCITT service's receipts as evidence.

use verifier::TrustStore;

use super::{ClaimedHead, Verdict, VerificationResult};
use crate::alarm::AlarmKind;
use crate::evidence::ReceiptSeen;
use crate::scitt_service::{ReceiptPosition, verify};

/// A receipt that verified: its signed position (name, and tree size if any) and root.
struct VerifiedReceipt {
    place: Option<(String, Option<u64>)>,
    root: Option<String>,
}

/// Verifies all receipts with the keys in `known`, and whether they support the accusation. Without `known`, the keys
/// in the evidence (`own`) are used, and the verdict accuses no party.
pub fn judge(
    kind: AlarmKind,
    own: &str,
    known: Option<&TrustStore>,
    receipts: &[ReceiptSeen],
) -> VerificationResult {
    let mut finding = VerificationResult::begin();
    let trust = match known.cloned().map_or_else(|| TrustStore::from_toml(own), Ok) {
        Ok(trust) => trust,
        Err(why) => {
            finding.failed("trust", why.to_string());
            return finding.ends(Verdict::Wrong, "the evidence cannot be read");
        }
    };
    let checked: Vec<Result<VerifiedReceipt, String>> =
        receipts.iter().map(|seen| check(seen, &trust)).collect();
    for (seen, checked) in receipts.iter().zip(&checked) {
        match checked {
            Ok(checked) => {
                finding
                    .ok("receipt", format!("of entry {}, seen at {}: it verifies", seen.entry_id, seen.from));
                finding.heads.extend(head(checked, seen));
            }
            Err(why) => finding.failed("receipt", format!("of entry {}: {why}", seen.entry_id)),
        }
    }
    if known.is_none() {
        finding.not_checked(
            "keys",
            "they are from the evidence itself: compare them with the keys that you know",
        );
    }
    let finding = conclude(finding, kind, &checked);
    match finding.verdict {
        Verdict::Contradiction if known.is_none() => {
            finding.accuses_nobody("give a file of the service's with --trust")
        }
        _ => finding,
    }
}

fn conclude(
    finding: VerificationResult,
    kind: AlarmKind,
    checked: &[Result<VerifiedReceipt, String>],
) -> VerificationResult {
    let word = "only the monitor states that the service gave it, and when";
    match (kind, checked) {
        (AlarmKind::Fork, [Ok(one), Ok(other)]) if one.is_of_the_same(other) && one.root != other.root => {
            finding.ends(Verdict::Contradiction, "the service signed two roots for one tree")
        }
        (AlarmKind::Rollback, [Ok(first), Ok(then)])
            if first.size() > then.size() && then.size().is_some() =>
        {
            finding
                .ends(Verdict::OnWord, format!("a receipt of a larger tree, then one of a smaller; {word}"))
        }
        (AlarmKind::Vanished, [Ok(_)]) => finding.ends(
            Verdict::OnWord,
            "the entry was registered; only the monitor states that it is no longer served",
        ),
        (AlarmKind::Fork | AlarmKind::Rollback | AlarmKind::Vanished, _) | (_, [Ok(_)]) => {
            finding.ends(Verdict::Wrong, "the evidence does not show it")
        }
        _ => finding.ends(Verdict::OnWord, format!("the receipt does not verify; {word}")),
    }
}

impl VerifiedReceipt {
    fn is_of_the_same(&self, other: &Self) -> bool {
        self.place.is_some() && self.place == other.place
    }

    fn size(&self) -> Option<u64> {
        self.place.as_ref()?.1
    }
}

fn check(seen: &ReceiptSeen, trust: &TrustStore) -> Result<VerifiedReceipt, String> {
    let (entry, statement, receipt) = seen.parts()?;
    let verdict = verify(entry, statement.as_ref(), &receipt, trust, seen.at);
    let Some(facts) = verdict.receipts.first().filter(|facts| facts.verified) else {
        return Err(verdict.why().to_owned());
    };
    let place = ReceiptPosition::of(facts).map(|place| match place {
        ReceiptPosition::Size { size, .. } => (place.to_string(), Some(size)),
        ReceiptPosition::Transaction { .. } => (place.to_string(), None),
    });
    Ok(VerifiedReceipt { place, root: facts.root.clone() })
}

fn head(checked: &VerifiedReceipt, seen: &ReceiptSeen) -> Option<ClaimedHead> {
    let (place, size) = checked.place.clone()?;
    let root = checked.root.clone()?;
    Some(ClaimedHead { origin: place, size: size?, root, seen: Some(seen.from.clone()) })
}
