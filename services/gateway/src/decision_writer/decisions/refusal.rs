//! Refusals of requests that are not tool calls: recorded, and answered with a signed Verdict (V-37).

use admission::decide::{DecisionContext, EarlierResults, RandomInputs};

use super::answer::DecisionAnswer;
use super::request::{Request, Ruled};
use super::ruling_records::record_ruling;
use super::session_with_account::SentMessage;
use crate::annex::{DecisionInputs, Text};
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::RefusalJob;
use crate::decision_writer::transactions::{Batch, DecideError, Work, WorkItem, WorkStep};

/// Records the denial of a [`RefusalJob`].
pub struct RefusalWork {
    request: Request<DecisionAnswer>,
    job: RefusalJob,
    /// The result, which is answered once it is durable.
    ruled: Option<Ruled>,
}

impl RefusalWork {
    pub fn new(request: Request<DecisionAnswer>, job: RefusalJob) -> Self {
        Self { request, job, ruled: None }
    }
}

impl Work for RefusalWork {
    fn streams(&self) -> Vec<String> {
        vec![self.request.writer.own_stream()]
    }

    fn is_refused_while_outbox_is_full(&self) -> bool {
        true
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let (job, writer) = (&self.job, &self.request.writer);
        batch.stream(&writer.own_stream())?;
        let now = timestamp(batch.now);
        let rules = writer.rules_of(&job.route);
        let random = RandomInputs::default();
        let context = DecisionContext { rules: &rules, caller: &job.caller, now, random };
        let sent = SentMessage { context, received: None, before: EarlierResults::default() };
        let mut ruling = job.ruling.clone();
        if writer.is_only_counted(batch, &sent, None, &ruling) {
            self.ruled = Some(Ruled::Counted(ruling));
            return Ok(WorkStep::OnlyCounted);
        }
        let inputs = DecisionInputs {
            method: Some(Text::whole(&job.method)),
            ..DecisionInputs::of(&job.route, &job.caller, now.as_millisecond())
        };
        let recorded = record_ruling(batch, &mut ruling, job.invocation.as_ref(), inputs.into())?;
        self.ruled = Some(Ruled::Recorded(ruling, Box::new(recorded)));
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        let Some(ruled) = self.ruled else { return };
        let answer = ruled.answer(&self.request.writer, None);
        self.request.answer(answer);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        self.request.fail(why);
        None
    }
}
