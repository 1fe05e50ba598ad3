//! Error bodies (SCRAPI, section 2; RFC 9290).

use std::ops::RangeInclusive;

use display::counted;
use http::header::ALLOW;
use http::{Method, StatusCode};
use scitt::cbor::{Limits, Value, parse};
use scitt::limits::{PROBLEM_DEPTH, PROBLEM_ITEMS};
use scitt::{Problem, media};

use crate::check::{ConformanceCheck, must, should};
use crate::exchange::ProbeResponse;
use crate::judgement::{Judgement, Shortfall, not_applicable, quoted, require, violated};
use crate::observations::Observations;
use crate::probe::{HostileInput, Probe};

/// Key of the response code in problem details (RFC 9290, section 2).
const RESPONSE_CODE: i64 = -4;
/// CoAP codes of errors, 4.00 to 5.31 (RFC 7252, section 5.9).
const ERROR_CODES: RangeInclusive<u64> = 0x80..=0xbf;

/// The checks of this module.
pub const CHECKS: &[ConformanceCheck] = &[
    must(
        "problem-content-type",
        "SCRAPI-11, 2",
        "Every 4xx and 5xx has the type application/concise-problem-details+cbor",
        |observations| {
            every_error(observations, |response| match response.has_type(media::PROBLEM) {
                true => None,
                false => Some(response.type_text()),
            })
        },
    ),
    must(
        "problem-body",
        "RFC 9290, 2",
        "The body of every 4xx and 5xx is a CBOR map that is not empty",
        |observations| {
            every_error(observations, |response| {
                Problem::parse(&response.body).err().map(|error| error.to_string())
            })
        },
    ),
    must(
        "problem-title-detail",
        "SCRAPI-11, 2",
        "Every problem has a title (-1) and a detail (-2)",
        |observations| every_error(observations, lacks_text),
    ),
    must(
        "problem-response-code",
        "RFC 9290, 2",
        "A response code (-4) is the CoAP code of an error, not the HTTP status",
        response_codes,
    ),
    should(
        "problem-malformed",
        "SCRAPI-11, 2.3.3",
        "A truncated statement is answered with 400 \"Malformed request\"",
        |observations| {
            title(
                observations,
                Probe::Hostile(HostileInput::Truncated),
                StatusCode::BAD_REQUEST,
                "Malformed request",
            )
        },
    ),
    should(
        "problem-signature",
        "SCRAPI-11, 2.3.3",
        "A wrong signature is answered with 400 \"Rejected\"",
        |observations| {
            title(
                observations,
                Probe::Hostile(HostileInput::WrongSignature),
                StatusCode::BAD_REQUEST,
                "Rejected",
            )
        },
    ),
    should(
        "problem-algorithm",
        "SCRAPI-11, 2.3.3",
        "An unknown algorithm is answered with 400 \"Bad Signature Algorithm\"",
        |observations| {
            title(
                observations,
                Probe::Hostile(HostileInput::UnknownAlgorithm),
                StatusCode::BAD_REQUEST,
                "Bad Signature Algorithm",
            )
        },
    ),
    should(
        "problem-payload",
        "SCRAPI-11, 2.3.3",
        "A missing payload is answered with 400 \"Payload Missing\"",
        |observations| {
            title(
                observations,
                Probe::Hostile(HostileInput::NoPayload),
                StatusCode::BAD_REQUEST,
                "Payload Missing",
            )
        },
    ),
    should(
        "problem-entry",
        "SCRAPI-11, 2.4.3",
        "An unknown entry is answered with 404 \"Not Found\"",
        |observations| title(observations, Probe::UnknownEntry, StatusCode::NOT_FOUND, "Not Found"),
    ),
    should(
        "problem-key",
        "SCRAPI-11, 2.2",
        "An unknown key is answered with 404 \"No such key\"",
        |observations| title(observations, Probe::UnknownKey, StatusCode::NOT_FOUND, "No such key"),
    ),
    must(
        "path-unknown",
        "RFC 9110, 15.5.5",
        "A path that is not a resource is answered with 404",
        |observations| {
            observations.require_status(Probe::UnknownPath, |status| status == StatusCode::NOT_FOUND)
        },
    ),
    should(
        "method-wrong",
        "RFC 9110, 9.1",
        "A method that a resource does not have is answered with 405 or 501",
        |observations| {
            observations.require_status(Probe::WrongMethod, |status| {
                matches!(status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED)
            })
        },
    ),
    must(
        "method-allow",
        "RFC 9110, 15.5.6",
        "405 of /entries has an Allow header field that names POST",
        allow,
    ),
];

/// Applies `complaint` to every error response, and names the first probe of which one is made.
fn every_error(
    observations: &Observations,
    complaint: impl Fn(&ProbeResponse) -> Option<String>,
) -> Judgement {
    let errors: Vec<_> = observations.responses().filter(|(_, response)| response.is_error()).collect();
    if errors.is_empty() {
        return not_applicable("no request was answered with an error");
    }
    let complaints: Vec<_> =
        errors.iter().filter_map(|(probe, response)| Some((probe, response, complaint(response)?))).collect();
    match complaints.first() {
        None => Ok(counted(errors.len(), "error", "errors")),
        Some((probe, response, complaint)) => violated(format!(
            "{} of {}, the first one to {probe:?} ({}): {complaint}",
            complaints.len(),
            counted(errors.len(), "error", "errors"),
            response.status,
        )),
    }
}

fn lacks_text(response: &ProbeResponse) -> Option<String> {
    let problem = Problem::parse(&response.body).unwrap_or_default();
    match (problem.title, problem.detail) {
        (Some(_), Some(_)) => None,
        (None, _) => Some("no title".into()),
        (_, None) => Some("no detail".into()),
    }
}

fn response_codes(observations: &Observations) -> Judgement {
    if !observations.responses().any(|(_, response)| response_code(response).is_some()) {
        return not_applicable("no problem has a response code");
    }
    every_error(observations, |response| match response_code(response)?.as_u64() {
        Some(code) if ERROR_CODES.contains(&code) => None,
        Some(code) => Some(format!("{code} is not a CoAP code of an error")),
        None => Some("no unsigned integer".into()),
    })
}

fn response_code(response: &ProbeResponse) -> Option<Value<'_>> {
    let limits = Limits { depth: PROBLEM_DEPTH, items: PROBLEM_ITEMS };
    let problem = parse(&response.body, limits).ok().filter(|_| response.is_error())?;
    problem.value.get(&RESPONSE_CODE.into()).map(|code| code.value.clone())
}

fn title(observations: &Observations, probe: Probe, status: StatusCode, expected: &str) -> Judgement {
    let response = observations.response(probe)?;
    let Ok(problem) = Problem::parse(&response.body) else {
        return Err(Shortfall::Violated(format!("{} without problem details", response.status)));
    };
    let found = problem.title.unwrap_or_default();
    require(response.status == status && found == expected, format!("{} {}", response.status, quoted(&found)))
}

fn allow(observations: &Observations) -> Judgement {
    let response = observations.with_status(Probe::WrongMethod, StatusCode::METHOD_NOT_ALLOWED)?;
    require(
        response.lists(ALLOW, Method::POST.as_str()),
        response.header(ALLOW).map_or("no Allow".into(), quoted),
    )
}
