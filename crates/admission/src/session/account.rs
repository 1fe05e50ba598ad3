//! The state of one principal across its sessions: live sessions, spending and recent denials.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AgreedTerms, Meters, Reservation};
use crate::limits::{DENIALS_PER_MINUTE, REMEMBERED_SESSIONS};
use decimal::Decimal;

/// The state of a principal. Stored under the principal's key, and written in the same transaction as the session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The ids of live sessions, at most [`REMEMBERED_SESSIONS`].
    live: Vec<String>,
    /// The number of further live sessions.
    others: u64,
    /// The spending of all sessions together in the current window.
    pub(crate) spent: Spent,
    /// The start of the current minute of denials in Unix seconds, and their number.
    denials: (i64, u32),
}

/// The spending over all sessions of a principal within the operator's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The start of the window in Unix seconds.
    pub(crate) since: i64,
    /// The length of the window in seconds, as configured at the last reservation; `None` if it never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<i64>,
    /// Settled calls.
    pub(crate) calls: u64,
    /// Calls in flight; kept when the window ends.
    pub(crate) under_way: u64,
    /// The settled amount of each meter.
    pub(crate) settled: Meters,
    /// The amounts reserved by calls in flight; kept when the window ends.
    pub(crate) reserved: Meters,
}

impl Account {
    /// Returns `true` if the principal has a live session. Then all its calls need an envelope (reading V-33).
    #[must_use]
    pub fn is_committed(&self) -> bool {
        !self.live.is_empty() || self.others > 0
    }

    /// Returns the id of the principal's session if exactly one is live (reading X-2).
    #[must_use]
    pub fn only_session(&self) -> Option<&str> {
        match (self.live.as_slice(), self.others) {
            ([only], 0) => Some(only),
            _ => None,
        }
    }

    /// Returns `true` if the account can be deleted without effect: no live session, no spending that counts against a
    /// ceiling, and no denials within the minute.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let counts =
            |spent: &Spent| spent.calls() > 0 || !spent.settled.is_empty() || !spent.reserved.is_empty();
        let denied = within_minute(self.denials.0, now) && self.denials.1 > 0;
        !self.is_committed() && !denied && !counts(&self.spent.within(self.spent.window, now))
    }

    /// Returns `true` if the account holds nothing but denials, which count for a minute only.
    #[must_use]
    pub fn has_only_denials(&self) -> bool {
        !self.is_committed() && self.spent == Spent::default()
    }

    /// Returns the ids of the live sessions, as far as they are stored.
    #[must_use]
    pub fn live_sessions(&self) -> &[String] {
        &self.live
    }

    /// Returns this account with the spending of another one, for spending that is stored separately.
    #[must_use]
    pub fn with_spent_of(self, other: &Account) -> Account {
        Account { spent: other.spent.clone(), ..self }
    }

    /// Adds a live session. One that the operator committed is not counted: it is no reason to demand envelopes.
    pub(crate) fn opened(&mut self, agreed: &AgreedTerms) {
        match self.live.len() < REMEMBERED_SESSIONS {
            _ if agreed.is_by_operator() => {}
            true => self.live.push(agreed.session_id().to_owned()),
            false => self.others += 1,
        }
    }

    /// Removes a session that [`opened`](Self::opened) added.
    pub(crate) fn closed(&mut self, agreed: &AgreedTerms) {
        match self.live.iter().position(|live| live == agreed.session_id()) {
            _ if agreed.is_by_operator() => {}
            Some(at) => drop(self.live.remove(at)),
            None => self.others = self.others.saturating_sub(1),
        }
    }

    /// Returns `true` after [`DENIALS_PER_MINUTE`] denials within the minute (reading V-11).
    #[must_use]
    pub fn is_rate_limited(&self, now: Timestamp) -> bool {
        let (since, count) = self.denials;
        within_minute(since, now) && count >= DENIALS_PER_MINUTE
    }

    pub(crate) fn count_denied(&mut self, now: Timestamp) {
        let (since, count) = self.denials;
        self.denials = match within_minute(since, now) {
            true => (since, count.saturating_add(1)),
            false => (now.as_second(), 1),
        };
    }
}

impl Spent {
    /// Returns the spending in the window that is current at `now`. At the start of a new window the settled amounts
    /// are dropped; those of calls in flight remain.
    pub(crate) fn within(&self, window: Option<i64>, now: Timestamp) -> Spent {
        let over = window.is_some_and(|window| now.as_second().saturating_sub(self.since) >= window);
        match over {
            false => self.clone(),
            true => Spent { since: now.as_second(), calls: 0, settled: Meters::default(), ..self.clone() },
        }
        .lasting(window)
    }

    fn lasting(self, window: Option<i64>) -> Spent {
        Spent { window, ..self }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.saturating_add(self.under_way)
    }

    pub(crate) fn used(&self, meter: &str) -> Decimal {
        self.settled.of(meter).saturating_add(self.reserved.of(meter))
    }

    pub(super) fn reserve(&mut self, held: &Reservation) {
        self.under_way += u64::from(held.counted);
        self.reserved.add(&held.amounts);
    }

    pub(super) fn release(&mut self, held: &Reservation) {
        self.under_way = self.under_way.saturating_sub(u64::from(held.counted));
        self.reserved.take(&held.amounts);
    }

    pub(super) fn spend(&mut self, held: &Reservation, spent: &Meters) {
        self.calls += u64::from(held.counted);
        self.settled.add(spent);
    }
}

fn within_minute(since: i64, now: Timestamp) -> bool {
    (0..60).contains(&now.as_second().saturating_sub(since))
}
