//! Following: another process sequences. This one asks for the lease from time to time, shows the newest signed
//! head, and answers waiting callers once their statement from the inbox is placed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::{CommittedHead, Found, Lease, Progress, SignatureKind, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

use crate::command::{CommandAnswer, Follow, SequencerCommand, SubmitRequest};
use crate::context::{SequencerContext, settle, stopped};
use crate::recover::{clock_opinions, known_signatures};
use crate::{Placement, PublishedHead, Role, SequencerParts, SubmitError};

/// Maximum number of failures read in one turn, as each takes a query of its own.
const FAILURES_AT_ONCE: usize = 16;

/// Reason why following ended.
pub(crate) enum Followed {
    /// This process has the lease now.
    Lease(Box<dyn Lease>),
    /// The operator stops the process.
    Stopped,
}

pub(crate) struct Follower<'a> {
    context: &'a SequencerContext,
    waiting: HashMap<EntryDigest, Vec<oneshot::Sender<CommandAnswer>>>,
    /// Pause before the lease is asked for the first time.
    pause: Duration,
}

impl<'a> Follower<'a> {
    pub(crate) fn new(context: &'a SequencerContext, pause: Duration) -> Self {
        Self { context, waiting: HashMap::new(), pause }
    }

    /// Follows until there is a lease, or the process stops. A clock correction is kept for the time when this
    /// process leads; the lease is then asked for at once.
    pub(crate) async fn run(
        &mut self,
        commands: &mut mpsc::UnboundedReceiver<SequencerCommand>,
        correction: &mut Option<SubmitRequest>,
        ready: &mut Option<oneshot::Sender<()>>,
    ) -> Followed {
        let limits = &self.context.parts.limits;
        let mut stop = self.context.stop.subscribe();
        let mut ask = interval_at(Instant::now() + self.pause, limits.lease_poll);
        let mut poll = interval(limits.follow_poll);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // After a halt the role stays halted until another process is seen to lead, or this one leads.
        if !matches!(self.context.status().borrow().role, Role::Halted(_)) {
            self.show_following();
        }
        let since = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return Followed::Stopped,
                _ = ask.tick() => {
                    self.check_clock().await;
                    if let Some(lease) = self.lease(since).await {
                        return Followed::Lease(lease);
                    }
                    settle(ready.take());
                }
                command = commands.recv() => match command {
                    Some(SequencerCommand::Submit(request)) if request.submission.corrects.is_some() => {
                        *correction = Some(request);
                        ask.reset_immediately();
                    }
                    Some(command) => self.take(command),
                    None => return Followed::Stopped,
                },
                _ = poll.tick(), if !self.waiting.is_empty() => self.answer_settled().await,
            }
        }
    }

    /// Compares the clock with others as long as it is not trusted because it was set.
    async fn check_clock(&self) {
        if self.context.clock.seconds().is_some() {
            return;
        }
        match clock_opinions(&self.context.parts).await {
            Ok((now, opinions)) => self.context.clock.trust_again(now, &opinions),
            Err(error) => tracing::warn!(%error, "the clock cannot be compared with that of the database"),
        }
    }

    /// Asks for the lease; without it, shows the leader's newest head.
    async fn lease(&self, since: Instant) -> Option<Box<dyn Lease>> {
        let parts = &self.context.parts;
        // A process without the key in force would fence the leader and then sign nothing.
        if parts.signer.missing().is_none() {
            match parts.store.lease(&parts.holder).await {
                Ok(Some(lease)) => return Some(lease),
                Ok(None) => self.another_has_it(since),
                Err(error) => tracing::warn!(%error, "the lease cannot be asked for"),
            }
        }
        if let Err(error) = refresh(self.context).await {
            tracing::warn!(%error, "the newest signed head cannot be read");
        }
        None
    }

    /// Shows that another process has the lease. A process that holds it for longer than the checks before leading
    /// take does lead.
    fn another_has_it(&self, since: Instant) {
        let limits = &self.context.parts.limits;
        self.show_following();
        if since.elapsed() > limits.longest_wait + limits.confirm_patience {
            self.context.show(|status| status.ineligible = None);
        }
    }

    fn show_following(&self) {
        self.context.show(|status| status.role = Role::Following);
    }

    fn take(&mut self, command: SequencerCommand) {
        match command {
            SequencerCommand::Submit(request) => request.reply.send(CommandAnswer::HandBack),
            SequencerCommand::Follow(Follow { digest, reply }) => {
                self.waiting.entry(digest).or_default().push(reply)
            }
        }
    }

    /// Answers the callers whose statement is in the log under a signed head, or is refused.
    async fn answer_settled(&mut self) {
        self.waiting.retain(|_, replies| {
            replies.retain(|reply| !reply.is_closed());
            !replies.is_empty()
        });
        if let Err(error) = self.find_settled().await {
            tracing::warn!(%error, "the inbox cannot be followed");
        }
    }

    async fn find_settled(&mut self) -> Result<(), StoreError> {
        let asked: Vec<EntryDigest> = self.waiting.keys().copied().collect();
        let found = self.context.parts.store.find(&asked).await?;
        let (mut newest, mut missing) = (None, Vec::new());
        for (digest, found) in asked.into_iter().zip(found) {
            match found {
                Some(found) => newest = newest.max(Some(found.index)),
                None => missing.push(digest),
            }
            if let Some(found) = found {
                self.answer_found(digest, found);
            }
        }
        if newest.is_some_and(|newest| !self.is_signed(newest)) {
            refresh(self.context).await?;
        }
        self.look_for_failures(&missing).await
    }

    /// Answers the caller once a signed head covers the entry, as the answer is a receipt.
    fn answer_found(&mut self, digest: EntryDigest, found: Found) {
        let outcome = if found.digest != digest {
            Err(SubmitError::Twin { index: found.index, digest: found.digest })
        } else if self.is_signed(found.index) {
            let head = self.context.status().borrow().published.clone();
            Ok(Placement { index: found.index, already_there: false, head, path: None })
        } else {
            return; // asked again at the next poll
        };
        self.answer(&digest, &CommandAnswer::Done(outcome));
    }

    async fn look_for_failures(&mut self, missing: &[EntryDigest]) -> Result<(), StoreError> {
        for digest in missing.iter().take(FAILURES_AT_ONCE) {
            // The inbox keeps the reason of the failure: the caller receives "accepted", and a query for the entry
            // returns the reason.
            if let Some(Progress::Failed(_)) = self.context.parts.store.progress(digest).await? {
                self.answer(digest, &CommandAnswer::HandBack);
            }
        }
        Ok(())
    }

    fn answer(&mut self, digest: &EntryDigest, answer: &CommandAnswer) {
        for reply in self.waiting.remove(digest).into_iter().flatten() {
            let _ = reply.send(answer.clone());
        }
    }

    fn is_signed(&self, leaf: LeafIndex) -> bool {
        let status = self.context.status();
        let status = status.borrow();
        status.published.as_ref().is_some_and(|published| published.head.size.holds(leaf))
    }
}

/// Shows the newest signed head and the policy in force.
pub(crate) async fn refresh(context: &SequencerContext) -> Result<(), StoreError> {
    let head = context.parts.store.head().await?;
    let newest = newest_signed(&context.parts, head.size()).await?;
    context.show(|status| {
        status.policy = head.policy;
        status.size = head.size();
        let known = status.published.as_ref().map_or(TreeSize::EMPTY, |known| known.head.size);
        if let Some(newest) = newest.filter(|newest| newest.head.size > known) {
            status.published = Some(Arc::new(newest));
        }
    });
    Ok(())
}

async fn newest_signed(parts: &SequencerParts, size: TreeSize) -> Result<Option<PublishedHead>, StoreError> {
    let kind = parts.signer.makes(size).first().map_or(SignatureKind::Receipt, |(kind, _)| *kind);
    let Some(signed) = parts.store.newest_signed(kind).await? else {
        return Ok(None);
    };
    let head: CommittedHead = signed.head;
    Ok(Some(PublishedHead { head, signatures: known_signatures(parts, &head).await? }))
}
