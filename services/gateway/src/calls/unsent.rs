//! Calls of which nothing was sent: a legacy client cancels them by a notification, which then stays in the gateway.
//!
//! A call is listed from its arrival, before its handling begins, until it is sent, whether it is decided, parked, or
//! waits for a judge, a person, an approver or a receipt. After that it is one of [`unanswered`](super::unanswered).
//! Without an MCP session, an id names no call that the gateway could tell from another client's. In the modern era a
//! client disconnects instead.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admission::principal::Caller;
use tokio_util::sync::CancellationToken;

use super::{Calls, legacy_session};
use crate::frame::{Frame, NOTIFICATIONS_CANCELLED, RawId};
use crate::mcp::Inbound;

/// A route, an MCP session on it, and the id of a call.
type Name = (Arc<str>, String, RawId);
/// The calls of each name: a client may use an id twice.
type Table = HashMap<Name, Vec<Arc<CancellationToken>>>;

/// The calls of which nothing was sent.
#[derive(Clone, Default)]
pub struct UnsentCalls(Arc<Mutex<Table>>);

/// A call of which nothing was sent. Dropping it removes it from [`UnsentCalls`].
pub struct UnsentCall {
    all: UnsentCalls,
    /// `None` for a call that no notification can cancel.
    name: Option<Name>,
    cancelled: Arc<CancellationToken>,
}

impl UnsentCalls {
    /// Adds a call that has arrived.
    pub fn list(&self, route: &Arc<str>, caller: &Caller, id: &RawId) -> UnsentCall {
        let (name, cancelled) = (name(route, caller, id), Arc::<CancellationToken>::default());
        if let Some(name) = &name {
            self.lock().entry(name.clone()).or_default().push(cancelled.clone());
        }
        UnsentCall { all: self.clone(), name, cancelled }
    }

    /// Cancels the calls of this session with this id. Returns `false` if there are none.
    pub fn cancel(&self, route: &Arc<str>, caller: &Caller, id: &RawId) -> bool {
        let Some(name) = name(route, caller, id) else { return false };
        // The lock is held, so that a call that is about to be sent has either ended before or sees this.
        let table = self.lock();
        let calls = table.get(&name);
        calls.into_iter().flatten().for_each(|cancelled| cancelled.cancel());
        calls.is_some()
    }

    /// Cancels all calls of a session that has ended.
    pub fn gone(&self, route: &Arc<str>, session: &str) {
        let table = self.lock();
        let of_session = table.iter().filter(|((at, of, _), _)| at == route && of == session);
        of_session.flat_map(|(_, calls)| calls).for_each(|cancelled| cancelled.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnsentCall {
    /// Waits until the call is cancelled, or its MCP session ends.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Returns whether the call is cancelled, or its MCP session has ended.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Removes the call, which is about to be sent, and returns whether it was cancelled before.
    pub fn end(self) -> bool {
        let cancelled = self.cancelled.clone();
        drop(self);
        cancelled.is_cancelled()
    }
}

impl Drop for UnsentCall {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let mut table = self.all.lock();
        let Some(calls) = table.get_mut(name) else { return };
        calls.retain(|cancelled| !Arc::ptr_eq(cancelled, &self.cancelled));
        if calls.is_empty() {
            table.remove(name);
        }
    }
}

impl Calls {
    /// Cancels the call that a notification names, and returns whether nothing of it was sent: then the notification is
    /// not for the upstream.
    pub(super) fn withdrawn(&self, inbound: &Inbound) -> bool {
        let Some(id) = cancelled(&inbound.frame) else { return false };
        let is_unsent = self.shared.unsent.cancel(&self.route, &inbound.caller, &id);
        if !is_unsent {
            self.shared.unanswered.cancel(&self.route, &inbound.caller, &id);
        }
        is_unsent
    }
}

/// Returns the id of the request that a `notifications/cancelled` names.
fn cancelled(notification: &Frame) -> Option<RawId> {
    let is_one = notification.method() == Some(NOTIFICATIONS_CANCELLED);
    notification.param("requestId").filter(|_| is_one).and_then(RawId::read)
}

/// Returns the key of a call. `None` if no notification can cancel it.
fn name(route: &Arc<str>, caller: &Caller, id: &RawId) -> Option<Name> {
    Some((route.clone(), legacy_session(caller)?.to_owned(), id.clone()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use admission::principal::Era;

    use super::*;

    fn caller(session: Option<&str>) -> Caller {
        Caller { mcp_session: session.map(str::to_owned), ..Caller::unknown(Era::Legacy) }
    }

    #[test]
    fn a_cancellation_reaches_all_calls_of_its_id_until_they_are_sent() {
        let (all, route, id) = (UnsentCalls::default(), Arc::from("/mcp"), RawId::read("7").unwrap());
        let caller = caller(Some("m-1"));
        let (first, second) = (all.list(&route, &caller, &id), all.list(&route, &caller, &id));
        assert!(!first.end(), "it was sent before");
        assert!(all.cancel(&route, &caller, &id));
        assert!(second.end());
        assert!(!all.cancel(&route, &caller, &id));
        assert!(all.lock().is_empty());
    }

    #[test]
    fn a_cancellation_is_for_calls_of_its_own_session_and_id_alone() {
        let (all, route, id) = (UnsentCalls::default(), Arc::from("/mcp"), RawId::read("7").unwrap());
        for session in [Some("m-1"), None] {
            let call = all.list(&route, &caller(session), &id);
            assert!(!all.cancel(&route, &caller(Some("m-2")), &id));
            assert!(!all.cancel(&route, &caller(None), &id));
            assert!(!all.cancel(&route, &caller(session), &RawId::read("\"7\"").unwrap()));
            assert!(!call.end());
        }
    }

    #[test]
    fn the_end_of_a_session_cancels_its_calls() {
        let (all, route, id) = (UnsentCalls::default(), Arc::from("/mcp"), RawId::read("7").unwrap());
        let [of_session, other] = ["m-1", "m-2"].map(|session| all.list(&route, &caller(Some(session)), &id));
        all.gone(&route, "m-1");
        assert!(of_session.end() && !other.end());
    }
}
