//! Approvers: the people who decide independently of the clients, their scope, and the listener where they are reached.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use admission::limits::MAX_APPROVER;
use admission::rules::{Approvals, Approver as Approving, Decider, PolicyRule, Then};
use admission::signature::{AgentKey, Holder};
use jiff::SignedDuration;
use serving::config_file::SpannedText;
use toml::Spanned;
use url::Url;
use vap::glob::{self, Pattern};

use super::Config;
use super::agents::AgentKeys;
use super::file;
use super::reader::{GatewayReader, pattern};
use super::route::Route;
use crate::limits::{APPROVAL_TIME, MAX_APPROVAL_TIME};

/// The listener where approvers find open questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalsListener {
    /// The address of the listener.
    pub listen: SocketAddr,
    /// The URL at which approvers reach it; by default the URL of `listen`.
    pub url: Option<Url>,
    /// The time in which a question can be answered.
    pub time: Duration,
}

/// A person or system that may approve.
#[derive(Clone, Debug)]
pub struct Approver {
    /// The approver's name.
    pub name: String,
    /// Patterns of route paths that the approver is responsible for; empty for all routes.
    pub routes: Vec<Pattern>,
    /// Patterns of tools that the approver is responsible for; empty for all tools, commitments and amendments.
    pub tools: Vec<Pattern>,
    /// The public keys that verify the approver's signatures.
    pub keys: Vec<AgentKey>,
}

impl Approver {
    /// Returns whether this approver may approve on the route.
    fn is_of(&self, route: &str) -> bool {
        self.routes.is_empty() || glob::matches_any(&self.routes, route)
    }
}

impl Config {
    /// The approval settings of a route, with its approvers.
    pub(super) fn approvals_of(&self, route: &Route) -> Approvals {
        let time = self.approvals.as_ref().map_or(APPROVAL_TIME, |approvals| approvals.time);
        Approvals {
            approvers: approving(&self.approvers, &route.path),
            confirmations: route.confirmations,
            commitments: route.commitments_need_approval,
            amendments: route.amendments_need_approval,
            time: SignedDuration::try_from(time).unwrap_or(SignedDuration::from_secs(1)),
        }
    }
}

/// The approvers of a route.
fn approving(approvers: &[Approver], route: &str) -> Vec<Approving> {
    let here = approvers.iter().filter(|approver| approver.is_of(route));
    here.map(|Approver { name, tools, keys, .. }| Approving {
        name: name.clone(),
        tools: tools.clone(),
        keys: keys.clone(),
    })
    .collect()
}

/// Reads the `[approvals]` section.
pub fn listener(
    reader: &mut GatewayReader<'_>,
    given: Option<Spanned<file::ApprovalsSection>>,
) -> Option<ApprovalsListener> {
    let given = given?.into_inner();
    let time = reader.time("approvals.expires", given.expires.as_ref()).unwrap_or(APPROVAL_TIME);
    if let Some(text) = given.expires.as_ref().filter(|_| time > MAX_APPROVAL_TIME) {
        let why = format!("{} days at most", MAX_APPROVAL_TIME.as_secs() / 86_400);
        reader.mistake(Some(text.span()), "approvals.expires", why);
    }
    let url = given.url.as_ref().and_then(|text| reader.plain_url("approvals.url", text));
    Some(ApprovalsListener { listen: reader.address("approvals.listen", &given.listen)?, url, time })
}

/// Reads the `[[approver]]` sections, and their keys as signers of amendments.
pub fn approvers(
    reader: &mut GatewayReader<'_>,
    given: &[file::ApproverSection],
) -> (Vec<Approver>, Vec<(Range<usize>, AgentKeys)>) {
    let (mut approvers, mut signers) = (Vec::new(), Vec::new());
    for approver in given {
        let validity = [&approver.not_before, &approver.not_after];
        let name = approver.name.get_ref();
        if name.trim().is_empty()
            || name.chars().nth(MAX_APPROVER).is_some()
            || name.chars().any(char::is_control)
        {
            let why = format!("a name of 1 to {MAX_APPROVER} characters");
            reader.mistake(Some(approver.name.span()), "approver.name", why);
        }
        let Some((span, keys)) = reader.keys("approver", Holder::Approver, &approver.jwk, validity) else {
            continue;
        };
        let mut patterns = |key: &str, given: &[SpannedText]| -> Vec<Pattern> {
            given.iter().filter_map(|text| pattern(reader, key, text)).collect()
        };
        let (routes, tools) =
            (patterns("approver.routes", &approver.routes), patterns("approver.tools", &approver.tools));
        let key = |jwk| AgentKey::new(Holder::Approver, jwk, keys.not_before, keys.not_after).ok();
        // An unusable key is reported when the keyring of all keys is built.
        let own = keys.keys.iter().filter_map(key).collect();
        approvers.push(Approver { name: name.clone(), routes, tools, keys: own });
        signers.push((span, keys));
    }
    (approvers, signers)
}

/// Reports settings of routes that wait for an approver although there is no approver or listener for them.
pub fn check(
    reader: &mut GatewayReader<'_>,
    listener: Option<&ApprovalsListener>,
    approvers: &[Approver],
    routes: &[Route],
    has_judge: bool,
) {
    for route in routes {
        let here = approving(approvers, &route.path);
        let answerable =
            |rule: &PolicyRule| here.iter().any(|approver| approver.may_answer_some(rule.tool()));
        let waits = |rule: &&PolicyRule| waits(route, rule);
        for rule in route.rules.iter().filter(waits).filter(|rule| !answerable(rule)) {
            let why = format!(
                "no [[approver]] may answer the questions of rule {} of route {}: give one this route and tool",
                rule.name().as_str(),
                route.path
            );
            reader.mistake(None, "route.rule", why);
        }
        let of_messages = [
            ("commitments_need_approval", route.commitments_need_approval),
            ("amendments_need_approval", route.amendments_need_approval),
        ];
        let of_messages = of_messages.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name);
        let judged =
            (route.confirmations == Decider::Approver && route.judge && has_judge).then_some("confirmations");
        for setting in of_messages.clone().chain(judged) {
            if !here.iter().any(|approver| approver.tools.is_empty()) {
                let why = format!("no [[approver]] for all tools of route {} may answer that", route.path);
                reader.mistake(None, setting, why);
            }
        }
        let any = route.rules.iter().any(|rule| waits(&rule)) || of_messages.chain(judged).next().is_some();
        if any && listener.is_none() {
            let why = format!("route {} waits for approvers, who need [approvals] with `listen`", route.path);
            reader.mistake(None, "approvals", why);
        }
    }
}

/// Returns whether the questions of a rule wait for an approver.
pub fn waits(route: &Route, rule: &PolicyRule) -> bool {
    match rule.then() {
        Then::Approve => true,
        Then::Confirm => route.confirmations == Decider::Approver,
        Then::Allow | Then::Deny => false,
    }
}
