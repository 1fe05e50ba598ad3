//! Something for the writer to do.

use std::time::Instant;

use evidence::Claim;

use super::books::Books;
use crate::desk::error::DeskError;

/// A job, decided on working copies of what it concerns, and answered when its batch is durable.
pub trait Work: Send {
    /// The streams that are looked at, as far as is known before they are.
    fn streams(&self) -> Vec<String>;

    /// What is used once, and must not have been before.
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }

    /// Whether nobody waits any more and nothing is owed.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Since when it is wanted.
    fn since(&self) -> Instant {
        Instant::now()
    }

    /// Whether somebody waits for it. What nobody waits for shares the commit of what comes next.
    fn is_urgent(&self) -> bool {
        true
    }

    /// How many bytes of messages it holds.
    fn bytes(&self) -> usize {
        0
    }

    /// Whether it makes the outbox longer by something that need not be.
    fn may_be_turned_away(&self) -> bool {
        false
    }

    /// Decides. It is asked again, on other copies, if another process came first: what it kept of the last time is void.
    fn decide(&mut self, books: &mut Books<'_>) -> Step;

    /// Everything that was decided is durable.
    fn committed(self: Box<Self>);

    /// Nothing of it happened. What is owed comes back and is tried again.
    fn failed(self: Box<Self>, why: &DeskError) -> Option<Box<dyn Work>>;
}

/// How far a job has come.
#[derive(Debug)]
pub enum Step {
    /// It is decided; the copies are changed.
    Decided,
    /// Nothing is changed, and nothing need be committed: it is answered at once.
    Nothing,
    /// Nothing is changed: these streams have to be looked at first.
    Needs(Vec<String>),
    /// Nothing is changed: another call has to be settled first (V-12).
    Wait(Turn),
    /// It cannot be decided. The copies are spoiled.
    Impossible(DeskError),
}

/// What a call waits for: that another one of the tool is settled in this stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Turn {
    /// The session.
    pub stream: String,
    /// The tool.
    pub tool: String,
}
