//! Content types of statements (SCRAPI, section 2.3; RFC 9052, section 12.3).

use http::StatusCode;

use crate::check::{ConformanceCheck, should};
use crate::judgement::Judgement;
use crate::observations::{Observations, is_accepted};
use crate::probe::Probe;

/// The checks of this module.
pub const CHECKS: &[ConformanceCheck] = &[
    should(
        "type-parameter",
        "RFC 9052, 12.3",
        "application/cose; cose-type=\"cose-sign1\" is understood",
        |observations| {
            observations.accepted(Probe::Registration)?;
            observations.require_status(Probe::TypeWithParameter, is_accepted)
        },
    ),
    should(
        "type-wrong",
        "RFC 9110, 15.5.16",
        "A statement sent as application/json is answered with 4xx",
        |observations| observations.require_status(Probe::WrongType, |status| status.is_client_error()),
    ),
    should("type-wrong-status", "RFC 9110, 15.5.16", "The status for a wrong type is 415", |observations| {
        observations.require_status(Probe::WrongType, |status| status == StatusCode::UNSUPPORTED_MEDIA_TYPE)
    }),
    should(
        "type-missing",
        "RFC 9110, 8.3",
        "A statement without a type is accepted, or refused with 4xx",
        no_type,
    ),
];

fn no_type(observations: &Observations) -> Judgement {
    observations.require_status(Probe::NoType, |status| status.is_success() || status.is_client_error())
}
