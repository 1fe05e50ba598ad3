//! The answers of a service to the probes, and what several checks read from them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use http::header::{LOCATION, RETRY_AFTER};
use scitt::{KeySet, Receipt, ReceiptError, SignedStatement};
use url::Url;

use crate::exchange::{ProbeOutcome, ProbeResponse};
use crate::judgement::{Judgement, Shortfall, not_applicable, quoted, require, violated};
use crate::limits::DATE_BYTES;
use crate::probe::{PROBES, Probe};

/// The recorded answers, and a note of those that were asked for and are not recorded.
#[derive(Clone, Debug)]
pub struct Observations {
    statement: SignedStatement,
    now: u64,
    outcomes: BTreeMap<Probe, ProbeOutcome>,
    rate_limited: Vec<(Probe, ProbeResponse)>,
    missing: RefCell<BTreeSet<Probe>>,
    ended_early: bool,
}

impl Observations {
    /// Creates an empty record for a run that registers `statement` at `now` (Unix seconds).
    pub fn new(statement: SignedStatement, now: u64) -> Self {
        let (outcomes, rate_limited) = (BTreeMap::new(), Vec::new());
        Self { statement, now, outcomes, rate_limited, missing: RefCell::default(), ended_early: false }
    }

    /// Records the outcome of a probe, in place of an earlier one.
    pub fn record(&mut self, probe: Probe, outcome: ProbeOutcome) {
        self.outcomes.insert(probe, outcome);
    }

    /// Records a response with status 429, after which the request is repeated.
    pub fn record_rate_limit(&mut self, probe: Probe, response: ProbeResponse) {
        self.rate_limited.push((probe, response));
    }

    /// Notes that the run ended before all requests were sent.
    pub fn end_early(&mut self) {
        self.ended_early = true;
    }

    /// Returns `true` if the run ended before all requests were sent.
    pub(crate) fn ended_early(&self) -> bool {
        self.ended_early
    }

    /// Returns the reason why no probe was answered, or `None` if one was.
    pub fn unreachable(&self) -> Option<&str> {
        let mut reason = None;
        for outcome in self.outcomes.values() {
            match outcome {
                ProbeOutcome::Answered(_) => return None,
                ProbeOutcome::Unanswered(why) => reason = reason.or(Some(why.as_str())),
            }
        }
        reason
    }

    /// Returns the statement that is registered.
    pub(crate) fn statement(&self) -> &SignedStatement {
        &self.statement
    }

    /// Returns the time of the run in Unix seconds.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Returns the probes whose outcomes were asked for and are not recorded, since the last call of this function.
    pub(crate) fn take_missing(&self) -> BTreeSet<Probe> {
        self.missing.take()
    }

    /// Returns the responses with status 429, after which a request was repeated.
    pub(crate) fn rate_limited(&self) -> &[(Probe, ProbeResponse)] {
        self.ask_for_all();
        &self.rate_limited
    }

    /// Returns all responses with their probes, also those after which a request was repeated.
    pub(crate) fn responses(&self) -> impl Iterator<Item = (Probe, &ProbeResponse)> {
        self.ask_for_all();
        let last = self.outcomes.iter().filter_map(|(probe, outcome)| match outcome {
            ProbeOutcome::Answered(response) => Some((*probe, response)),
            ProbeOutcome::Unanswered(_) => None,
        });
        last.chain(self.rate_limited.iter().map(|(probe, response)| (*probe, response)))
    }

    fn ask_for_all(&self) {
        self.missing.borrow_mut().extend(PROBES.iter().filter(|probe| !self.outcomes.contains_key(*probe)));
    }

    fn outcome(&self, probe: Probe) -> Option<&ProbeOutcome> {
        let outcome = self.outcomes.get(&probe);
        if outcome.is_none() {
            self.missing.borrow_mut().insert(probe);
        }
        outcome
    }

    /// Returns the response to a probe. One that only says who may ask, or how often, decides no check.
    pub(crate) fn response(&self, probe: Probe) -> Result<&ProbeResponse, Shortfall> {
        let response = self.any_response(probe)?;
        match response.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
                not_applicable(format!("the request was not considered: {}", response.status))
            }
            _ => Ok(response),
        }
    }

    /// Returns the response to a probe, whatever its status.
    pub(crate) fn any_response(&self, probe: Probe) -> Result<&ProbeResponse, Shortfall> {
        match self.outcome(probe) {
            Some(ProbeOutcome::Answered(response)) => Ok(response),
            Some(ProbeOutcome::Unanswered(why)) => violated(format!("no response: {}", quoted(why))),
            None if self.ended_early => {
                not_applicable("this request was not sent: the time of the run was over")
            }
            None => not_applicable("this request was not sent: an answer that it depends on is missing"),
        }
    }

    /// Returns the response to a probe if it has this status; else a check of it does not apply.
    pub(crate) fn with_status(&self, probe: Probe, status: StatusCode) -> Result<&ProbeResponse, Shortfall> {
        match self.response(probe)? {
            response if response.status == status => Ok(response),
            response => not_applicable(format!("the answer is {}", response.status)),
        }
    }

    /// Requires that the status of the response to a probe satisfies `is_met`, if the request was considered.
    pub(crate) fn require_status(&self, probe: Probe, is_met: impl FnOnce(StatusCode) -> bool) -> Judgement {
        let status = self.response(probe)?.status;
        require(is_met(status), status.to_string())
    }

    /// Returns `true` if a run to the end sent no request for a probe.
    pub(crate) fn was_not_sent(&self, probe: Probe) -> bool {
        self.outcome(probe).is_none() && !self.ended_early
    }

    /// Returns the response to the registration, if the statement was accepted.
    pub(crate) fn accepted(&self, probe: Probe) -> Result<&ProbeResponse, Shortfall> {
        let response = self.response(probe)?;
        match response.status {
            status if is_accepted(status) => Ok(response),
            status => not_applicable(format!("the statement was not accepted: {status}")),
        }
    }

    /// Returns the `Location` of the accepted statement. That there is one is a check of its own.
    pub(crate) fn registered_location(&self) -> Result<Url, Shortfall> {
        location(self.accepted(Probe::Registration)?)
            .or_else(|_| not_applicable("the registration has no absolute Location"))
    }

    /// Returns the published keys.
    pub(crate) fn keys(&self) -> Result<KeySet, Shortfall> {
        let response = self.response(Probe::Keys)?;
        match KeySet::parse(&response.body) {
            Ok(keys) => Ok(keys),
            Err(_) => not_applicable("the service publishes no COSE_KeySet"),
        }
    }

    /// Returns the `kid` of the key that is requested by it: the key that signed the receipt if it is published, else the
    /// first published key that has a `kid`.
    pub(crate) fn tested_kid(&self) -> Option<Vec<u8>> {
        let keys = self.keys().ok()?;
        let receipt = self.receipt().ok();
        let signing = receipt.as_ref().and_then(|receipt| receipt.header().kid());
        let is_signing = |kid: &&[u8]| signing.is_some_and(|signing| signing == *kid);
        let published = || published_kids(&keys).flatten();
        published().find(is_signing).or_else(|| published().next()).map(<[u8]>::to_vec)
    }

    /// Returns the bytes of the receipt: that of the receipt resource, else the one in the answer to the registration.
    pub(crate) fn receipt_bytes(&self) -> Result<&[u8], Shortfall> {
        let resolved =
            self.response(Probe::Receipt).ok().filter(|response| response.status == StatusCode::OK);
        let registered = || self.response(Probe::Registration).ok();
        let created = || registered().filter(|response| response.status == StatusCode::CREATED);
        match resolved.or_else(created) {
            Some(response) => Ok(&response.body),
            None => not_applicable("the service gave no receipt"),
        }
    }

    /// Returns the parsed receipt.
    pub(crate) fn receipt(&self) -> Result<Receipt, Shortfall> {
        match Receipt::parse(self.receipt_bytes()?.to_vec()) {
            Ok(receipt) => Ok(receipt),
            Err(ReceiptError::UnsupportedStructure(number)) => {
                Err(Shortfall::Unsupported(format!("verifiable data structure {number}")))
            }
            Err(ReceiptError::Malformed(_)) => not_applicable("the receipt is malformed"),
        }
    }
}

/// Returns the `kid` of each published key, `None` for a key without one. Keys of types that the suite does not know
/// count, other members of the set do not.
pub(crate) fn published_kids(keys: &KeySet) -> impl Iterator<Item = Option<&[u8]>> {
    let unsupported = keys.skipped().iter().filter(|skipped| skipped.is_unsupported());
    let usable = keys.keys().iter().map(|key| key.kid.as_deref());
    usable.chain(unsupported.map(|skipped| skipped.kid.as_deref()))
}

/// Returns `true` for the status of a registration that a service accepts (SCRAPI-11, section 2.3).
pub(crate) fn is_accepted(status: StatusCode) -> bool {
    matches!(status, StatusCode::CREATED | StatusCode::ACCEPTED)
}

/// Returns the `Location` of a response as an absolute URL, if it is one.
pub(crate) fn location(response: &ProbeResponse) -> Result<Url, Shortfall> {
    let Some(text) = response.header(LOCATION) else { return violated("no Location") };
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => violated(format!("Location {} is not an absolute URL", quoted(text))),
    }
}

/// Requires `Retry-After` with seconds or a date (RFC 9110, section 10.2.3).
pub(crate) fn require_retry_after(response: &ProbeResponse) -> Judgement {
    let Some(text) = response.header(RETRY_AFTER) else { return violated("no Retry-After") };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = text.len() == DATE_BYTES && text.ends_with(" GMT");
    require(is_number || is_date, format!("Retry-After {}", quoted(text)))
}
