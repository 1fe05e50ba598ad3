//! What a policy may choose about VRF receipts.

use scitt::Algorithm;
use serde_json::{Value, json};

use super::{VrfRecord, VrfRule};
use crate::answers::Answers;
use crate::authenticate::Authenticated;
use crate::decision::{Bound, Permit, TimeWindow};
use crate::guard::{Guard, GuardKind};
use crate::limits::CLOCK_SKEW;
use crate::policy::section::{Section, switch};
use crate::violation::{Place, RuleName, Violation};

/// What a policy may choose about VRF receipts. The default is the strict choice everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VrfOptions {
    /// The lowest tier admitted (section 6.2).
    pub min_tier: i64,
    /// Whether receipts that are not structural are admitted (section 7).
    pub allow_non_structural: bool,
    /// Whether alg -19 is as good as -8 (reading 6).
    pub allow_ed25519_algorithm: bool,
    /// Whether `verified_at` may end in `+00:00` (reading 17).
    pub allow_numeric_offset: bool,
}

impl VrfOptions {
    /// Reads the policy's table `[type.vrf]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        VrfOptions {
            min_tier: section.optional("min_tier", tier).unwrap_or(0),
            allow_non_structural: section.optional("allow_non_structural", switch).unwrap_or(false),
            allow_ed25519_algorithm: section.optional("allow_ed25519_algorithm", switch).unwrap_or(false),
            allow_numeric_offset: section.optional("allow_numeric_offset", switch).unwrap_or(false),
        }
    }

    /// The table, with every setting written out.
    pub(crate) fn document(&self) -> Value {
        json!({
            "min_tier": self.min_tier,
            "allow_non_structural": self.allow_non_structural,
            "allow_ed25519_algorithm": self.allow_ed25519_algorithm,
            "allow_numeric_offset": self.allow_numeric_offset,
        })
    }
}

fn tier(value: &Value) -> Result<i64, String> {
    value.as_i64().filter(|tier| (0..=3).contains(tier)).ok_or_else(|| "a tier is 0, 1, 2 or 3".to_owned())
}

/// What a policy may choose about VRF receipts, and what only the log can keep.
pub(crate) fn check(
    options: &VrfOptions,
    statement: &Authenticated<'_>,
    record: &VrfRecord,
    log: &Answers,
    permit: &mut Permit,
) -> Result<(), Violation> {
    let _ = log;
    let receipt = &record.receipt;
    if statement.algorithm() == Algorithm::Ed25519 && !options.allow_ed25519_algorithm {
        return Err(VrfRule::Algorithm.in_header("1", "the policy takes EdDSA (-8) only, not -19"));
    }
    if receipt.verified_at.numeric_offset && !options.allow_numeric_offset {
        return Err(
            VrfRule::UtcOffset.in_payload("/verified_at", "the policy takes UTC as Z only, not as +00:00")
        );
    }
    match receipt.tier {
        _ if !receipt.structural && options.allow_non_structural => {}
        _ if !receipt.structural => {
            return Err(VrfRule::NonStructural
                .in_payload("/metadata/structural", "the policy takes structural receipts only"));
        }
        Some(tier) if tier < options.min_tier => {
            let detail = format!("tier {tier}, the policy asks for {} or more", options.min_tier);
            return Err(VrfRule::MinimumTier.in_payload("/tier", detail));
        }
        _ => {}
    }
    permit.bounds.push(Bound {
        rule: RuleName::fixed(VrfRule::VerifiedAtFuture.name()),
        place: Place::payload("/verified_at"),
        window: TimeWindow::from(receipt.verified_at.unix_seconds.saturating_sub(CLOCK_SKEW)),
    });
    permit.guards.push(Guard::new(
        GuardKind::VrfReceiptId,
        &[statement.iss().as_bytes(), receipt.receipt_id.as_bytes()],
    ));
    Ok(())
}
