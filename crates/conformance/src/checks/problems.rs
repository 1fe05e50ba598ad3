//! Error bodies (SCRAPI, section 2; RFC 9290).

use display::counted;
use http::StatusCode;
use http::header::ALLOW;
use scitt::{Problem, media};

use crate::check::{ConformanceCheck, must, should};
use crate::exchange::ProbeResponse;
use crate::judgement::{Judgement, Shortfall, not_applicable, quoted, require, violated};
use crate::observations::Observations;
use crate::probe::{HostileInput, Probe};

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
        "A path that is no resource is answered with 404",
        |observations| {
            observations.require_status(Probe::UnknownPath, |status| status == StatusCode::NOT_FOUND)
        },
    ),
    must("method-allow", "RFC 9110, 15.5.6", "405 has an Allow header field", method),
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

fn title(observations: &Observations, probe: Probe, status: StatusCode, expected: &str) -> Judgement {
    let response = observations.response(probe)?;
    let Ok(problem) = Problem::parse(&response.body) else {
        return Err(Shortfall::Violated(format!("{} without problem details", response.status)));
    };
    let found = problem.title.unwrap_or_default();
    require(response.status == status && found == expected, format!("{} {}", response.status, quoted(&found)))
}

fn method(observations: &Observations) -> Judgement {
    let response = observations.with_status(Probe::WrongMethod, StatusCode::METHOD_NOT_ALLOWED)?;
    require(response.headers.contains_key(ALLOW), response.header(ALLOW).map_or("no Allow".into(), quoted))
}
