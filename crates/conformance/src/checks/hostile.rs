//! Statements that must not be registered, and input that must not harm the service.

use display::counted;
use http::StatusCode;
use scitt::KeySet;

use crate::check::{ConformanceCheck, must, should};
use crate::judgement::{Judgement, not_applicable, require, violated};
use crate::observations::Observations;
use crate::probe::{HostileInput, Probe};

/// The checks of this module.
pub const CHECKS: &[ConformanceCheck] = &[
    must("hostile-empty", "SCRAPI-11, 2.3.3", "An empty body is refused with 4xx", |observations| {
        refused(observations, HostileInput::Empty)
    }),
    must("hostile-text", "SCRAPI-11, 2.3.3", "Text is refused with 4xx", |observations| {
        refused(observations, HostileInput::Text)
    }),
    must(
        "hostile-truncated",
        "RFC 8949, 5.3.1",
        "A statement that is cut short is refused with 4xx",
        |observations| refused(observations, HostileInput::Truncated),
    ),
    should(
        "hostile-trailing-byte",
        "RFC 8949, 5.3.1",
        "A byte after the statement is refused with 4xx",
        |observations| refused(observations, HostileInput::TrailingByte),
    ),
    should(
        "hostile-untagged",
        "RFC 9943, 6",
        "A COSE_Sign1 without its tag is refused with 4xx",
        |observations| refused(observations, HostileInput::Untagged),
    ),
    must(
        "hostile-wrong-tag",
        "RFC 9943, 6",
        "A message with the tag of COSE_Mac0 is refused with 4xx",
        |observations| refused(observations, HostileInput::WrongTag),
    ),
    must(
        "hostile-length",
        "RFC 8949, 10",
        "A string that announces 2^63 bytes is refused with 4xx",
        |observations| refused(observations, HostileInput::AnnouncedLength),
    ),
    should(
        "hostile-indefinite",
        "RFC 8949, 3.2",
        "An array of indefinite length is accepted, or refused with 4xx",
        |observations| survived(observations, HostileInput::IndefiniteLength),
    ),
    must(
        "hostile-duplicate-label",
        "RFC 9052, 3",
        "A label twice in the unprotected header is refused with 4xx",
        |observations| refused(observations, HostileInput::DuplicateLabel),
    ),
    must(
        "hostile-critical",
        "RFC 9052, 3.1",
        "A statement with crit (2) in its unprotected header is refused with 4xx",
        |observations| refused(observations, HostileInput::UnprotectedCritical),
    ),
    should(
        "hostile-both-headers",
        "RFC 9052, 3",
        "A statement with the same labels in both headers is refused with 4xx",
        |observations| refused(observations, HostileInput::BothHeaders),
    ),
    should(
        "hostile-nesting",
        "RFC 8949, 10",
        "50,000 nested arrays are accepted, or refused with 4xx",
        |observations| survived(observations, HostileInput::DeepNesting),
    ),
    must(
        "hostile-unprotected",
        "RFC 9943, 6.1",
        "A statement without protected claims is refused with 4xx",
        |observations| refused_signed(observations, HostileInput::UnprotectedClaims),
    ),
    must(
        "hostile-no-kid",
        "RFC 9943, 6",
        "A statement without a protected kid, x5t or x5chain is refused with 4xx",
        |observations| refused_signed(observations, HostileInput::NoKid),
    ),
    must(
        "hostile-unknown-critical",
        "RFC 9052, 3.1",
        "A statement with an unknown label in its protected crit (2) is refused with 4xx",
        |observations| refused_signed(observations, HostileInput::UnknownCritical),
    ),
    must(
        "hostile-protected-duplicate",
        "RFC 9052, 3",
        "A label twice in the protected header is refused with 4xx",
        |observations| refused_signed(observations, HostileInput::ProtectedDuplicate),
    ),
    should(
        "hostile-hash-envelope",
        "RFC 9995",
        "A hash envelope with a content type (3) is refused with 4xx",
        |observations| refused_signed(observations, HostileInput::TypedHashEnvelope),
    ),
    must(
        "hostile-signature",
        "SCRAPI-11, 2.3; RFC 9943, 5.1.1.1",
        "A statement with a wrong signature is refused with 4xx",
        |observations| refused(observations, HostileInput::WrongSignature),
    ),
    must(
        "hostile-algorithm",
        "SCRAPI-11, 2.3.3",
        "A statement with an unassigned algorithm is refused with 4xx",
        |observations| refused(observations, HostileInput::UnknownAlgorithm),
    ),
    must(
        "hostile-payload",
        "SCRAPI-11, 2.3.3",
        "A statement whose payload was not sent is refused with 4xx",
        |observations| refused(observations, HostileInput::NoPayload),
    ),
    should(
        "hostile-size",
        "RFC 9110, 15.5.14",
        "A body of 9 MiB that is not a statement is refused with 4xx",
        |observations| refused(observations, HostileInput::TooLarge),
    ),
    must(
        "still-serving",
        "SCRAPI-11, 4",
        "After all hostile input, the service serves its keys",
        still_serving,
    ),
];

fn refused(observations: &Observations, input: HostileInput) -> Judgement {
    observations.require_status(Probe::Hostile(input), |status| status.is_client_error())
}

/// Decides about an input that only the issuer's key can sign.
fn refused_signed(observations: &Observations, input: HostileInput) -> Judgement {
    match observations.was_not_sent(Probe::Hostile(input)) {
        true => not_applicable("the issuer's key, which signs this request, was not given"),
        false => refused(observations, input),
    }
}

fn survived(observations: &Observations, input: HostileInput) -> Judgement {
    observations
        .require_status(Probe::Hostile(input), |status| status.is_success() || status.is_client_error())
}

fn still_serving(observations: &Observations) -> Judgement {
    let answers = counted(observations.responses().count(), "answer", "answers");
    let response = observations.response(Probe::KeysAgain)?;
    match KeySet::parse(&response.body) {
        Err(error) if response.status == StatusCode::OK => violated(format!("no key set: {error}")),
        _ => require(response.status == StatusCode::OK, format!("{} after {answers}", response.status)),
    }
}
