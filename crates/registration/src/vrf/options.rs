//! Policy options for verification receipts, `[type.vrf]`.

use scitt::Algorithm;
use serde_json::{Value, json};

use super::chain::Member;
use super::{Chain, ChainMode, Receipt, VrfIssuer, VrfRecord, VrfRedacted, VrfRule};
use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::guard::{Guard, GuardKind};
use crate::limits::CLOCK_SKEW;
use crate::pattern::{IssuerPattern, pattern, patterns};
use crate::section::{Section, switch};
use crate::time_window::{Bound, TimeWindow};
use crate::violation::{Place, RuleName, Violation};

/// Policy options for verification receipts. The defaults are the strictest values, except [`ChainMode::Linked`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VrfOptions {
    /// The lowest admitted tier (section 6.2).
    pub min_tier: i64,
    /// True to admit receipts that are not structural (section 7).
    pub allow_non_structural: bool,
    /// True to admit issuers other than did:keys, such as a URL or did:web, with the keys and certificates that the
    /// policy accepts for them (section 5.4; reading 4).
    pub allow_other_issuers: bool,
    /// True to admit alg -19 in addition to -8 (reading 6).
    pub allow_ed25519_algorithm: bool,
    /// True to admit `+00:00` at the end of `verified_at` (reading 17).
    pub allow_numeric_offset: bool,
    /// The requirement on chains (reading 11).
    pub chain: ChainMode,
    /// True to admit receipts by their hash (reading 21), whose verdict and tier the log does not know.
    pub allow_redacted: bool,
    /// The issuers who may register receipts by their hash; empty for all that the type admits.
    pub redacted_issuers: Vec<IssuerPattern>,
}

impl VrfOptions {
    /// Parses the policy's table `[type.vrf]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let options = VrfOptions {
            min_tier: section.optional("min_tier", tier).unwrap_or(0),
            allow_non_structural: section.optional("allow_non_structural", switch).unwrap_or(false),
            allow_other_issuers: section.optional("allow_other_issuers", switch).unwrap_or(false),
            allow_ed25519_algorithm: section.optional("allow_ed25519_algorithm", switch).unwrap_or(false),
            allow_numeric_offset: section.optional("allow_numeric_offset", switch).unwrap_or(false),
            chain: section.optional("chain", ChainMode::read).unwrap_or_default(),
            allow_redacted: section.optional("allow_redacted", switch).unwrap_or(false),
            redacted_issuers: section.values("redacted_issuers", pattern),
        };
        if !options.allow_redacted && !options.redacted_issuers.is_empty() {
            section.note("redacted_issuers", "without `allow_redacted = true`, no issuer may");
        }
        options
    }

    /// Checks the issuer and the algorithm of a statement against the options.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn take_header(&self, issuer: &VrfIssuer, algorithm: Option<Algorithm>) -> Result<(), Violation> {
        if !self.allow_other_issuers {
            issuer.must_be_did_key()?;
        }
        match algorithm == Some(Algorithm::Ed25519) && !self.allow_ed25519_algorithm {
            false => Ok(()),
            true => Err(VrfRule::Algorithm.in_header("1", "the policy takes EdDSA (-8) only, not -19")),
        }
    }

    /// Checks a receipt against the options: when it is registered, or after its disclosure.
    pub fn take(&self, receipt: &Receipt) -> Result<(), Violation> {
        if receipt.verified_at.numeric_offset && !self.allow_numeric_offset {
            let detail = "the policy takes UTC as Z only, not as +00:00";
            return Err(VrfRule::UtcOffset.in_payload("/verified_at", detail));
        }
        match receipt.tier {
            _ if !receipt.structural && self.allow_non_structural => Ok(()),
            _ if !receipt.structural => Err(VrfRule::NonStructural
                .in_payload("/metadata/structural", "the policy takes structural receipts only")),
            Some(tier) if tier < self.min_tier => {
                let detail = format!("tier {tier}, the policy asks for {} or more", self.min_tier);
                Err(VrfRule::MinimumTier.in_payload("/tier", detail))
            }
            _ => Ok(()),
        }
    }

    /// Serializes the table with every option.
    pub(crate) fn document(&self) -> Value {
        json!({
            "min_tier": self.min_tier,
            "allow_non_structural": self.allow_non_structural,
            "allow_other_issuers": self.allow_other_issuers,
            "allow_ed25519_algorithm": self.allow_ed25519_algorithm,
            "allow_numeric_offset": self.allow_numeric_offset,
            "chain": self.chain.name(),
            "allow_redacted": self.allow_redacted,
            "redacted_issuers": patterns(&self.redacted_issuers),
        })
    }
}

fn tier(value: &Value) -> Result<i64, String> {
    value.as_i64().filter(|tier| (0..=3).contains(tier)).ok_or_else(|| "a tier is 0, 1, 2 or 3".to_owned())
}

/// Adds the questions to the log that the check needs answered.
pub(super) fn questions(
    options: &VrfOptions,
    statement: &Authenticated<'_>,
    chain: Chain,
    asked: &mut Questions,
) {
    member(statement, chain).ask(options.chain, asked);
}

/// Checks a receipt against the policy's options, and returns its demands.
pub(super) fn check(
    options: &VrfOptions,
    statement: &Authenticated<'_>,
    record: &VrfRecord,
    log: &Answers,
) -> Result<PermitDemands, Violation> {
    let receipt = &record.receipt;
    options.take_header(&record.issuer, Some(statement.algorithm()))?;
    options.take(receipt)?;
    let verified_at = Bound {
        rule: RuleName::fixed(VrfRule::VerifiedAtFuture.name()),
        place: Place::payload("/verified_at"),
        window: TimeWindow::from(receipt.verified_at.unix_seconds.saturating_sub(CLOCK_SKEW)),
    };
    let claims = claim(options, statement, record.chain, &receipt.receipt_id, log)?;
    Ok(PermitDemands { bounds: vec![verified_at], ..claims })
}

/// Checks a receipt registered by its hash, as far as its header permits.
pub(super) fn check_redacted(
    options: &VrfOptions,
    statement: &Authenticated<'_>,
    redacted: &VrfRedacted,
    log: &Answers,
) -> Result<PermitDemands, Violation> {
    options.take_header(&redacted.headers.issuer, Some(statement.algorithm()))?;
    let issuers = &options.redacted_issuers;
    let listed = issuers.is_empty() || issuers.iter().any(|pattern| pattern.fits(statement.iss()));
    if !(options.allow_redacted && listed) {
        let detail = "the policy does not take this issuer's receipts by their hash";
        return Err(VrfRule::Redacted.in_header("258", detail));
    }
    let headers = &redacted.headers;
    claim(options, statement, headers.chain, &headers.receipt_id, log)
}

/// Returns the demands of the receipt's guards. The chain comes first, so that a statement that breaks both rules is refused and reported
/// for the fork.
fn claim(
    options: &VrfOptions,
    statement: &Authenticated<'_>,
    chain: Chain,
    receipt_id: &str,
    log: &Answers,
) -> Result<PermitDemands, Violation> {
    let mut demands = member(statement, chain).check(options.chain, log)?;
    let parts = [statement.iss().as_bytes(), receipt_id.as_bytes()];
    demands.guards.push(Guard::new(GuardKind::VrfReceiptId, &parts));
    Ok(demands)
}

fn member<'a>(statement: &'a Authenticated<'_>, chain: Chain) -> Member<'a> {
    Member { iss: statement.iss(), sub: statement.sub(), digest: statement.digest(), chain }
}
