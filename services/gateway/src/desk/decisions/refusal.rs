//! Refusals of requests that are not tool calls: recorded, and answered with a signed Verdict (V-37).

use std::sync::Arc;
use std::time::Instant;

use admission::decide::{Before, Ruling};
use serde_json::json;
use tokio::sync::oneshot;

use super::call::is_only_counted;
use super::copies::Sent;
use super::writing::{Written, milliseconds, write};
use crate::decision_inputs::{DecisionInputs, Text};
use crate::desk::Desk;
use crate::desk::error::DeskError;
use crate::desk::jobs::RefusalJob;
use crate::desk::told::Told;
use crate::desk::writer::{Books, Job, Step, Work};

/// A job that records a [`RefusalJob`].
pub struct RefusalWork {
    desk: Desk,
    job: Arc<RefusalJob>,
    since: Instant,
    tell: oneshot::Sender<Result<Told, DeskError>>,
    made: Option<(Box<Ruling>, Option<Written>)>,
}

impl RefusalWork {
    pub fn new(desk: Desk, job: Arc<RefusalJob>, tell: oneshot::Sender<Result<Told, DeskError>>) -> Self {
        Self { desk, job, since: Instant::now(), tell, made: None }
    }
}

impl Work for RefusalWork {
    fn streams(&self) -> Vec<String> {
        vec![self.desk.unbound().to_owned()]
    }

    fn may_be_turned_away(&self) -> bool {
        true
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        let job = self.job.clone();
        let inputs = DecisionInputs {
            method: Some(Text::whole(&job.method)),
            ..DecisionInputs::of(&job.route, &job.caller, milliseconds(books.now))
        };
        let mut ruling = job.ruling.clone();
        if books.sheet(self.desk.unbound()).is_none() {
            return Step::Needs(books.missing());
        }
        let (rules, before) = (self.desk.rules_of(&job.route), Before::default());
        let sent = Sent { rules: &rules, caller: &job.caller, received: None, before };
        if is_only_counted(&self.desk, books, &sent, None, &ruling) {
            self.made = Some((ruling, None));
            return Step::Nothing;
        }
        match write(books, &mut ruling, job.aside.as_ref(), json!(inputs)) {
            Ok(written) => self.made = Some((ruling, Some(written))),
            Err(why) => return Step::Impossible(why),
        }
        Step::Decided
    }

    fn committed(self: Box<Self>) {
        let Some((ruling, written)) = self.made else { return };
        let told = match written {
            Some(written) => Told::of(ruling, written, None),
            None => self.desk.count_and_tell(ruling),
        };
        let _ = self.tell.send(Ok(told));
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        let _ = self.tell.send(Err(why.clone()));
        None
    }
}
