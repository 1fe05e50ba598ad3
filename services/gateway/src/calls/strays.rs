//! What passes towards a client and is not what it waits for there: answers of other requests, answers under an id that
//! only looks like one's own, and notifications that hold a task's result.
//!
//! Clients match answers by their ids, wherever they come, and some take `"1"` for 1. So what is nobody's here says nothing
//! in the gateway's place (V-5), and what some client could take for the answer to an admitted call does not pass.

use std::sync::Arc;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;

use super::Shared;
use super::additions::Additions;
use crate::frame::reply::Reply;
use crate::frame::{LooseId, RawId};
use crate::relay::{self, Over, Passing, Tap};

/// What begins the names of notifications about tasks.
const TASKS: &str = "notifications/tasks";

/// As much of a notification about a task as is looked at.
#[derive(Deserialize)]
struct TaskNamed {
    #[serde(rename = "taskId")]
    task_id: String,
}

/// Where a message passes.
#[derive(Clone)]
pub struct Passage {
    /// What all routes share.
    pub shared: Arc<Shared>,
    /// The route.
    pub route: Arc<str>,
    /// Who reads it.
    pub caller: Caller,
    /// The request that is answered there, if one.
    pub own: Option<RawId>,
    /// Whether its caller is told anything.
    pub told: bool,
}

impl Passage {
    /// A message that is not what is waited for here.
    pub async fn stray(&self, reply: &Reply) -> Passing {
        if !reply.may_answer() {
            let is_about_task = reply.method().is_some_and(|method| method.starts_with(TASKS));
            return if is_about_task && self.is_told_of_task(reply) {
                clean(reply)
            } else {
                Passing::Untouched
            };
        }
        // The answer to a list may come wherever the server likes.
        if let Err(why) = self.shared.note_tools(&self.route, reply).await {
            tracing::warn!(%why, "a list of tools is withheld");
            return Passing::Withheld;
        }
        if let Some(passing) = self.shared.unanswered.came(&self.route, &self.caller, reply).await {
            return passing;
        }
        let is_own = |own: &RawId| reply.answers(own);
        let takes_for_own = |own: &RawId| reply.is_mistaken_for_answer(own);
        match &self.own {
            Some(own) if !self.told && (is_own(own) || takes_for_own(own)) => Passing::Untouched,
            Some(own) if takes_for_own(own) => Passing::Withheld,
            _ if reply.loose_id() == Some(LooseId::AnyNumber) => Passing::Withheld,
            _ => clean(reply),
        }
    }

    /// On an advisory route it depends on whose task it is.
    fn is_told_of_task(&self, notification: &Reply) -> bool {
        let task = || jose::json::read_text::<TaskNamed>(notification.member("params")?).ok();
        self.told || task().is_some_and(|task| self.shared.tasks.is_told(&self.route, task.task_id))
    }
}

/// A message as it passes, without what only the gateway says.
pub fn clean(reply: &Reply) -> Passing {
    let cleaned = reply.without_said(Additions::dropped());
    match cleaned == *reply.text() {
        true => Passing::Untouched,
        false => Passing::Replaced(cleaned),
    }
}

/// A text that we cannot read: other readers might see a Verdict in it, so it does not pass under our name (V-5).
pub fn unreadable(text: &[u8]) -> Passing {
    match relay::is_message(text) {
        true => Passing::Withheld,
        false => Passing::Untouched,
    }
}

/// Looks on where nothing is waited for, but the caller may believe what it reads.
pub struct Bystander {
    /// Where.
    pub passage: Passage,
}

#[async_trait]
impl Tap for Bystander {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()) else {
            return unreadable(&text);
        };
        match self.passage.own.as_ref().is_some_and(|own| reply.answers(own)) {
            true if self.passage.told => clean(&reply),
            true => Passing::Untouched,
            false => self.passage.stray(&reply).await,
        }
    }

    async fn over(&mut self, _: Over) -> Option<Bytes> {
        None
    }
}
