//! Sends the probes of the conformance suite, and records the answers. Sizes and times are bounded by
//! `conformance::limits`, whatever the service answers.

use std::time::Instant;

use bytes::Bytes;
use client::{Client, ClientError, RawRequest};
use conformance::limits::{
    POLL_PAUSE, POLL_TIME, RATE_LIMITED_RETRIES, RESPONSE_BYTES, RUN_TIME, SLOW_PAUSE, SLOW_PIECES,
};
use conformance::{
    ConformanceCheck, Observations, Probe, ProbeOutcome, ProbeRequest, ProbeResponse, Samples, next_probe,
};

/// Sends the probes that these checks need. Ends early if the service does not answer the first ones, or the time of the
/// run is over.
pub async fn observe(
    checks: &[&ConformanceCheck],
    client: &Client,
    samples: &Samples,
    now: u64,
) -> Observations {
    let mut observations = Observations::new(samples.statement().clone(), now);
    let begun = Instant::now();
    while let Some((probe, request)) = next_probe(checks, client.base(), samples, &observations) {
        if begun.elapsed() > RUN_TIME {
            observations.end_early();
            break;
        }
        let outcome = match probe {
            Probe::Receipt => poll(client, request, &mut observations).await,
            _ => send(client, probe, &request, &mut observations).await,
        };
        observations.record(probe, outcome);
        if probe == Probe::Registration && observations.unreachable().is_some() {
            break;
        }
    }
    observations
}

/// Requests the receipt until the registration ends, at most for [`POLL_TIME`].
async fn poll(client: &Client, request: ProbeRequest, observations: &mut Observations) -> ProbeOutcome {
    let begun = Instant::now();
    loop {
        let outcome = send(client, Probe::Receipt, &request, observations).await;
        match &outcome {
            ProbeOutcome::Answered(response) if response.is_not_yet() && begun.elapsed() < POLL_TIME => {
                let pause = response.retry_after().unwrap_or(POLL_PAUSE);
                observations.record(Probe::Running, outcome);
                tokio::time::sleep(pause).await;
            }
            _ => return outcome,
        }
    }
}

/// Sends a request, and again while the answer is 429, at most [`RATE_LIMITED_RETRIES`] times.
async fn send(
    client: &Client,
    probe: Probe,
    request: &ProbeRequest,
    observations: &mut Observations,
) -> ProbeOutcome {
    for _ in 0..RATE_LIMITED_RETRIES {
        match exchange(client, request).await {
            ProbeOutcome::Answered(response) if response.is_rate_limit() => {
                let pause = response.retry_after().unwrap_or(POLL_PAUSE);
                observations.record_rate_limit(probe, response);
                tokio::time::sleep(pause).await;
            }
            outcome => return outcome,
        }
    }
    exchange(client, request).await
}

async fn exchange(client: &Client, request: &ProbeRequest) -> ProbeOutcome {
    let raw = RawRequest {
        method: request.method.clone(),
        url: request.url.clone(),
        accept: request.accept,
        content_type: request.content_type,
        body: pieces(request),
        pause: SLOW_PAUSE,
    };
    match client.exchange_once(raw, RESPONSE_BYTES).await {
        Ok(answer) => {
            let (status, headers, body) = (answer.status, answer.headers, answer.body);
            ProbeOutcome::Answered(ProbeResponse { status, headers, body })
        }
        Err(ClientError::Unreachable(why)) => ProbeOutcome::Unanswered(why),
        Err(error) => ProbeOutcome::Unanswered(error.to_string()),
    }
}

/// Returns the body in one piece, or in [`SLOW_PIECES`]. A request other than POST has none.
fn pieces(request: &ProbeRequest) -> Vec<Bytes> {
    if request.content_type.is_none() && request.body.is_empty() {
        return Vec::new();
    }
    if !request.slow {
        return vec![request.body.clone()];
    }
    let length = request.body.len().div_ceil(SLOW_PIECES).max(1);
    request.body.chunks(length).map(Bytes::copy_from_slice).collect()
}
