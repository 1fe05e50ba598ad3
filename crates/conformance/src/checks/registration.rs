//! Registration (SCRAPI, section 2.3).

use display::counted;
use http::StatusCode;
use scitt::media;

use crate::check::{ConformanceCheck, must, should};
use crate::judgement::{Judgement, Shortfall, not_applicable, quoted, require, violated};
use crate::observations::{Observations, is_accepted, location, require_retry_after};
use crate::probe::Probe;

/// The checks of this module.
pub const CHECKS: &[ConformanceCheck] = &[
    must(
        "register-status",
        "SCRAPI-11, 2.3",
        "POST /entries answers 201 or 202 for an acceptable statement",
        status,
    ),
    must(
        "register-location",
        "SCRAPI-11, 2.3.1, 2.3.2",
        "The answer has an absolute Location",
        |observations| Ok(location(observations.accepted(Probe::Registration)?)?.to_string()),
    ),
    must(
        "register-body",
        "SCRAPI-11, 2.3.1, 2.3.2",
        "201 has a receipt as its body, 202 an empty body",
        body,
    ),
    should("register-retry-after", "SCRAPI-11, 5.2", "202 has Retry-After", retry_after),
    must(
        "resubmit-status",
        "SCRAPI-11, 2.3",
        "The same statement again is not an error: 201 or 202",
        |observations| {
            observations.accepted(Probe::Registration)?;
            observations.require_status(Probe::Resubmission, is_accepted)
        },
    ),
    must(
        "resubmit-location",
        "SCRAPI-11, 2.3",
        "The same statement has the same Location each time",
        |observations| same_location(observations, Probe::Resubmission),
    ),
    should(
        "resubmit-transparent",
        "RFC 9943, 6.3; SCRAPI-11, 2.3",
        "The statement with its receipt in the unprotected header has the same Location",
        |observations| same_location(observations, Probe::Transparent),
    ),
    should("slow-body", "RFC 9112, 6", "A body that arrives in pieces is read to its end", |observations| {
        observations.accepted(Probe::Registration)?;
        observations.require_status(Probe::SlowBody, is_accepted)
    }),
    must("rate-limit-retry-after", "SCRAPI-11, 5.3", "429 has Retry-After", rate_limits),
];

fn status(observations: &Observations) -> Judgement {
    let response = observations.any_response(Probe::Registration)?;
    match response.status {
        status if is_accepted(status) => Ok(status.to_string()),
        StatusCode::FOUND | StatusCode::SEE_OTHER => {
            violated(format!("{}, as drafts 04 to 10", response.status))
        }
        status if status.is_client_error() => violated(format!(
            "{status}: {}; the statement must be acceptable to the service's policy",
            scitt::Problem::parse(&response.body)
                .map_or_else(|_| "no details".into(), |it| quoted(&it.to_string()))
        )),
        status => violated(status.to_string()),
    }
}

fn body(observations: &Observations) -> Judgement {
    let response = observations.accepted(Probe::Registration)?;
    let length = response.body.len();
    if response.status == StatusCode::ACCEPTED {
        return require(length == 0, format!("202 with {length} bytes"));
    }
    require(
        length > 0 && response.has_type(media::COSE),
        format!("201 with {length} bytes, {}", response.type_text()),
    )
}

fn retry_after(observations: &Observations) -> Judgement {
    let response = observations.accepted(Probe::Registration)?;
    if response.status == StatusCode::CREATED {
        return not_applicable("the receipt came at once (201)");
    }
    require_retry_after(response)
}

fn same_location(observations: &Observations, probe: Probe) -> Judgement {
    let first = observations.registered_location()?;
    let second = location(observations.accepted(probe)?)?;
    require(first == second, quoted(second.as_str()))
}

fn rate_limits(observations: &Observations) -> Judgement {
    let limited = observations.rate_limited();
    if limited.is_empty() {
        return not_applicable("no request of this run was answered with 429");
    }
    for (probe, response) in limited {
        if let Err(Shortfall::Violated(finding)) = require_retry_after(response) {
            return violated(format!("the answer to {probe:?}: {finding}"));
        }
    }
    Ok(counted(limited.len(), "answer with 429", "answers with 429"))
}
