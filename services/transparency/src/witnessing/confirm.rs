//! The sequencer's question to the witnesses before this process leads.
//!
//! Each witness gets the newest signed head in the database. A witness that cosigns it has seen nothing beyond it. A
//! quorum of such cosignatures replaces a lost pin; a policy without a quorum cannot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use merkle::TreeSize;
use sequencer::{ClockOpinion, Confirmation, Halt, Now};
use store::StoreError;
use tlog::checkpoint::Origin;
use tlog::note::Note;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Witnessing;
use super::ask::{SubmittedHead, WitnessError, checkpoint_of};
use super::witness::HttpWitness;

/// The witnesses, behind the sequencer's interface.
pub struct WitnessConfirmation(pub Arc<Witnessing>);

#[async_trait]
impl sequencer::Witnesses for WitnessConfirmation {
    async fn confirm(&self, patience: Duration) -> Confirmation {
        let mut responses = WitnessResponses::default();
        if timeout(patience, self.collect(&mut responses)).await.is_err() {
            tracing::warn!(?patience, "not all witnesses have answered in time");
            responses.trouble("not all answered in time");
        }
        // One contradiction counts more than any number of confirmations.
        match self.0.contradiction.borrow().clone() {
            Some(halt) => Confirmation::Contradicted(halt),
            None => responses.outcome(),
        }
    }

    async fn contradicted(&self) -> Halt {
        let mut contradiction = self.0.contradiction.subscribe();
        let known = contradiction.wait_for(Option::is_some).await.map(|known| known.clone());
        match known {
            Ok(Some(halt)) => halt,
            _ => std::future::pending().await,
        }
    }

    fn clocks(&self, now: Now) -> Vec<ClockOpinion> {
        self.0.remote.iter().filter_map(|witness| witness.opinion(now)).collect()
    }
}

/// The responses so far.
#[derive(Default)]
struct WitnessResponses {
    by: Vec<String>,
    troubles: Vec<String>,
    /// `true` if the cosignatures meet the quorum.
    enough: bool,
}

impl WitnessResponses {
    fn outcome(self) -> Confirmation {
        match (self.enough, self.troubles.is_empty()) {
            (true, _) => Confirmation::Confirmed { by: self.by },
            (false, true) => Confirmation::Unknown("no quorum of them is asked for".into()),
            (false, false) => Confirmation::Unknown(self.troubles.join("; ")),
        }
    }

    fn trouble(&mut self, why: impl ToString) {
        self.troubles.push(why.to_string());
    }
}

impl WitnessConfirmation {
    /// Collects all responses in time: one witness that has seen more counts, even if a quorum has not.
    async fn collect(&self, responses: &mut WitnessResponses) {
        let witnessing = &self.0;
        if witnessing.remote.is_empty() {
            return responses.trouble("there are none");
        }
        let head = match witnessing.newest().await {
            Ok(Some(head)) => Arc::new(head),
            Ok(None) => return self.report_lost_log(responses).await,
            Err(error) => return responses.trouble(error),
        };
        let mut note = head.note.clone();
        let mut asked = self.ask_all(&head);
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((name, Ok(line))) => {
                    let _ = line.map(|line| note.add(line));
                    responses.by.push(name);
                }
                Ok((_, Err(WitnessError::Contradicted(_)))) => return,
                Ok((name, Err(trouble))) => responses.trouble(format!("{name}: {trouble}")),
                Err(error) => responses.trouble(error),
            }
            responses.enough = self.is_enough(&note);
        }
    }

    /// Handles a database without a signed head: the log is new, or lost, or its first signature was not stored. A
    /// witness has no checkpoint of a new log.
    async fn report_lost_log(&self, responses: &mut WitnessResponses) {
        responses.trouble("no checkpoint is signed that they could confirm");
        let Ok(origin) = self.0.origin.parse::<Origin>() else { return };
        let mut asked = JoinSet::new();
        for witness in &self.0.remote {
            let (witness, origin) = (witness.clone(), origin.clone());
            asked.spawn(async move {
                let shown = witness.client.latest(&origin).await;
                (witness, shown)
            });
        }
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((_, Ok(None))) => {}
                Ok((witness, Ok(Some(note)))) => match self.objection_to(&witness, &note, &origin).await {
                    Ok(None) => {}
                    Ok(Some((signed, halt))) => {
                        tracing::error!(witness = witness.name, checkpoint = %note, "the checkpoint that the witness shows");
                        witness.contradicts(signed);
                        witness.shows(note);
                        return self.0.contradicted(halt);
                    }
                    Err(error) => responses.trouble(error),
                },
                Ok((witness, Err(error))) => {
                    tracing::warn!(witness = witness.name, %error, "it is not known whether the witness has seen this log");
                    responses.trouble(format!("{}: {error}", witness.name));
                }
                Err(error) => responses.trouble(error),
            }
        }
    }

    /// The contradiction between the database and the checkpoint that a witness shows, with the size of the checkpoint.
    async fn objection_to(
        &self,
        witness: &HttpWitness,
        note: &Note,
        origin: &Origin,
    ) -> Result<Option<(TreeSize, Halt)>, StoreError> {
        let latest = checkpoint_of(note, origin).filter(|checkpoint| checkpoint.size() > TreeSize::EMPTY);
        let Some(latest) = latest else { return Ok(None) };
        let halt = self.0.objection(witness, latest.size(), Some(latest.root())).await?;
        Ok(halt.map(|halt| (latest.size(), halt)))
    }

    fn ask_all(
        &self,
        head: &Arc<SubmittedHead>,
    ) -> JoinSet<(String, Result<Option<tlog::note::SignatureLine>, WitnessError>)> {
        let mut asked = JoinSet::new();
        for witness in &self.0.remote {
            let (witnessing, witness, head) = (self.0.clone(), witness.clone(), head.clone());
            asked.spawn(async move {
                let answer = witnessing.ask(&witness, &head).await;
                let line = answer
                    .map(|kept| std::str::from_utf8(&kept.line).ok().and_then(|line| line.parse().ok()));
                (witness.name.clone(), line)
            });
        }
        asked
    }

    /// Returns `true` if the cosignatures meet the quorum. `quorum none` is met without any, so it confirms nothing.
    fn is_enough(&self, note: &Note) -> bool {
        let policy = self.0.settings.policy.as_ref();
        policy.is_some_and(|policy| policy.quorum_name().is_some() && policy.judge(note).met)
    }
}
