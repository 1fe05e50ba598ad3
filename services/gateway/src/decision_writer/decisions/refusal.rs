//! Refusals of requests that are not tool calls: recorded, and answered with a signed Verdict (V-37).

use std::time::Instant;

use admission::decide::{DecisionContext, EarlierResults, RandomInputs};

use super::answer::DecisionAnswer;
use super::copies::SentMessage;
use super::request::{Request, Ruled};
use super::writing::write;
use crate::annex::{DecisionInputs, Text};
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::RefusalJob;
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};

/// A job that records a [`RefusalJob`].
pub struct RefusalWork {
    request: Request<DecisionAnswer>,
    job: RefusalJob,
    made: Option<Ruled>,
}

impl RefusalWork {
    pub fn new(request: Request<DecisionAnswer>, job: RefusalJob) -> Self {
        Self { request, job, made: None }
    }
}

impl Work for RefusalWork {
    fn streams(&self) -> Vec<String> {
        vec![self.request.writer.unbound()]
    }

    fn may_be_refused(&self) -> bool {
        true
    }

    fn since(&self) -> Instant {
        self.request.since
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        let (job, writer) = (&self.job, &self.request.writer);
        let inputs = DecisionInputs {
            method: Some(Text::whole(&job.method)),
            ..DecisionInputs::of(&job.route, &job.caller, timestamp(batch.now).as_millisecond())
        };
        let mut ruling = job.ruling.clone();
        if batch.stream(&writer.unbound()).is_none() {
            return JobStep::Needs(batch.missing());
        }
        let rules = writer.rules_of(&job.route);
        let context = DecisionContext {
            rules: &rules,
            caller: &job.caller,
            now: timestamp(batch.now),
            random: RandomInputs::default(),
        };
        let sent = SentMessage { context, received: None, before: EarlierResults::default() };
        if writer.is_only_counted(batch, &sent, None, &ruling) {
            self.made = Some(Ruled::Counted(ruling));
            return JobStep::Nothing;
        }
        match write(batch, &mut ruling, job.invocation.as_ref(), inputs.into()) {
            Ok(written) => self.made = Some(Ruled::Recorded(ruling, Box::new(written))),
            Err(why) => return JobStep::Impossible(why),
        }
        JobStep::Decided
    }

    fn committed(self: Box<Self>) {
        let Some(made) = self.made else { return };
        let answer = made.answer(&self.request.writer, None);
        self.request.answer(answer);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        self.request.fail(why);
        None
    }
}
