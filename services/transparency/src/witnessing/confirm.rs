//! The sequencer's question to the witnesses before this process leads.
//!
//! Each witness gets the newest signed head in the database. A witness that cosigns it has seen nothing beyond it. A
//! quorum of such cosignatures replaces a lost pin; a policy without a quorum cannot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use merkle::TreeSize;
use sequencer::{ClockOpinion, Confirmation, Halt, Now};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::note::Note;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Witnessing;
use super::ask::{Shown, Trouble};

/// The witnesses, behind the sequencer's interface.
pub struct Word(pub Arc<Witnessing>);

#[async_trait]
impl sequencer::Witnesses for Word {
    async fn confirm(&self, patience: Duration) -> Confirmation {
        let mut heard = Heard::default();
        if timeout(patience, self.hear(&mut heard)).await.is_err() {
            tracing::warn!(?patience, "not all witnesses have answered in time");
            heard.trouble("not all answered in time");
        }
        // One contradiction counts more than any number of confirmations.
        match self.0.contradiction.borrow().clone() {
            Some(halt) => Confirmation::Contradicted(halt),
            None => heard.outcome(),
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
        self.0.asked.iter().filter_map(|witness| witness.opinion(now)).collect()
    }
}

/// The responses so far.
#[derive(Default)]
struct Heard {
    by: Vec<String>,
    troubles: Vec<String>,
    /// `true` if the cosignatures meet the quorum.
    enough: bool,
}

impl Heard {
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

impl Word {
    /// Collects all responses in time: one witness that has seen more counts, even if a quorum has not.
    async fn hear(&self, heard: &mut Heard) {
        let witnessing = &self.0;
        if witnessing.asked.is_empty() {
            return heard.trouble("there are none");
        }
        let head = match witnessing.newest().await {
            Ok(Some(head)) => Arc::new(head),
            Ok(None) => return self.hear_of_a_lost_log(heard).await,
            Err(error) => return heard.trouble(error),
        };
        let mut note = head.note.clone();
        let mut asked = self.ask_all(&head);
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((name, Ok(line))) => {
                    let _ = line.map(|line| note.add(line));
                    heard.by.push(name);
                }
                Ok((_, Err(Trouble::Contradicted(_)))) => return,
                Ok((name, Err(trouble))) => heard.trouble(format!("{name}: {trouble}")),
                Err(error) => heard.trouble(error),
            }
            heard.enough = self.is_enough(&note);
        }
    }

    /// Handles a database without a signed head: the log is new, or lost. A witness has no checkpoint of a new log.
    async fn hear_of_a_lost_log(&self, heard: &mut Heard) {
        heard.trouble("no checkpoint is signed that they could confirm");
        let Ok(origin) = self.0.origin.parse::<Origin>() else { return };
        let mut asked = JoinSet::new();
        for witness in &self.0.asked {
            let (witness, origin) = (witness.clone(), origin.clone());
            asked.spawn(async move {
                let shown = witness.client.latest(&origin).await;
                (witness, shown)
            });
        }
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((_, Ok(None))) => {}
                Ok((witness, Ok(Some(note)))) => {
                    let checkpoint = Checkpoint::parse_text(note.text()).ok();
                    let checkpoint = checkpoint.filter(|checkpoint| *checkpoint.origin() == origin);
                    let signed = checkpoint.map_or(TreeSize::EMPTY, |checkpoint| checkpoint.size());
                    if signed > TreeSize::EMPTY {
                        tracing::error!(witness = witness.name, checkpoint = %note, "this is what the witness shows");
                        let (witness, database) = (witness.name.clone(), TreeSize::EMPTY);
                        return self.0.contradicted(Halt::WitnessAhead { witness, database, signed });
                    }
                }
                Ok((witness, Err(error))) => {
                    tracing::warn!(witness = witness.name, %error, "whether the witness has seen this log is not known");
                    heard.trouble(format!("{}: {error}", witness.name));
                }
                Err(error) => heard.trouble(error),
            }
        }
    }

    fn ask_all(
        &self,
        head: &Arc<Shown>,
    ) -> JoinSet<(String, Result<Option<tlog::note::SignatureLine>, Trouble>)> {
        let mut asked = JoinSet::new();
        for witness in &self.0.asked {
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
