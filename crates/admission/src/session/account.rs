//! What one principal holds across its sessions: which are live, what they spent, and how often it was denied of late.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Meters, Reservation};
use crate::decimal::Decimal;
use crate::limits::{DENIALS_PER_MINUTE, REMEMBERED_SESSIONS};

/// What a principal holds. It is kept under the principal, and changes in the transaction that changes a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Live sessions by id, as many as are told apart.
    live: Vec<String>,
    /// Live sessions beyond those.
    others: u64,
    /// What the sessions spent together in the window that runs.
    pub(crate) spent: Spent,
    /// When the minute of denials began, in Unix seconds, and how many there were.
    denials: (i64, u32),
}

/// Consumption over all sessions of a principal, within the operator's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// When the window began, in Unix seconds.
    pub(crate) since: i64,
    /// How many seconds it lasts, as configured when something was reserved last; for ever, if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<i64>,
    /// Calls that are over.
    pub(crate) calls: u64,
    /// Calls under way; they outlive the window.
    pub(crate) under_way: u64,
    /// What is settled.
    pub(crate) settled: Meters,
    /// What is reserved by calls under way; it outlives the window.
    pub(crate) reserved: Meters,
}

impl Account {
    /// Whether a commitment of the principal is live: then no call of it goes without an envelope (reading V-33).
    #[must_use]
    pub fn is_committed(&self) -> bool {
        !self.live.is_empty() || self.others > 0
    }

    /// The principal's one live session (reading X-2).
    #[must_use]
    pub fn only_session(&self) -> Option<&str> {
        match (self.live.as_slice(), self.others) {
            ([only], 0) => Some(only),
            _ => None,
        }
    }

    /// Whether nothing would be lost if it were forgotten: no session is live, nothing counts against a ceiling any more, and no
    /// minute of denials runs.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        let counts =
            |spent: &Spent| spent.calls() > 0 || !spent.settled.is_empty() || !spent.reserved.is_empty();
        let denied = within_minute(self.denials.0, now) && self.denials.1 > 0;
        !self.is_committed() && !denied && !counts(&self.spent.within(self.spent.window, now))
    }

    /// Whether all that it holds is a count of denials, which means nothing after their minute.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        !self.is_committed() && self.spent == Spent::default()
    }

    /// Its live sessions, as far as they are known by name.
    #[must_use]
    pub fn live_sessions(&self) -> &[String] {
        &self.live
    }

    /// The same, with what another account says was spent: consumption can be kept apart from everything else.
    #[must_use]
    pub fn with_spent_of(self, other: &Account) -> Account {
        Account { spent: other.spent.clone(), ..self }
    }

    pub(crate) fn opened(&mut self, session_id: &str) {
        match self.live.len() < REMEMBERED_SESSIONS {
            true => self.live.push(session_id.to_owned()),
            false => self.others += 1,
        }
    }

    pub(crate) fn closed(&mut self, session_id: &str) {
        match self.live.iter().position(|live| live == session_id) {
            Some(at) => drop(self.live.remove(at)),
            None => self.others = self.others.saturating_sub(1),
        }
    }

    /// Whether the principal was denied too often within the minute (reading V-11).
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
    /// The same in the window that runs now: what was settled in an earlier one is forgotten, what is under way is not.
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

    pub(crate) fn reserve(&mut self, held: &Reservation) {
        self.under_way += u64::from(held.counted);
        self.reserved.add(&held.amounts);
    }

    pub(crate) fn release(&mut self, held: &Reservation) {
        self.under_way = self.under_way.saturating_sub(u64::from(held.counted));
        self.reserved.take(&held.amounts);
    }

    pub(crate) fn spend(&mut self, held: &Reservation, spent: &Meters) {
        self.calls += u64::from(held.counted);
        self.settled.add(spent);
    }
}

fn within_minute(since: i64, now: Timestamp) -> bool {
    (0..60).contains(&now.as_second().saturating_sub(since))
}
