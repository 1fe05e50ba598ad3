//! Resolution of receipts (SCRAPI, section 2.4).

use http::StatusCode;
use http::header::{CACHE_CONTROL, RETRY_AFTER};
use scitt::media;

use crate::check::{ConformanceCheck, must, should};
use crate::exchange::ProbeResponse;
use crate::judgement::{Judgement, Shortfall, not_applicable, quoted, require, violated};
use crate::observations::{Observations, location};
use crate::probe::Probe;

/// The checks of this module.
pub const CHECKS: &[ConformanceCheck] = &[
    must(
        "resolve-status",
        "SCRAPI-11, 2.4.1",
        "GET of the Location answers 200 once the statement is registered",
        status,
    ),
    must(
        "resolve-content-type",
        "SCRAPI-11, 2.4.1",
        "The receipt has the type application/cose",
        |observations| {
            let response = observations.with_status(Probe::Receipt, StatusCode::OK)?;
            require(response.has_type(media::COSE), response.type_text())
        },
    ),
    should(
        "resolve-location",
        "SCRAPI-11, 2.4.1",
        "The receipt's answer repeats its Location",
        same_location,
    ),
    should(
        "resolve-without-accept",
        "RFC 9110, 12.5.1",
        "A request without Accept gets the receipt",
        |observations| {
            observations.require_status(Probe::ReceiptWithoutAccept, |status| status == StatusCode::OK)
        },
    ),
    must(
        "running-status",
        "SCRAPI-11, 2.4.2",
        "While the registration runs, the answer is 204 without a body",
        running,
    ),
    should("running-retry-after", "SCRAPI-11, 5.2", "204 has Retry-After", |observations| {
        let found = in_progress(observations)?.header(RETRY_AFTER);
        require(found.is_some(), found.map_or("none".into(), quoted))
    }),
    should("running-no-store", "SCRAPI-11, 2.4.2", "204 has Cache-Control: no-store", |observations| {
        let found = in_progress(observations)?.header(CACHE_CONTROL).unwrap_or_default();
        require(found.contains("no-store"), quoted(found))
    }),
    must("entry-unknown", "SCRAPI-11, 2.4.3", "An unknown entry is answered with 4xx", |observations| {
        observations.require_status(Probe::UnknownEntry, |status| status.is_client_error())
    }),
    should(
        "entry-unknown-status",
        "SCRAPI-11, 2.4.3",
        "An unknown entry is answered with 404",
        |observations| {
            observations.require_status(Probe::UnknownEntry, |status| status == StatusCode::NOT_FOUND)
        },
    ),
    should(
        "locator-invalid",
        "SCRAPI-11, 2.4",
        "A locator of another form is answered with 400 or 404",
        |observations| {
            observations.require_status(Probe::InvalidLocator, |status| {
                matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
            })
        },
    ),
];

fn status(observations: &Observations) -> Judgement {
    observations.accepted(Probe::Registration)?;
    let response = observations.response(Probe::Receipt)?;
    match response.status {
        StatusCode::OK => Ok(response.status.to_string()),
        StatusCode::NO_CONTENT => violated("still 204 when the time of this run was over"),
        status => violated(status.to_string()),
    }
}

fn same_location(observations: &Observations) -> Judgement {
    let first = location(observations.accepted(Probe::Registration)?)?;
    let second = location(observations.with_status(Probe::Receipt, StatusCode::OK)?)?;
    require(first == second, quoted(second.as_str()))
}

fn in_progress(observations: &Observations) -> Result<&ProbeResponse, Shortfall> {
    observations
        .response(Probe::Running)
        .or_else(|_| not_applicable("the receipt was there at the first request"))
}

fn running(observations: &Observations) -> Judgement {
    let response = in_progress(observations)?;
    let length = response.body.len();
    require(
        response.status == StatusCode::NO_CONTENT && length == 0,
        format!("{} with {length} bytes", response.status),
    )
}
