//! Answers that come another way: a legacy server may answer a call on another stream than the call's own, while that is open
//! or when it has ended, and the client reads the answer there (a GET that resumes, mostly). An answer may also come again,
//! when a client resumes a stream that broke.
//!
//! What an admitted call owes is in one place ([`Owes`]) that its own stream and all others of its session take it from: it
//! is paid once, wherever the answer comes; or `unknown`, when none does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use admission::principal::{Caller, Era};
use moka::sync::Cache;

use super::additions::Additions;
use super::ending::Ending;
use crate::frame::reply::Reply;
use crate::frame::{LooseId, RawId};
use crate::limits::{MAX_OWED_ANSWERS, MAX_REMEMBERED_ANSWERS};
use crate::relay::Passing;

/// What a call owes, until it is paid. Whoever pays holds the lock: others wait for what it comes to.
pub type Owes = tokio::sync::Mutex<Option<Ending>>;

/// A route, an MCP session there, and what careless clients take an id in it for.
type Name = (Arc<str>, String, LooseId);

/// Calls without an answer, and answers that may come again.
#[derive(Clone)]
pub struct Unanswered {
    table: Arc<Mutex<Table>>,
    given: Cache<Name, Arc<Given>>,
    patience: Duration,
}

#[derive(Default)]
struct Table {
    open: HashMap<Name, Vec<Open>>,
    /// How many of them only this table holds.
    kept: usize,
}

/// A call that was forwarded.
struct Open {
    id: RawId,
    /// Whether its caller is told anything.
    told: bool,
    owes: Weak<Owes>,
    /// Its own stream is over, and what it owes is held here.
    kept: Option<Arc<Owes>>,
}

struct Given {
    id: RawId,
    additions: Additions,
}

/// A call's place among those without an answer. Dropped, it has none any more, unless it is [`Unanswered::keep`]t.
pub struct Listed {
    table: Arc<Mutex<Table>>,
    name: Option<Name>,
    owes: Arc<Owes>,
}

impl Listed {
    /// What the call owes.
    pub fn owes(&self) -> &Owes {
        &self.owes
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            lock(&self.table).remove(name, |open| open.is(&self.owes) && open.kept.is_none());
        }
    }
}

impl Unanswered {
    /// Nothing is owed yet; what will be is waited for so long once the call's own stream is over.
    pub fn new(patience: Duration) -> Self {
        let given = Cache::builder().max_capacity(MAX_REMEMBERED_ANSWERS).time_to_live(patience);
        Self { table: Arc::default(), given: given.build(), patience }
    }

    /// Lists a call that is about to be forwarded.
    pub fn list(&self, ending: Ending) -> Listed {
        let name = name(&ending.route, &ending.caller, &ending.id.loosely());
        let (id, told) = (ending.id.clone(), ending.is_told());
        let owes = Arc::new(Owes::new(Some(ending)));
        if let Some(name) = &name {
            let open = Open { id, told, owes: Arc::downgrade(&owes), kept: None };
            lock(&self.table).open.entry(name.clone()).or_default().push(open);
        }
        Listed { table: self.table.clone(), name, owes }
    }

    /// Keeps what a call owes though its own stream is over, for some time.
    pub fn keep(&self, listed: &Listed) {
        let Some(name) = &listed.name else { return };
        if !lock(&self.table).keep(name, &listed.owes) {
            return;
        }
        let (table, name, patience) = (self.table.clone(), name.clone(), self.patience);
        let owes = Arc::downgrade(&listed.owes);
        tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            lock(&table).remove(&name, |open| Weak::ptr_eq(&open.owes, &owes));
        });
    }

    /// Remembers what was added to an answer, should it come again.
    pub fn remember(&self, route: &Arc<str>, caller: &Caller, id: &RawId, additions: Additions) {
        if let Some(name) = name(route, caller, &id.loosely()) {
            self.given.insert(name, Arc::new(Given { id: id.clone(), additions }));
        }
    }

    /// An answer came where it was not asked for. None: it is nobody's here.
    pub async fn came(&self, route: &Arc<str>, caller: &Caller, reply: &Reply) -> Option<Passing> {
        let name = name(route, caller, &reply.loose_id()?)?;
        let owing = lock(&self.table).answered_by(&name, reply);
        if let Some(owes) = owing {
            let mut owes = owes.lock().await;
            if let Some(ending) = owes.take() {
                return Some(ending.end(reply).await);
            }
        }
        lock(&self.table).forget_paid(&name);
        match self.given.get(&name) {
            Some(given) if reply.answers(&given.id) => Some(match reply.is_error() {
                false => Passing::Replaced(reply.with_meta(&given.additions.members(), Additions::dropped())),
                true => Passing::Replaced(reply.without_said(Additions::dropped())),
            }),
            Some(given) if reply.is_mistaken_for_answer(&given.id) => Some(Passing::Withheld),
            _ => lock(&self.table).is_mistaken(&name, reply).then_some(Passing::Withheld),
        }
    }

    /// The session is gone: nothing comes any more.
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

impl Table {
    /// What this is the exact answer to.
    fn answered_by(&self, name: &Name, reply: &Reply) -> Option<Arc<Owes>> {
        let mut all = self.open.get(name)?.iter().filter(|open| reply.answers(&open.id));
        all.find_map(|open| open.owes.upgrade())
    }

    /// Whether a client that is told something takes this for the answer to a call that is open.
    fn is_mistaken(&self, name: &Name, reply: &Reply) -> bool {
        let all = self.open.get(name).into_iter().flatten();
        all.into_iter().any(|open| open.told && reply.is_mistaken_for_answer(&open.id))
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

    /// What is kept and was paid need not be kept.
    fn forget_paid(&mut self, name: &Name) {
        let is_paid = |owes: &Arc<Owes>| owes.try_lock().is_ok_and(|owes| owes.is_none());
        self.remove(name, |open| open.kept.as_ref().is_some_and(is_paid));
    }

    fn remove(&mut self, name: &Name, which: impl Fn(&Open) -> bool) {
        let Some(all) = self.open.get_mut(name) else { return };
        self.kept -= all.iter().filter(|open| which(open) && open.kept.is_some()).count();
        all.retain(|open| !which(open));
        if all.is_empty() {
            self.open.remove(name);
        }
    }
}

impl Open {
    fn is(&self, owes: &Arc<Owes>) -> bool {
        std::ptr::eq(self.owes.as_ptr(), Arc::as_ptr(owes))
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// There is no other way for an answer without a session, and there are no sessions in the modern era.
fn name(route: &Arc<str>, caller: &Caller, id: &LooseId) -> Option<Name> {
    let session = caller.mcp_session.clone().filter(|_| caller.era == Era::Legacy)?;
    Some((route.clone(), session, id.clone()))
}
