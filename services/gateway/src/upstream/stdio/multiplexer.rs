//! The modern requests of all clients, multiplexed on one child process. The caller is `shared`, which starts the child.
//!
//! Two clients may use the same ids, so each request gets an id of the gateway in place of the client's id, progress
//! token and subscription id; in the messages to the client these are restored. If a client disconnects, its request is
//! cancelled with `notifications/cancelled`.
//!
//! A message that names its request goes to the client of that request. A log message names none: it goes to the client
//! of the only open request that asked for log messages. If there are several, the message is dropped, because it may
//! not be meant for their clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::catalog::{self, Catalog};
use super::child::{Child, Gone, Lines, Program};
use super::mirrors::DeclaredHeader;
use crate::frame::{error_code, reply};
use crate::limits;
use crate::upstream::text::{Edits, Json, RpcKind, RpcMessage, meta};
use crate::upstream::{AnswerBody, UpstreamAnswer, UpstreamError, answer};

const ENDED: &str = "the server's process ended";

/// A running child process, and the requests that it has not answered.
#[derive(Debug)]
pub struct Multiplexer {
    child: Child,
    requests: Mutex<OpenRequests>,
    catalog: tokio::sync::Mutex<Catalog>,
}

#[derive(Debug, Default)]
struct OpenRequests {
    by_gateway_id: HashMap<i64, OpenRequest>,
    last_gateway_id: i64,
}

/// What is needed to pass the child's messages to the client of a request.
#[derive(Debug)]
struct OpenRequest {
    /// The raw JSON of the client's id.
    client_id: String,
    /// The raw JSON of the client's progress token.
    client_token: Option<String>,
    wants_log: bool,
    to_client: mpsc::UnboundedSender<ClientMessage>,
    unread_bytes: Arc<AtomicUsize>,
}

/// A message for a client, with the client's own ids.
#[derive(Debug)]
struct ClientMessage {
    text: Bytes,
    /// The HTTP status of an answer that has only this message.
    status: StatusCode,
    is_response: bool,
}

/// Reason why a request was not sent to the child.
enum NotSent {
    TooManyRequests,
    ChildEnded,
}

impl Multiplexer {
    /// Starts the child, and a task that reads its messages.
    ///
    /// # Errors
    /// If the process does not start.
    pub fn start(program: &Program, name: &Arc<str>) -> std::io::Result<Arc<Self>> {
        let (child, lines) = Child::start(program, name)?;
        let started =
            Arc::new(Self { child, requests: Mutex::default(), catalog: tokio::sync::Mutex::default() });
        tokio::spawn(read_messages(Arc::downgrade(&started), lines, Arc::clone(name)));
        Ok(started)
    }

    /// Returns whether the child still accepts messages.
    pub fn is_alive(&self) -> bool {
        self.child.is_alive()
    }

    /// Ends the child, and waits until its process has exited.
    pub async fn stop(&self) {
        self.child.stop();
        self.child.gone().await;
    }

    /// Forwards a client's request.
    ///
    /// # Errors
    /// [`UpstreamError::NeverSent`] if the child has ended, or [`UpstreamError::Lost`] if it ends before it answers.
    pub async fn request(
        self: &Arc<Self>,
        message: &RpcMessage<'_>,
    ) -> Result<UpstreamAnswer, UpstreamError> {
        let mut messages = match self.send(message).await {
            Ok(messages) => messages,
            Err(NotSent::TooManyRequests) => {
                let why = "too many requests are open at this server";
                return Ok(answer::busy(message.id().map(Json::raw), why));
            }
            Err(NotSent::ChildEnded) => return Err(UpstreamError::NeverSent(ENDED.to_owned())),
        };
        match timeout(limits::FIRST_MESSAGE_TIME, messages.next()).await {
            Err(_) => Ok(answer::events(as_events(messages, None))),
            Ok(None) => Err(UpstreamError::Lost(ENDED.to_owned())),
            Ok(Some(only)) if only.is_response => Ok(answer::json(only.status, only.text)),
            Ok(Some(first)) => Ok(answer::events(as_events(messages, Some(first)))),
        }
    }

    /// Forwards a client's notification.
    ///
    /// # Errors
    /// [`UpstreamError::NeverSent`] if the child has ended.
    pub async fn notify(&self, message: &RpcMessage<'_>) -> Result<(), UpstreamError> {
        let sent = self.child.write(message.text().as_bytes()).await;
        sent.map_err(|Gone| UpstreamError::NeverSent(ENDED.to_owned()))
    }

    /// Sends a request of the gateway itself, and returns the response. `None` if it cannot be sent, or the child ends
    /// before it answers.
    pub async fn ask(self: &Arc<Self>, request: &str) -> Option<Bytes> {
        let mut messages = self.send(&RpcMessage::read(request)?).await.ok()?;
        loop {
            let message = messages.next().await?;
            if message.is_response {
                return Some(message.text);
            }
        }
    }

    /// The parameters of a tool that have headers, from the cache or the child's `tools/list`. Empty if the child does
    /// not answer: that is no reason to fail a call.
    pub async fn declared_headers(
        self: &Arc<Self>,
        tool: &str,
        request: &RpcMessage<'_>,
    ) -> Vec<DeclaredHeader> {
        let mut catalog = self.catalog.lock().await;
        if let Some(known) = catalog.get(tool) {
            return known.to_vec();
        }
        catalog.asking();
        let mut cursor = None;
        for _ in 0..limits::CATALOG_PAGES {
            let page = catalog::page(request, cursor.as_deref());
            let Ok(Some(text)) = timeout(limits::PROBE_TIME, self.ask(&page)).await else { break };
            cursor = RpcMessage::read_bytes(&text).and_then(|answer| catalog.learn(&answer));
            if cursor.is_none() {
                break;
            }
        }
        catalog.get(tool).unwrap_or_default().to_vec()
    }

    /// Sends a request to the child, with an id of the gateway.
    async fn send(self: &Arc<Self>, message: &RpcMessage<'_>) -> Result<RequestMessages, NotSent> {
        let mut messages = self.register(message)?;
        let text = with_gateway_id(message, messages.gateway_id);
        self.child.write(&text).await.map_err(|Gone| NotSent::ChildEnded)?;
        messages.is_sent = true;
        Ok(messages)
    }

    fn register(self: &Arc<Self>, message: &RpcMessage<'_>) -> Result<RequestMessages, NotSent> {
        let mut requests = self.requests();
        // Checked under the lock: `read_messages` removes all requests after the child has ended.
        if !self.is_alive() {
            return Err(NotSent::ChildEnded);
        }
        if requests.by_gateway_id.len() >= limits::SHARED_CALLS {
            return Err(NotSent::TooManyRequests);
        }
        requests.last_gateway_id += 1;
        let gateway_id = requests.last_gateway_id;
        let (to_client, received) = mpsc::unbounded_channel();
        let unread_bytes = Arc::new(AtomicUsize::new(0));
        let request = OpenRequest {
            client_id: message.id().map_or("null", Json::raw).to_owned(),
            client_token: message.meta(meta::PROGRESS_TOKEN).map(|token| token.raw().to_owned()),
            wants_log: message.meta(meta::LOG_LEVEL).is_some(),
            to_client,
            unread_bytes: Arc::clone(&unread_bytes),
        };
        requests.by_gateway_id.insert(gateway_id, request);
        let multiplexer = Arc::clone(self);
        Ok(RequestMessages { multiplexer, gateway_id, received, unread_bytes, is_sent: false })
    }

    /// Handles a message of the child.
    fn receive(&self, message: &RpcMessage<'_>, name: &str) {
        match message.kind {
            RpcKind::Request => self.refuse(message, name),
            RpcKind::Notification | RpcKind::Response => self.pass_to_client(message, name),
        }
    }

    /// Refuses a request of the server: the modern era has none, and the server would wait for a response forever.
    fn refuse(&self, message: &RpcMessage<'_>, name: &str) {
        tracing::warn!(server = %name, "a request of the server, which this revision does not have");
        let why = "there are no requests of servers in this revision";
        let id = message.id().map(Json::raw);
        self.child.write_later(&answer::error_message(id, error_code::METHOD_NOT_FOUND, why));
    }

    /// Passes a message to the client of its request. If the client leaves too much unread, its request is cancelled,
    /// unless this is the response.
    fn pass_to_client(&self, message: &RpcMessage<'_>, name: &str) {
        let mut requests = self.requests();
        let Some(gateway_id) = requests.gateway_id_of(message) else {
            return tracing::debug!(server = %name, "a message that belongs to no request");
        };
        let Some(request) = requests.by_gateway_id.get(&gateway_id) else { return };
        let unread_bytes = request.pass(message);
        let is_response = message.kind == RpcKind::Response;
        let is_cut = !is_response && unread_bytes > limits::UNREAD_BYTES;
        if is_response || is_cut {
            requests.by_gateway_id.remove(&gateway_id);
        }
        if is_cut {
            tracing::warn!(server = %name, "a client does not read: its stream is cut");
            self.cancel(gateway_id, "the client does not read");
        }
    }

    fn cancel(&self, gateway_id: i64, why: &str) {
        self.child.write_later(&reply::cancelled(&gateway_id, why));
    }

    fn requests(&self) -> MutexGuard<'_, OpenRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenRequests {
    /// The gateway's id of the request that a message belongs to.
    fn gateway_id_of(&self, message: &RpcMessage<'_>) -> Option<i64> {
        if message.kind == RpcKind::Response {
            return message.id()?.integer();
        }
        if let Some(subscription) = message.meta(meta::SUBSCRIPTION) {
            return subscription.integer();
        }
        match message.method()?.as_str() {
            "notifications/progress" => message.param(meta::PROGRESS_TOKEN)?.integer(),
            "notifications/message" => {
                let mut wanted = self.by_gateway_id.iter().filter(|(_, request)| request.wants_log);
                wanted.next().filter(|_| wanted.next().is_none()).map(|(gateway_id, _)| *gateway_id)
            }
            _ => None,
        }
    }
}

impl OpenRequest {
    /// Passes a message to the client, and returns the number of bytes that were unread before.
    fn pass(&self, message: &RpcMessage<'_>) -> usize {
        let text = self.with_client_ids(message);
        let unread_bytes = self.unread_bytes.fetch_add(text.len(), Ordering::Relaxed);
        let status = answer::modern_status(message);
        let is_response = message.kind == RpcKind::Response;
        // The receiver removes the request before it closes the channel.
        let _ = self.to_client.send(ClientMessage { text, status, is_response });
        unread_bytes
    }

    /// The message with the client's own id, progress token and subscription id.
    fn with_client_ids(&self, message: &RpcMessage<'_>) -> Bytes {
        let is_progress = message.method().as_deref() == Some("notifications/progress");
        let token = message.param(meta::PROGRESS_TOKEN).filter(|_| is_progress);
        let mut edits = Edits::of(message.text());
        for (part, text) in [
            (message.id(), Some(&self.client_id)),
            (message.meta(meta::SUBSCRIPTION), Some(&self.client_id)),
            (message.at(&["result", "_meta", meta::SUBSCRIPTION]), Some(&self.client_id)),
            (token, self.client_token.as_ref()),
        ] {
            if let (Some(part), Some(text)) = (part, text) {
                edits.replace(part, text);
            }
        }
        edits.done()
    }
}

/// A request with the gateway's id in place of the client's id and progress token.
fn with_gateway_id(message: &RpcMessage<'_>, gateway_id: i64) -> Bytes {
    let mut edits = Edits::of(message.text());
    for part in [message.id(), message.meta(meta::PROGRESS_TOKEN)].into_iter().flatten() {
        edits.replace(part, gateway_id.to_string());
    }
    edits.done()
}

/// The receiver of the messages for one request. Dropping it before the response arrived cancels the request.
struct RequestMessages {
    multiplexer: Arc<Multiplexer>,
    gateway_id: i64,
    received: mpsc::UnboundedReceiver<ClientMessage>,
    unread_bytes: Arc<AtomicUsize>,
    /// False while the child has not taken the request: then there is nothing to cancel.
    is_sent: bool,
}

impl RequestMessages {
    /// Waits for the next message; `None` if no response will arrive.
    async fn next(&mut self) -> Option<ClientMessage> {
        let message = self.received.recv().await?;
        self.unread_bytes.fetch_sub(message.text.len(), Ordering::Relaxed);
        Some(message)
    }
}

impl Drop for RequestMessages {
    fn drop(&mut self) {
        let is_open = self.multiplexer.requests().by_gateway_id.remove(&self.gateway_id).is_some();
        if is_open && self.is_sent {
            self.multiplexer.cancel(self.gateway_id, "the client went away");
        }
    }
}

/// The messages as an event stream; `first` was received already.
fn as_events(messages: RequestMessages, first: Option<ClientMessage>) -> AnswerBody {
    let event = |message: &ClientMessage| answer::event(None, &message.text);
    let first = stream::iter(first.map(|message| Ok(event(&message))));
    let rest = stream::unfold(Some(messages), move |messages| async move {
        let mut messages = messages?;
        match timeout(limits::KEEP_ALIVE, messages.next()).await {
            Err(_) => Some((Ok(answer::ALIVE), Some(messages))),
            Ok(Some(message)) => Some((Ok(event(&message)), (!message.is_response).then_some(messages))),
            Ok(None) => Some((Err(UpstreamError::Lost(ENDED.to_owned())), None)),
        }
    });
    first.chain(rest).boxed()
}

/// Reads the child's messages until it ends. Then the open requests are removed, which ends their streams with an
/// error.
async fn read_messages(multiplexer: Weak<Multiplexer>, mut lines: Lines, name: Arc<str>) {
    while let Some(line) = lines.recv().await {
        let Some(multiplexer) = multiplexer.upgrade() else { return };
        match RpcMessage::read_bytes(&line) {
            Some(message) => multiplexer.receive(&message, &name),
            None => tracing::debug!(server = %name, "a line that is not a message"),
        }
    }
    if let Some(multiplexer) = multiplexer.upgrade() {
        multiplexer.child.stop();
        multiplexer.requests().by_gateway_id.clear();
    }
}
