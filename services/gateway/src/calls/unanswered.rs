//! Answers on other streams: a legacy server may answer a call on another stream than the call's own, while that is
//! open or after it has ended, and the client reads the answer there (mostly a GET that resumes). An answer may also be
//! repeated, when a client resumes a stream that broke.
//!
//! The unsettled call is in one place ([`Owes`]), from which its own stream and the others of its session can take it,
//! but for those of other calls and of declarations: it is settled once, by an answer on one of them, or as `unknown` if
//! none arrives in time, or its client cancels it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use admission::principal::Caller;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::additions::Additions;
use super::answer_stream::clean;
use super::ending::Ending;
use super::legacy_session;
use crate::frame::reply::Reply;
use crate::frame::{LooseId, RawId};
use crate::limits::{MAX_OWED_ANSWERS, MAX_REMEMBERED_ANSWERS};
use crate::relay::Passing;

/// The unsettled call; `None` once it is settled. The stream that settles it holds the lock, and the others wait.
pub type Owes = tokio::sync::Mutex<Option<Ending>>;

/// A route, an MCP session on it, and an id as lenient clients compare it.
type Name = (Arc<str>, String, LooseId);

/// The calls without an answer, and the answers that may be repeated.
#[derive(Clone)]
pub struct UnansweredCalls {
    table: Arc<Mutex<UnansweredTable>>,
    given: Cache<Name, Arc<AnsweredCall>>,
    patience: Duration,
    grace: Duration,
}

#[derive(Default)]
struct UnansweredTable {
    open: HashMap<Name, Vec<UnansweredCall>>,
    /// Number of calls that are held only by this table.
    kept: usize,
}

/// A forwarded call.
struct UnansweredCall {
    id: RawId,
    /// `true` if the caller's answers get the gateway's `_meta` members.
    annotated: bool,
    owes: Weak<Owes>,
    cancelled: CancellationToken,
    /// The unsettled call, held here after the end of its own stream.
    kept: Option<Arc<Owes>>,
}

struct AnsweredCall {
    id: RawId,
    /// The digest of the first answer; `None` if that had both a result and an error.
    digest: Option<AnswerDigest>,
    additions: Additions,
}

/// The SHA-256 of what an answer says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerDigest {
    /// Of a result without its `_meta`.
    Result([u8; 32]),
    /// Of an error.
    Error([u8; 32]),
}

/// The entry of a call among those without an answer. Dropping it removes the entry, unless [`UnansweredCalls::keep`] was
/// called.
pub struct UnansweredEntry {
    table: Arc<Mutex<UnansweredTable>>,
    name: Option<Name>,
    owes: Arc<Owes>,
    cancelled: CancellationToken,
}

impl UnansweredEntry {
    /// Returns the token that is cancelled some time after the client cancelled the call.
    pub fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    /// Returns the unsettled call.
    pub fn owes(&self) -> &Owes {
        &self.owes
    }
}

impl Drop for UnansweredEntry {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            lock(&self.table).remove(name, |open| open.is(&self.owes) && open.kept.is_none());
        }
    }
}

impl UnansweredCalls {
    /// An empty table. A call is kept for `patience` after the end of its own stream, or until its own limit if that is
    /// later, and for `grace` after its cancellation.
    pub fn new(patience: Duration, grace: Duration) -> Self {
        let given = Cache::builder().max_capacity(MAX_REMEMBERED_ANSWERS).time_to_live(patience);
        let given = given.eviction_policy(EvictionPolicy::lru()).build();
        Self { table: Arc::default(), given, patience, grace }
    }

    /// Adds a call that is about to be forwarded.
    pub fn list(&self, ending: Ending) -> UnansweredEntry {
        let name = name(&ending.route, &ending.caller, &ending.id.loosely());
        let (id, annotated) = (ending.id.clone(), ending.is_annotated());
        let (owes, cancelled) = (Arc::new(Owes::new(Some(ending))), CancellationToken::new());
        if let Some(name) = &name {
            let (owes, cancelled) = (Arc::downgrade(&owes), cancelled.clone());
            let open = UnansweredCall { id, annotated, owes, cancelled, kept: None };
            lock(&self.table).open.entry(name.clone()).or_default().push(open);
        }
        UnansweredEntry { table: self.table.clone(), name, owes, cancelled }
    }

    /// Gives up the calls of this session with this id, which its client cancels, after a pause in which an answer may
    /// still arrive.
    pub fn cancel(&self, route: &Arc<str>, caller: &Caller, id: &RawId) {
        let Some(name) = name(route, caller, &id.loosely()) else { return };
        let cancelled = lock(&self.table).cancellable(&name, id);
        if cancelled.is_empty() {
            return;
        }
        let (table, grace) = (self.table.clone(), self.grace);
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            cancelled.iter().for_each(CancellationToken::cancel);
            lock(&table).remove(&name, |open| open.kept.is_some() && open.cancelled.is_cancelled());
        });
    }

    /// Keeps an unsettled call for some time after the end of its own stream, and at least until its `limit`.
    pub fn keep(&self, listed: &UnansweredEntry, limit: Instant) {
        let Some(name) = &listed.name else { return };
        if !lock(&self.table).keep(name, &listed.owes) {
            return;
        }
        let (table, name) = (self.table.clone(), name.clone());
        let (owes, until) = (Arc::downgrade(&listed.owes), limit.max(Instant::now() + self.patience));
        tokio::spawn(async move {
            tokio::time::sleep_until(until).await;
            lock(&table).remove(&name, |open| Weak::ptr_eq(&open.owes, &owes));
        });
    }

    /// Returns whether a call of this session is open whose answer gets the gateway's `_meta` members.
    pub fn has_open(&self, route: &Arc<str>, caller: &Caller) -> bool {
        let Some(session) = legacy_session(caller) else { return false };
        let table = lock(&self.table);
        let of_session = table.open.iter().filter(|((at, of, _), _)| at == route && of == session);
        of_session.flat_map(|(_, all)| all).any(|open| open.annotated && open.is_unsettled())
    }

    /// Remembers the members of an answer, in case the answer is repeated. `id` is that of the call.
    pub fn remember(
        &self,
        route: &Arc<str>,
        caller: &Caller,
        (id, answer): (&RawId, &Reply),
        additions: Additions,
    ) {
        if let Some(name) = name(route, caller, &id.loosely()) {
            let (id, digest) = (id.clone(), AnswerDigest::of(answer));
            self.given.insert(name, Arc::new(AnsweredCall { id, digest, additions }));
        }
    }

    /// Handles an answer on a stream where it is not awaited. `None` if it answers no call of this session.
    pub async fn take_answer(&self, route: &Arc<str>, caller: &Caller, reply: &Reply) -> Option<Passing> {
        let name = name(route, caller, &reply.loose_id()?)?;
        let owing = lock(&self.table).answered_by(&name, reply);
        if let Some(owes) = owing {
            let mut owes = owes.lock().await;
            if let Some(ending) = owes.take() {
                let passing = ending.end(reply).await;
                drop(owes);
                lock(&self.table).forget_paid(&name);
                return Some(passing);
            }
        }
        lock(&self.table).forget_paid(&name);
        match self.given.get(&name) {
            Some(given) if reply.answers(&given.id) => Some(given.repeated_by(reply)),
            Some(given) if reply.is_mistaken_for_answer(&given.id) => Some(Passing::Withheld),
            _ => lock(&self.table).is_mistaken(&name, reply).then_some(Passing::Withheld),
        }
    }

    /// Removes the calls of a session that has ended, since no answer follows.
    pub fn gone(&self, route: &Arc<str>, caller: &Caller) {
        let Some(session) = &caller.mcp_session else { return };
        let mut table = lock(&self.table);
        let here = |(at, of, _): &Name| at == route && of == session;
        let kept = table.open.iter().filter(|(name, _)| here(name)).flat_map(|(_, all)| all);
        let kept = kept.filter(|open| open.kept.is_some()).count();
        table.kept -= kept;
        table.open.retain(|name, _| !here(name));
    }
}

impl UnansweredTable {
    /// Returns the unsettled call that this reply answers exactly.
    fn answered_by(&self, name: &Name, reply: &Reply) -> Option<Arc<Owes>> {
        let mut all = self.open.get(name)?.iter().filter(|open| reply.answers(&open.id));
        all.find_map(|open| open.owes.upgrade())
    }

    /// Returns whether a client may take this for the answer to an open call whose answers get the gateway's `_meta`
    /// members.
    fn is_mistaken(&self, name: &Name, reply: &Reply) -> bool {
        let all = self.open.get(name).into_iter().flatten();
        all.into_iter().any(|open| open.annotated && reply.is_mistaken_for_answer(&open.id))
    }

    /// The tokens that give up the calls with this id.
    fn cancellable(&self, name: &Name, id: &RawId) -> Vec<CancellationToken> {
        let all = self.open.get(name).into_iter().flatten().filter(|open| open.id == *id);
        all.map(|open| open.cancelled.clone()).collect()
    }

    fn keep(&mut self, name: &Name, owes: &Arc<Owes>) -> bool {
        let all = self.open.get_mut(name).into_iter().flatten();
        match all.into_iter().find(|open| open.is(owes) && open.kept.is_none()) {
            Some(open) if self.kept < MAX_OWED_ANSWERS => {
                open.kept = Some(owes.clone());
                self.kept += 1;
                true
            }
            _ => false,
        }
    }

    /// Removes the kept calls that are settled.
    fn forget_paid(&mut self, name: &Name) {
        let is_paid = |owes: &Arc<Owes>| owes.try_lock().is_ok_and(|owes| owes.is_none());
        self.remove(name, |open| open.kept.as_ref().is_some_and(is_paid));
    }

    fn remove(&mut self, name: &Name, which: impl Fn(&UnansweredCall) -> bool) {
        let Some(all) = self.open.get_mut(name) else { return };
        self.kept -= all.iter().filter(|open| which(open) && open.kept.is_some()).count();
        all.retain(|open| !which(open));
        if all.is_empty() {
            self.open.remove(name);
        }
    }
}

impl UnansweredCall {
    fn is(&self, owes: &Arc<Owes>) -> bool {
        std::ptr::eq(self.owes.as_ptr(), Arc::as_ptr(owes))
    }

    /// Returns whether the call has no outcome yet; one that is being settled has none.
    fn is_unsettled(&self) -> bool {
        self.owes.upgrade().is_some_and(|owes| owes.try_lock().map_or(true, |owes| owes.is_some()))
    }
}

impl AnsweredCall {
    /// Handles a further answer to the call. Another answer than the first one is not what was recorded.
    fn repeated_by(&self, reply: &Reply) -> Passing {
        match AnswerDigest::of(reply).filter(|digest| self.digest == Some(*digest)) {
            Some(AnswerDigest::Result(_)) => {
                Passing::Replaced(reply.with_meta(&self.additions.members(), Additions::dropped()))
            }
            Some(AnswerDigest::Error(_)) => clean(reply),
            None => Passing::Withheld,
        }
    }
}

impl AnswerDigest {
    /// `None` for an answer with both a result and an error, which clients read differently.
    fn of(answer: &Reply) -> Option<Self> {
        match (answer.result_without_meta(), answer.member("error")) {
            (Some(result), None) => Some(Self::Result(Sha256::digest(result).into())),
            (None, Some(error)) => Some(Self::Error(Sha256::digest(error).into())),
            _ => None,
        }
    }
}

fn lock(table: &Mutex<UnansweredTable>) -> MutexGuard<'_, UnansweredTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the key of a call. `None` without a session, since no other stream can answer the call.
fn name(route: &Arc<str>, caller: &Caller, id: &LooseId) -> Option<Name> {
    Some((route.clone(), legacy_session(caller)?.to_owned(), id.clone()))
}
