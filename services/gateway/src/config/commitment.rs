//! Reads `[route.commitment]`: the operator's commitment for callers without VAP.

use std::ops::Range;

use admission::rules::{OperatorCommitment, Posture};
use admission::session::Meters;
use jiff::SignedDuration;
use serving::config_file::SpannedText;
use toml::Spanned;
use vap::glob::Pattern;
use vap::limits::{MAX_GOAL, MAX_NAME};
use vap::message::Scope;
use vap::name::is_name;

use super::amounts;
use super::file::CommitmentSection;
use super::reader::{GatewayReader, length, pattern};
use crate::limits::{OPERATOR_SESSION, TRIAL_CALLS};

/// The name of the agent in sessions under a commitment that names none.
const USUAL_AGENT: &str = "mcp-client";

/// Returns the commitment of a first trial: every tool, [`TRIAL_CALLS`] calls a day.
pub fn usual() -> OperatorCommitment {
    OperatorCommitment {
        goal: "Calls of clients without VAP".to_owned(),
        agent: USUAL_AGENT.to_owned(),
        scope: Scope { tools_allow: Pattern::new("*").into_iter().collect(), tools_deny: None },
        max_calls: Some(TRIAL_CALLS),
        limits: Meters::default(),
        lasts: OPERATOR_SESSION,
    }
}

/// Reads a route's commitment, which must be there if `without_vap` is `commitment`.
pub fn of_route(
    reader: &mut GatewayReader<'_>,
    section: Option<Spanned<CommitmentSection>>,
    (posture, posture_at): (Posture, Option<Range<usize>>),
) -> Option<OperatorCommitment> {
    let Some(section) = section else {
        if posture == Posture::Commitment {
            let why = "without_vap = \"commitment\" needs a [route.commitment] with a goal";
            reader.mistake(posture_at, "without_vap", why);
        }
        return None;
    };
    read(reader, section.into_inner())
}

fn read(reader: &mut GatewayReader<'_>, section: CommitmentSection) -> Option<OperatorCommitment> {
    let CommitmentSection { goal, agent, tools_allow, tools_deny, max_calls, lasts, limits } = section;
    let lasts = length(reader, "commitment.lasts", lasts.as_ref()).unwrap_or(OPERATOR_SESSION);
    if lasts < SignedDuration::from_secs(1) {
        reader.mistake(None, "commitment.lasts", "at least one second");
    }
    Some(OperatorCommitment {
        goal: text(reader, "commitment.goal", &goal, |goal| (1..=MAX_GOAL).contains(&goal.chars().count()))?,
        agent: match agent {
            Some(agent) => text(reader, "commitment.agent", &agent, is_name)?,
            None => USUAL_AGENT.to_owned(),
        },
        scope: scope(reader, &tools_allow, &tools_deny),
        max_calls: reader.number("commitment.max_calls", max_calls.as_ref(), 1..),
        limits: amounts::meters(reader, "commitment.limits", &limits),
        lasts,
    })
}

fn text(
    reader: &mut GatewayReader<'_>,
    key: &str,
    given: &SpannedText,
    is_valid: impl FnOnce(&str) -> bool,
) -> Option<String> {
    match is_valid(given.get_ref()) {
        true => Some(given.get_ref().clone()),
        false => reader.wrong(
            given,
            key,
            format!("a text of 1 to {MAX_GOAL} characters, a name of at most {MAX_NAME}"),
        ),
    }
}

/// Reads the scope. Without patterns, every tool may be called.
fn scope(reader: &mut GatewayReader<'_>, allow: &[SpannedText], deny: &[SpannedText]) -> Scope {
    let mut patterns = |key: &str, texts: &[SpannedText]| -> Vec<Pattern> {
        texts.iter().filter_map(|text| pattern(reader, key, text)).collect()
    };
    let tools_deny = patterns("commitment.tools_deny", deny);
    let tools_allow = match allow {
        [] => Pattern::new("*").into_iter().collect(),
        given => patterns("commitment.tools_allow", given),
    };
    Scope { tools_allow, tools_deny: (!tools_deny.is_empty()).then_some(tools_deny) }
}
