//! Commitments and amendments (X-1, V-6): they ride on requests that go to the upstream without them, and count when those
//! have succeeded. Then the Verdict rides on the answer. On `vap/amend` they come alone, and nothing is forwarded.

use admission::message::Message;
use admission::message::MessageType;
use admission::message::slot::{self, Carrier, OWN_KEY, Received, Unreadable, VAP_KEY};
use admission::principal::{Caller, Era};
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;

use super::Calls;
use super::additions::{Additions, COMMITMENT, EVIDENCE, Place};
use super::call::place;
use crate::desk::{MessageAnswer, MessageJob, Told};
use crate::frame::reply::{self, Reply};
use crate::frame::{Frame, RawId};
use crate::front::{Aside, Inbound, Opening, Response, unanswered};
use crate::relay::{self, Over, Passing, Tap};

/// How an MCP session is named.
const SESSION: &str = "mcp-session-id";

type Slot = Result<Received, Box<Unreadable>>;

impl Calls {
    /// A request that carries something for the gateway.
    pub(super) async fn carry(&self, inbound: Inbound) -> Response {
        let Some(id) = inbound.frame.id().cloned() else { return super::refused::no_id() };
        let method = inbound.frame.method().unwrap_or_default();
        let message = carrier(method).and_then(|carrier| read(&inbound.frame, carrier));
        let Inbound { route, exchange, frame, aside, mut caller, .. } = inbound;
        match (route.upstream.exchange(exchange).await, message) {
            (Ok(answer), Some(message)) => {
                if let Some(named) = answer.headers.get(SESSION).and_then(|value| value.to_str().ok()) {
                    caller.mcp_session = Some(named.to_owned());
                }
                let succeeded = answer.status.is_success();
                let declared = Declared {
                    calls: self.clone(),
                    id,
                    frame,
                    caller,
                    aside,
                    message: Some(message),
                    succeeded,
                };
                relay::watch(answer, Box::new(declared)).await
            }
            (Ok(answer), None) => relay::pass(answer),
            (Err(error), _) => unanswered(Some(&id), &error),
        }
    }

    /// An amendment by itself.
    pub(super) async fn amend_only(&self, inbound: Inbound) -> Response {
        let Some(id) = inbound.frame.id().cloned() else { return super::refused::no_id() };
        let bare = inbound.frame.params_text().filter(|_| !inbound.frame.meta_keys().any(|key| is_slot(key)));
        let message = match bare {
            Some(params) => slot::read(Some(params), None, Carrier::Amend).transpose(),
            None => read(&inbound.frame, Carrier::Amend),
        };
        let Some(message) = message else {
            let words = "vap/amend carries a Scope Amendment in params._meta.vap";
            return relay::json(StatusCode::OK, reply::error(Some(&id), -32602, words, None));
        };
        let additions = self.declare(&inbound.caller, inbound.aside, message).await;
        let result = match inbound.era {
            Era::Modern => r#"{"resultType":"complete"}"#,
            Era::Legacy => "{}",
        };
        let message = reply::result(&id, result);
        let spliced = Reply::parse(message.clone()).map(|reply| reply.with_meta(&additions.members(), &[]));
        relay::json(StatusCode::OK, spliced.unwrap_or(message))
    }

    /// Has a declaration judged, and says what goes beside the answer.
    async fn declare(&self, caller: &Caller, aside: Option<Aside>, message: Slot) -> Additions {
        let mut additions = Additions::default();
        additions.echo(aside.as_ref());
        let slot = Some(message);
        let at: Place = place(&slot);
        let Some(message) = slot else { return additions };
        let kind = kind(&message);
        let aside = aside.map(|aside| aside.invocation);
        let job = MessageJob { rules: self.rules.clone(), caller: caller.clone(), message, aside };
        let told = self.judged_message(kind, job).await;
        additions.verdict(at, &told.text);
        if let Some(evidence) = &told.evidence {
            additions.put(EVIDENCE, evidence.to_json());
        }
        if let Some(commitment) = told.commitment() {
            additions.put(COMMITMENT, commitment.to_owned());
        }
        additions
    }

    async fn judged_message(&self, kind: MessageType, job: MessageJob) -> Box<Told> {
        let mut answer = match kind {
            MessageType::ScopeAmendment => self.shared.desk.amendment(job).await,
            MessageType::ScopeCommitment | MessageType::IntentCall => self.shared.desk.commitment(job).await,
        };
        loop {
            answer = match answer {
                MessageAnswer::Ruled(told) => {
                    self.count(&told);
                    return told;
                }
                MessageAnswer::Judge(question, held) => held.judged(self.judged(&question).await).await,
            };
        }
    }
}

/// Waits for the answer of a request that carried a declaration. If there is none, or it is an error, the declaration is void.
struct Declared {
    calls: Calls,
    id: RawId,
    frame: Frame,
    caller: Caller,
    aside: Option<Aside>,
    message: Option<Slot>,
    succeeded: bool,
}

#[async_trait]
impl Tap for Declared {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else {
            return if relay::is_message(&text) { Passing::Withheld } else { Passing::Untouched };
        };
        if !reply.answers(&self.id) || !self.succeeded || reply.is_error() {
            return Passing::Untouched;
        }
        let Some(message) = self.message.take() else { return Passing::Untouched };
        let additions = self.calls.declare(&self.caller, self.aside.take(), message).await;
        // The answer is this caller's own now (X-1).
        let private: &[_] = match self.caller.era {
            Era::Modern => &[("cacheScope", Some("\"private\"")), ("ttlMs", Some("0"))],
            Era::Legacy => &[],
        };
        let spliced = reply.edited(private, &additions.members(), Additions::dropped());
        Passing::Replaced(self.opened(spliced))
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

impl Declared {
    /// What an `initialize` or `server/discover` gets besides.
    fn opened(&self, message: Bytes) -> Bytes {
        use crate::front::Handlers as _;
        match self.frame.method() {
            Some("initialize" | "server/discover") => {
                let opening = Opening { frame: self.frame.clone(), caller: self.caller.clone() };
                self.calls.advertise(&opening, message)
            }
            _ => message,
        }
    }
}

/// What a request is as a carrier. Others carry nothing: what stands there is taken out, and that is all.
fn carrier(method: &str) -> Option<Carrier> {
    match method {
        "initialize" => Some(Carrier::Initialize),
        "server/discover" => Some(Carrier::Discover),
        "tools/list" => Some(Carrier::ToolsList),
        "ping" => Some(Carrier::Ping),
        _ => None,
    }
}

fn read(frame: &Frame, carrier: Carrier) -> Option<Slot> {
    slot::read(frame.meta(VAP_KEY), frame.meta(OWN_KEY), carrier).transpose()
}

fn is_slot(key: &str) -> bool {
    key == VAP_KEY || key == OWN_KEY
}

fn kind(message: &Slot) -> MessageType {
    match message {
        Ok(received) => match received.message {
            Message::ScopeAmendment(_) => MessageType::ScopeAmendment,
            Message::ScopeCommitment(_) | Message::IntentEnvelope(_) => MessageType::ScopeCommitment,
        },
        Err(unreadable) => unreadable.in_response_to,
    }
}
