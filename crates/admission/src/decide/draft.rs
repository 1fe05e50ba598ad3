//! A ruling under construction: the checks that ran, and the data for the record.

use serde_json::json;

use crate::authenticated::Authenticated;
use crate::limits::SHORT_SESSION_ID;
use crate::principal::{Principal, ProvenBy};
use crate::risk::Degree;
use crate::rules::Rules;
use crate::session::{Meters, Session};
use vap::digest::{Canon, Digest};
use vap::message::slot::{Key, Shape, Unreadable};
use vap::message::{Message, MessageType, NO_SESSION};
use vap::reason::Reason;
use vap::verdict::{Method, Trigger, Verdict, VerdictKind, Verification};

use super::ruling::{
    About, Claim, ClaimKind, Confirmation, Flag, MessageTexts, Ruling, Stream, VerdictDelivery,
};
use super::semantic::JudgeAnswer;

/// The check in records of messages that the operator wrote for a client without VAP.
const BY_OPERATOR: &str = "operator_commitment";

/// The data of a ruling, collected while the checks run.
#[derive(Debug)]
pub(super) struct Draft {
    pub about: About,
    pub session_id: String,
    pub stream: Stream,
    pub delivery: VerdictDelivery,
    pub checks: Vec<String>,
    pub has_rules: bool,
    pub risk: Option<Degree>,
    pub judged: Option<JudgeAnswer>,
    pub is_cached: bool,
    pub trigger: Option<Trigger>,
    pub meters: Meters,
    pub agent_id: Option<String>,
    pub proven_by: ProvenBy,
    pub tool: Option<String>,
    pub flags: Vec<Flag>,
    pub texts: MessageTexts,
    pub req: Option<Digest>,
    pub canon_raw: bool,
    pub claims: Vec<Claim>,
    pub fault_place: Option<String>,
    pub confirmation: Option<Confirmation>,
    /// `true` if an approver signed the message.
    pub approved: bool,
}

impl Draft {
    fn new(about: About, session_id: &str, delivery: VerdictDelivery) -> Self {
        Draft {
            about,
            session_id: session_id.to_owned(),
            stream: Stream::Unbound,
            delivery,
            checks: Vec::new(),
            has_rules: false,
            risk: None,
            judged: None,
            is_cached: false,
            trigger: None,
            meters: Meters::default(),
            agent_id: None,
            proven_by: ProvenBy::Asserted,
            tool: None,
            flags: Vec::new(),
            texts: MessageTexts::default(),
            req: None,
            canon_raw: false,
            claims: Vec::new(),
            fault_place: None,
            confirmation: None,
            approved: false,
        }
    }

    /// Starts the draft for a parsed message.
    pub fn of(received: &Authenticated) -> Self {
        let message = &received.message;
        let delivery = VerdictDelivery::Sent(received.shape, received.key);
        let mut draft = Draft::new(About::of(message.kind()), message.session_id(), delivery);
        draft.passed(if received.is_by_operator() { BY_OPERATOR } else { "schema_ok" });
        draft.req = Some(received.digest.clone());
        draft.canon_raw = received.canon_raw;
        draft.set_texts(message);
        if message.session_id().len() < SHORT_SESSION_ID {
            draft.flags.push(Flag::ShortSessionId);
        }
        draft
    }

    /// Starts the draft for an unreadable message. Without a usable session id it belongs to the principal's only
    /// session (reading X-2).
    pub fn of_unreadable(unreadable: &Unreadable, only_session: Option<&str>) -> Self {
        let session_id = unreadable.session_id.as_deref().or(only_session).unwrap_or(NO_SESSION);
        let delivery = VerdictDelivery::Sent(unreadable.shape, unreadable.key);
        let mut draft = Draft::new(About::of(unreadable.in_response_to), session_id, delivery);
        draft.req = Some(unreadable.digest.clone());
        draft.canon_raw = true;
        draft.checks.push("schema_failed".to_owned());
        draft
    }

    /// Starts the draft for a call without VAP.
    pub fn without_message(only_session: Option<&str>) -> Self {
        let delivery = VerdictDelivery::Sent(Shape::default(), Key::default());
        Draft::new(About::Call, only_session.unwrap_or(NO_SESSION), delivery)
    }

    /// Copies the message's texts, which the record commits to.
    fn set_texts(&mut self, message: &Message) {
        match message {
            Message::ScopeCommitment(commitment) => {
                self.texts.goal = Some(commitment.goal.clone());
                self.agent_id = Some(commitment.principal.agent_id.clone());
            }
            Message::IntentEnvelope(envelope) => {
                self.texts.rationale = Some(envelope.intent.rationale.clone());
                self.texts.expected_effect = Some(envelope.intent.expected_effect.clone());
            }
            Message::ScopeAmendment(amendment) => self.texts.rationale = Some(amendment.reason.clone()),
        }
    }

    /// Sets the tool and the arguments of the forwarded call.
    pub fn set_call(&mut self, tool: &str, arguments: &Canon) {
        match vap::name::is_name(tool) {
            true => self.tool = Some(tool.to_owned()),
            false => self.flags.push(Flag::ToolUnnamed),
        }
        self.texts.arguments = Some(arguments.bytes.clone());
        self.canon_raw |= arguments.raw;
    }

    /// Assigns the record to the stream of the session that the caller is bound to.
    pub fn bind(&mut self, session: &Session, proven_by: ProvenBy) {
        self.proven_by = proven_by;
        self.stream = Stream::Session(session.agreed.session_id().to_owned());
        self.set_commitment(session);
    }

    /// Sets the data of the commitment in force.
    pub fn set_commitment(&mut self, session: &Session) {
        self.session_id = session.agreed.session_id().to_owned();
        self.agent_id = Some(session.agreed.agent_id().to_owned());
        self.texts.goal = Some(session.agreed.goal().to_owned());
        self.texts.effective_commitment = Some(session.agreed.text().as_bytes().to_vec());
        self.canon_raw |= session.agreed.is_raw();
        self.texts.principal = Some(principal_bytes(session.agreed.principal()));
    }

    pub fn passed(&mut self, check: &str) {
        self.checks.push(check.to_owned());
    }

    /// Adds a key that may be used only once, such as a `jti`.
    pub fn claim(&mut self, kind: ClaimKind, key: &str) {
        self.claims.push(Claim { kind, key: key.to_owned() });
    }

    /// Sets the present amounts of the session's meters.
    pub fn set_meters(&mut self, rules: &Rules, session: &Session) {
        self.meters = session_meters(rules, session);
    }

    /// Creates the ruling with this verdict and reason.
    pub fn rule(self, rules: &Rules, kind: VerdictKind, reason: Option<Reason>) -> Ruling {
        let method = Method::of(self.has_rules, self.judged.is_some() || self.is_cached);
        let verification = Verification {
            checks: self.checks,
            method,
            risk_score: self.risk.map(Degree::score),
            semantic_invoked: rules.judge.is_some().then_some(self.judged.is_some()),
            semantic_trigger: self.judged.map(|judged| judged.trigger).or(self.trigger),
            confidence: self.judged.map(|judged| judged.confidence.score()),
            reason: reason.clone(),
        };
        let answers = Some(self.about.message_type());
        Ruling {
            about: self.about,
            stream: self.stream,
            verdict: Verdict::new(self.session_id, answers, kind, verification),
            delivery: self.delivery,
            reason,
            meters: self.meters,
            agent_id: self.agent_id,
            proven_by: self.proven_by,
            tool: self.tool,
            flags: self.flags,
            texts: self.texts,
            req: self.req,
            canon_raw: self.canon_raw,
            claims: self.claims,
            confirmation: self.confirmation,
            pending: None,
            approver_question: None,
            ticket: None,
            effective: None,
            policy_digest: rules.policy_digest.clone(),
            advised: None,
            fault_place: self.fault_place,
            asserted_client: None,
            aer_id: None,
        }
    }
}

impl About {
    const fn of(kind: MessageType) -> About {
        match kind {
            MessageType::ScopeCommitment => About::Commitment,
            MessageType::ScopeAmendment => About::Amendment,
            MessageType::IntentCall => About::Call,
        }
    }

    /// Returns the message type for the Verdict's `in_response_to`.
    #[must_use]
    pub const fn message_type(self) -> MessageType {
        match self {
            About::Commitment => MessageType::ScopeCommitment,
            About::Amendment => MessageType::ScopeAmendment,
            About::Call => MessageType::IntentCall,
        }
    }
}

/// Returns the amounts of a session's meters: those that the commitment limits, calls, and the judge's.
pub(super) fn session_meters(rules: &Rules, session: &Session) -> Meters {
    let limits = session.agreed.budget().limits.keys();
    let mut meters: Meters = limits.map(|meter| (meter.clone(), session.running.used(meter))).collect();
    meters.set(CALLS_METER, session.running.calls().into());
    if rules.judge.is_some() {
        meters.set(JUDGE_METER, session.running.judge_used());
    }
    meters
}

/// The meter of calls in records.
pub const CALLS_METER: &str = "vap.calls";
/// The meter of the judge's cost (reading V-31).
pub const JUDGE_METER: &str = "vap.judge";

/// Returns the canonical bytes of a principal, which the record commits to.
pub(super) fn principal_bytes(principal: &Principal) -> Vec<u8> {
    jose::jcs::canonical(&json!(principal))
}
