//! Resolution of receipts (SCRAPI, section 2.4).

use http::StatusCode;
use http::header::CACHE_CONTROL;
use scitt::media;

use crate::check::{ConformanceCheck, must, should};
use crate::exchange::ProbeResponse;
use crate::judgement::{Judgement, Shortfall, not_applicable, quoted, require, violated};
use crate::observations::{Observations, location, require_retry_after};
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
        "resolve-any-type",
        "RFC 9110, 12.5.1",
        "A request that accepts any type gets the receipt",
        |observations| {
            let response = observations.response(Probe::ReceiptOfAnyType)?;
            let is_receipt = response.status == StatusCode::OK && response.has_type(media::COSE);
            require(is_receipt, format!("{}, {}", response.status, response.type_text()))
        },
    ),
    must(
        "running-status",
        "SCRAPI-11, 2.4.2",
        "While the registration runs, the answer is 204 without a body",
        running,
    ),
    should("running-retry-after", "SCRAPI-11, 5.2", "204 has Retry-After", |observations| {
        require_retry_after(no_content(observations)?)
    }),
    should("running-no-store", "SCRAPI-11, 2.4.2", "204 has Cache-Control: no-store", |observations| {
        let response = no_content(observations)?;
        let found = response.header(CACHE_CONTROL).map_or_else(|| "no Cache-Control".to_owned(), quoted);
        require(response.lists(CACHE_CONTROL, "no-store"), found)
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
    let accepted = observations.accepted(Probe::Registration)?;
    if observations.was_not_sent(Probe::Receipt) {
        let location = location(accepted)?;
        let finding = format!("{} is not an entry of the tested service", quoted(location.as_str()));
        return Err(Shortfall::Unsupported(finding));
    }
    // A refusal (401, 403, 429) is a violation too: the same client registered the statement.
    let response = observations.any_response(Probe::Receipt)?;
    match response.status {
        StatusCode::OK => Ok(response.status.to_string()),
        StatusCode::NO_CONTENT => violated("still 204 when the time of this run was over"),
        status => violated(status.to_string()),
    }
}

fn same_location(observations: &Observations) -> Judgement {
    let first = observations.registered_location()?;
    let second = location(observations.with_status(Probe::Receipt, StatusCode::OK)?)?;
    require(first == second, quoted(second.as_str()))
}

fn in_progress(observations: &Observations) -> Result<&ProbeResponse, Shortfall> {
    if observations.was_not_sent(Probe::Receipt) {
        return not_applicable("no receipt was requested: there is no Location on the tested service");
    }
    match observations.was_not_sent(Probe::Running) {
        true => not_applicable("the receipt was there at the first request"),
        false => observations.response(Probe::Running),
    }
}

/// Returns the response while the registration runs, if it is the 204 that SCRAPI requires.
fn no_content(observations: &Observations) -> Result<&ProbeResponse, Shortfall> {
    match in_progress(observations)? {
        response if response.status == StatusCode::NO_CONTENT => Ok(response),
        response => not_applicable(format!("the answer is {}", response.status)),
    }
}

fn running(observations: &Observations) -> Judgement {
    let response = in_progress(observations)?;
    let length = response.body.len();
    require(
        response.status == StatusCode::NO_CONTENT && length == 0,
        format!("{} with {length} bytes", response.status),
    )
}
