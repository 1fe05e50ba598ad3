//! Fault injection for storage traits: [`Faults`] decides which calls fail, [`failing_store!`] declares a wrapper
//! that asks it before each call.
//!
//! The wrapper works over any implementation, so the same tests of a caller run over memory and over SQL. Calls
//! are counted from the moment a fault is ordered: `fail(Commit, 1, …)` hits the next commit.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Failure mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call has no effect, and the caller learns that.
    Refused,
    /// The call has no effect, as no space is left.
    Full,
    /// The call has no effect: another process has changed what it relies on, if it is a commit.
    Overtaken,
    /// The call has no effect, but the caller cannot know: the outcome of a commit is unknown.
    NotApplied,
    /// The call takes effect, but the caller cannot know: the outcome of a commit is unknown.
    AppliedWithoutAnswer,
    /// The call has no effect, and no later call in this process will have one.
    Ended,
}

/// Error of a storage trait that a [`Fault`] can cause.
pub trait InjectedError {
    /// Returns the error of a call that fails in this way; `text` names the method.
    fn injected(fault: Fault, text: String) -> Self;
}

/// Faults ordered for the methods `M` of a store. Clones share the orders.
#[derive(Clone, Debug)]
pub struct Faults<M: 'static> {
    plan: Arc<Mutex<FaultPlan<M>>>,
    held: watch::Sender<HashSet<M>>,
    writes: &'static [M],
}

#[derive(Debug)]
struct FaultPlan<M> {
    /// Fault of every call, until [`Faults::mend`].
    outage: Option<Fault>,
    /// Faults that wait for the n-th call of one method, or of any method (`None`).
    waiting: Vec<(Option<M>, u64, Fault)>,
    /// Methods of which every call fails.
    failing: HashSet<M>,
    made: HashMap<M, u64>,
    pausing: bool,
}

impl<M: Copy + Debug + Eq + Hash> Faults<M> {
    /// Passes every call until a fault is ordered. `writes` are the methods that need space ([`Fault::Full`]).
    pub fn new(writes: &'static [M]) -> Self {
        let plan = FaultPlan {
            outage: None,
            waiting: Vec::new(),
            failing: HashSet::new(),
            made: HashMap::new(),
            pausing: false,
        };
        Self { plan: Arc::new(Mutex::new(plan)), held: watch::Sender::new(HashSet::new()), writes }
    }

    /// Makes the `nth` call of this method from now on fail once; 1 is the next call.
    pub fn fail(&self, method: M, nth: u64, fault: Fault) {
        self.plan().waiting.push((Some(method), nth, fault));
    }

    /// Makes the `nth` call of any method from now on fail once.
    pub fn fail_any(&self, nth: u64, fault: Fault) {
        self.plan().waiting.push((None, nth, fault));
    }

    /// Makes every call of this method fail before it has an effect, until [`heal`](Self::heal).
    pub fn fail_every(&self, method: M) {
        self.plan().failing.insert(method);
    }

    /// Makes every call fail (with [`Fault::Full`]: every write) until [`mend`](Self::mend).
    pub fn break_down(&self, fault: Fault) {
        self.plan().outage = Some(fault);
    }

    /// Ends a [`break_down`](Self::break_down); other faults that were ordered stay.
    pub fn mend(&self) {
        self.plan().outage = None;
    }

    /// Removes all faults that were ordered and did not happen yet, and ends an outage.
    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.outage = None;
        plan.waiting.clear();
        plan.failing.clear();
    }

    /// Makes every call of this method wait until [`release_calls`](Self::release_calls).
    pub fn hold_calls(&self, method: M) {
        self.held.send_if_modified(|held| held.insert(method));
    }

    /// Lets the waiting calls of this method go on, and those after them.
    pub fn release_calls(&self, method: M) {
        self.held.send_if_modified(|held| held.remove(&method));
    }

    /// Yields to the executor once before every call from now on, so that other tasks can run in between.
    pub fn pause_before_calls(&self) {
        self.plan().pausing = true;
    }

    /// Number of single faults that did not happen yet.
    pub fn faults_left(&self) -> usize {
        self.plan().waiting.len()
    }

    /// Number of calls of this method so far.
    pub fn calls(&self, method: M) -> u64 {
        self.plan().made.get(&method).copied().unwrap_or(0)
    }

    /// Number of calls of all methods so far.
    pub fn all_calls(&self) -> u64 {
        self.plan().made.values().sum()
    }

    /// Runs a call of a method, or fails as ordered.
    pub async fn run<T, E: InjectedError>(
        &self,
        method: M,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let pausing = self.plan().pausing;
        if pausing {
            tokio::task::yield_now().await;
        }
        if self.held.borrow().contains(&method) {
            // The sender lives in `self`, so the wait cannot fail.
            let _ = self.held.subscribe().wait_for(|held| !held.contains(&method)).await;
        }
        let Some(fault) = self.next_fault(method) else { return call.await };
        if fault == Fault::AppliedWithoutAnswer {
            call.await?;
        }
        Err(E::injected(fault, format!("{method:?} failed on request")))
    }

    fn next_fault(&self, method: M) -> Option<Fault> {
        let mut plan = self.plan();
        *plan.made.entry(method).or_default() += 1;
        let mut due = None;
        plan.waiting.retain_mut(|(wanted, left, fault)| {
            if wanted.is_some_and(|wanted| wanted != method) {
                return true;
            }
            *left = left.saturating_sub(1);
            if *left == 0 {
                due = Some(*fault);
            }
            *left > 0
        });
        let outage = plan.outage.filter(|fault| *fault != Fault::Full || self.writes.contains(&method));
        due.or(outage).or_else(|| plan.failing.contains(&method).then_some(Fault::Refused))
    }

    fn plan(&self) -> MutexGuard<'_, FaultPlan<M>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Declares a wrapper of a store that implements the listed traits by passing each call on through [`Faults`], and
/// the enumeration of their methods. The caller needs `async-trait` and the traits in scope.
///
/// A trait may begin with methods of its own in brackets, which cannot fail: `self.inner` is the wrapped store.
#[macro_export]
macro_rules! failing_store {
    (
        $(#[$wrapper_meta:meta])* pub struct $wrapper:ident over $store:ident;
        $(#[$methods_meta:meta])* pub enum $methods:ident;
        writes [$($write:ident),*];
        $(impl $trait:ident $([$($own:tt)*])? {
            $($method:ident $function:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*
        })*
    ) => {
        $(#[$methods_meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum $methods { $($($method,)*)* }

        $(#[$wrapper_meta])*
        #[derive(Clone)]
        pub struct $wrapper {
            inner: ::std::sync::Arc<dyn $store>,
            faults: $crate::Faults<$methods>,
        }

        impl $wrapper {
            /// Wraps a store; every call passes until a fault is ordered.
            pub fn new(inner: impl $store) -> Self {
                Self {
                    inner: ::std::sync::Arc::new(inner),
                    faults: $crate::Faults::new(&[$($methods::$write),*]),
                }
            }
        }

        impl ::std::ops::Deref for $wrapper {
            type Target = $crate::Faults<$methods>;

            fn deref(&self) -> &Self::Target {
                &self.faults
            }
        }

        $(#[::async_trait::async_trait]
        impl $trait for $wrapper {
            $($($own)*)?

            $(async fn $function(&self $(, $argument: $type)*) -> $answer {
                self.faults.run($methods::$method, self.inner.$function($($argument),*)).await
            })*
        })*
    };
}
