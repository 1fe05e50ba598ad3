//! `tabellion verify --max-age`: the work was verified (VRF) not longer ago than this.

use std::str::FromStr;
use std::time::Duration;

use serving::units::parse_duration;
use verifier::{Check, CheckName, CheckState, Code, StatementEvidence, StatementVerdict, TrustStore};
use vrf_evidence::VrfVerifier;

/// The maximum age of a verification.
#[derive(Clone, Copy, Debug)]
pub struct MaxAge(Duration);

impl FromStr for MaxAge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_duration(text)
            .map(MaxAge)
            .ok_or_else(|| "expected a number with s, m, h or d, as in 30d".to_owned())
    }
}

impl MaxAge {
    /// The earliest time that is not too old at `now`, both in Unix seconds.
    pub fn earliest(self, now: u64) -> i64 {
        i64::try_from(now.saturating_sub(self.0.as_secs())).unwrap_or(i64::MAX)
    }

    /// Adds the check to the verdict. A statement whose age is not known does not verify.
    pub fn check(
        self,
        verdict: &mut StatementVerdict,
        evidence: &StatementEvidence<'_>,
        trust: &TrustStore,
        now: u64,
    ) {
        let dated = match VrfVerifier::new(trust).verify(evidence, now) {
            Ok(evidence) => evidence.dated_at().ok_or_else(|| "the VRF receipt is not disclosed".to_owned()),
            Err(fault) => Err(format!("this is not a VRF receipt: {fault}")),
        };
        let (state, code, detail) = match dated {
            Err(why) => (CheckState::NotDone, Some(Code::AgeUnknown), why),
            Ok(dated) => {
                let age = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(dated).max(0);
                let detail = format!("verified {age} s ago, at most {} s are allowed", self.0.as_secs());
                match dated < self.earliest(now) {
                    true => (CheckState::Failed, Some(Code::TooOld), detail),
                    false => (CheckState::Ok, None, detail),
                }
            }
        };
        verdict.require(Check { name: CheckName::Age, receipt: None, state, code, detail });
    }
}
