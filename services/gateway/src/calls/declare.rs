//! Scope commitments and amendments (X-1, V-6). Other requests carry them; these go to the upstream without them, and
//! the message is decided once the request has succeeded, with the Verdict in its answer. `vap/amend` carries an
//! amendment alone and is not forwarded.

use admission::authenticated::Authenticated;
use admission::principal::{Caller, Era};
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use vap::message::Message;
use vap::message::MessageType;
use vap::message::slot::{self, Carrier, OWN_KEY, Unreadable, VAP_KEY};

use super::additions::{Additions, COMMITMENT, EVIDENCE, VerdictSlot};
use super::answer_stream::{AnswerStream, UnrelatedTap, clean, unreadable};
use super::call::{parameters, place};
use super::{Calls, list};
use crate::decision_writer::{DecisionAnswer, MessageAnswer, MessageJob};
use crate::frame::error_code::INVALID_PARAMS;
use crate::frame::reply::{self, Reply};
use crate::frame::{Frame, RawId};
use crate::front::unanswered;
use crate::mcp::{Inbound, InvocationMember, Opening};
use crate::relay::Response;
use crate::relay::{self, AwaitedRequest, Over, Passing, Tap, Unanswered};
use crate::upstream::request::SESSION;
use crate::upstream::{UpstreamAnswer, fields};

type Slot = Result<Authenticated, Box<Unreadable>>;

impl Calls {
    /// Forwards a request that carries a message for the gateway, or whose answer lists tools.
    pub(super) async fn carry(&self, inbound: Inbound) -> Response {
        let Some(id) = inbound.frame.id().cloned() else { return super::refused::no_id() };
        let method = inbound.frame.method().unwrap_or_default();
        let message = carrier(method).and_then(|carrier| self.message(&inbound.frame, carrier));
        let (filters, watches) = (self.filters(method), self.watches(method));
        let Inbound { endpoint, exchange, frame, invocation, caller, client, era, .. } = inbound;
        let request = AwaitedRequest { id: &id, era };
        match relay::ask(&*endpoint.upstream, exchange, &client).await {
            Ok(answer) if message.is_some() || filters || watches => {
                let caller = in_session(&frame, caller, &answer);
                let succeeded = answer.status.is_success();
                let calls = self.clone();
                let passage = self.passage(&caller, Some(id.clone()));
                let passage = AnswerStream { is_refusal: !succeeded, ..passage };
                let session_caller = caller.clone();
                let opens = matches!(frame.method(), Some("initialize" | "server/discover"));
                let declared = DeclarationTap {
                    calls,
                    id: id.clone(),
                    frame: opens.then(|| frame.clone()),
                    caller,
                    invocation,
                    message,
                    filters,
                    watches,
                    succeeded,
                    passage,
                };
                let tap = self.shared.resumable.wrap(
                    (&self.route, &session_caller),
                    &frame,
                    &answer,
                    Box::new(declared),
                );
                relay::watch(answer, tap, Some(request)).await
            }
            // The message does not count on this method, but the caller would believe a Verdict in the answer.
            Ok(answer) => {
                let passage = self.passage(&caller, Some(id.clone()));
                let passage = AnswerStream { is_refusal: !answer.status.is_success(), ..passage };
                relay::watch(answer, Box::new(UnrelatedTap { passage }), Some(request)).await
            }
            Err(Unanswered::Upstream(error)) => unanswered(Some(&id), &error),
            Err(Unanswered::Cancelled) => relay::cancelled(),
        }
    }

    /// Handles `vap/amend`, an amendment by itself.
    pub(super) async fn amend_only(&self, inbound: Inbound) -> Response {
        let Some(id) = inbound.frame.id().cloned() else { return super::refused::no_id() };
        let message = match inbound.frame.meta_keys().any(is_slot) {
            true => self.message(&inbound.frame, Carrier::Amend),
            false => self.bare_amendment(&inbound.frame),
        };
        let Some(message) = message else {
            let words = "vap/amend carries a Scope Amendment in params._meta.vap";
            return relay::json(StatusCode::OK, reply::error(Some(&id), INVALID_PARAMS, words, None));
        };
        let additions = self.declare(&inbound.caller, inbound.invocation, message).await;
        let result = match inbound.era {
            Era::Modern => r#"{"resultType":"complete"}"#,
            Era::Legacy => "{}",
        };
        let message = reply::result(&id, result);
        let spliced = Reply::parse(message.clone()).map(|reply| reply.with_meta(&additions.members(), &[]));
        relay::json(StatusCode::OK, spliced.unwrap_or(message))
    }

    /// Reads an amendment from the parameters themselves, as some reference clients send it.
    fn bare_amendment(&self, frame: &Frame) -> Option<Slot> {
        let parameters = parameters(frame);
        let message = Some(parameters.as_str()).filter(|text| *text != "{}");
        self.authenticated(slot::read(message, None, Carrier::Amend))
    }

    /// Has a declaration decided, and returns the members for the answer.
    async fn declare(
        &self,
        caller: &Caller,
        invocation: Option<InvocationMember>,
        message: Slot,
    ) -> Additions {
        let mut additions = Additions::default();
        additions.echo(invocation.as_ref());
        let slot = Some(message);
        let at: VerdictSlot = place(&slot);
        let Some(message) = slot else { return additions };
        let kind = kind(&message);
        let invocation = invocation.map(|invocation| invocation.invocation);
        let job = MessageJob { route: self.route.to_string(), caller: caller.clone(), message, invocation };
        let decision = self.judged_message(kind, job).await;
        additions.verdict(at, &decision.text);
        if let Some(evidence) = &decision.evidence {
            additions.put(EVIDENCE, evidence.to_json());
        }
        if let Some(commitment) = decision.commitment() {
            additions.put(COMMITMENT, commitment.to_owned());
        }
        additions
    }

    pub(super) async fn judged_message(&self, kind: MessageType, job: MessageJob) -> Box<DecisionAnswer> {
        let mut answer = match kind {
            MessageType::ScopeAmendment => self.shared.writer.amendment(job).await,
            MessageType::ScopeCommitment | MessageType::IntentCall => {
                self.shared.writer.commitment(job).await
            }
        };
        loop {
            answer = match answer {
                MessageAnswer::Ruled(decision) => {
                    self.count(&decision);
                    return decision;
                }
                MessageAnswer::Judge(question, held) => {
                    let (judged, words) = self.judged(&question).await;
                    held.judged(judged, &words).await
                }
            };
        }
    }
}

/// A tap that waits for the answer to a request with a declaration. Without an answer, or with an error, the
/// declaration is void.
struct DeclarationTap {
    calls: Calls,
    id: RawId,
    /// The request, if it is an `initialize` or a `server/discover`.
    frame: Option<Frame>,
    caller: Caller,
    invocation: Option<InvocationMember>,
    message: Option<Slot>,
    /// `true` if tools that the caller may not call are removed from the answer.
    filters: bool,
    /// `true` if the tools in the answer are noted first.
    watches: bool,
    succeeded: bool,
    passage: AnswerStream,
}

#[async_trait]
impl Tap for DeclarationTap {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else {
            return unreadable(&text);
        };
        if !reply.answers(&self.id) {
            return self.passage.unrelated(&reply).await;
        }
        if !self.succeeded || reply.is_error() {
            return match self.is_plain() {
                true => Passing::Untouched,
                false => clean(&reply),
            };
        }
        if self.watches
            && let Err(why) = self.calls.shared.note_tools(&self.calls.route, &reply).await
        {
            return Passing::Replaced(list::not_shown(&self.id, &why));
        }
        if self.is_plain() {
            return Passing::Untouched;
        }
        let additions = match self.message.take() {
            Some(message) => Some(self.calls.declare(&self.caller, self.invocation.take(), message).await),
            None => None,
        };
        // After the declaration, which may determine the tools that the caller can call.
        let tools = match self.filters {
            true => self.calls.tools_of(&self.caller, &reply).await,
            false => None,
        };
        if additions.is_none() && !self.filters {
            return clean(&reply);
        }
        // The answer is specific to this caller now (X-1, V-36), and must not be cached for others.
        let mut changes: Vec<(&str, Option<&str>)> = match self.caller.era {
            Era::Modern => vec![("cacheScope", Some("\"private\"")), ("ttlMs", Some("0"))],
            Era::Legacy => Vec::new(),
        };
        changes.extend(tools.as_deref().map(|tools| ("tools", Some(tools))));
        let additions = additions.unwrap_or_default();
        let spliced = reply.edited(&changes, &additions.members(), Additions::dropped());
        Passing::Replaced(self.opened(spliced))
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}

impl DeclarationTap {
    /// Returns whether the answer is only inspected: the request carried no message, and no tool is hidden.
    fn is_plain(&self) -> bool {
        self.message.is_none() && !self.filters
    }

    /// Adds the gateway's capability to the answer of `initialize` or `server/discover`.
    fn opened(&self, message: Bytes) -> Bytes {
        use crate::mcp::ServerMessages as _;
        let Some(frame) = self.frame.clone() else { return message };
        self.calls.advertise(&Opening { frame, caller: self.caller.clone() }, message)
    }
}

/// Returns the caller, with the MCP session that an `initialize` opens, which only its answer names.
fn in_session(frame: &Frame, caller: Caller, answer: &UpstreamAnswer) -> Caller {
    let named = || fields::text(&answer.headers, &SESSION).map(str::to_owned);
    match frame.method() {
        Some("initialize") => caller.with_issued_session(named()),
        _ => caller,
    }
}

/// Returns the kind of carrier that a method is. Other methods carry nothing: a message in them is removed and has no
/// effect.
fn carrier(method: &str) -> Option<Carrier> {
    match method {
        "initialize" => Some(Carrier::Initialize),
        "server/discover" => Some(Carrier::Discover),
        "tools/list" => Some(Carrier::ToolsList),
        "ping" => Some(Carrier::Ping),
        _ => None,
    }
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
