//! What the sequencer asks the witnesses before this process leads.
//!
//! Each is shown the newest signed head in the database. One that cosigns it has seen nothing beyond it. A quorum of such
//! answers stands for a pin that was lost; a policy without a quorum cannot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sequencer::{Confirmation, Halt};
use tlog::note::Note;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Witnessing;
use super::ask::{Shown, Trouble};

/// The witnesses, as the sequencer hears them.
pub struct Word(pub Arc<Witnessing>);

#[async_trait]
impl sequencer::Witnesses for Word {
    async fn confirm(&self, patience: Duration) -> Confirmation {
        let mut heard = Heard::default();
        let in_time = timeout(patience, self.hear(&mut heard)).await;
        in_time.unwrap_or_else(|_| heard.unknown(Some("not all answered in time")))
    }

    async fn contradicted(&self) -> Halt {
        let mut contradiction = self.0.contradiction.subscribe();
        let known = contradiction.wait_for(Option::is_some).await.map(|known| known.clone());
        match known {
            Ok(Some(halt)) => halt,
            _ => std::future::pending().await,
        }
    }
}

/// What they said so far.
#[derive(Default)]
struct Heard {
    by: Vec<String>,
    troubles: Vec<String>,
}

impl Heard {
    fn unknown(&self, more: Option<&str>) -> Confirmation {
        let because: Vec<&str> = self.troubles.iter().map(String::as_str).chain(more).collect();
        Confirmation::Unknown(match because.is_empty() {
            true => "no quorum of them is asked for".into(),
            false => because.join("; "),
        })
    }
}

impl Word {
    async fn hear(&self, heard: &mut Heard) -> Confirmation {
        let witnessing = &self.0;
        if witnessing.asked.is_empty() {
            return Confirmation::Unknown("there are none".into());
        }
        let head = match witnessing.newest().await {
            Ok(Some(head)) => Arc::new(head),
            Ok(None) => {
                return Confirmation::Unknown("no checkpoint is signed that they could confirm".into());
            }
            Err(error) => return Confirmation::Unknown(error.to_string()),
        };
        let mut note = head.note.clone();
        let mut asked = self.ask_all(&head);
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((name, Ok(line))) => {
                    let _ = line.map(|line| note.add(line));
                    heard.by.push(name);
                }
                Ok((_, Err(Trouble::Contradicted(halt)))) => return Confirmation::Contradicted(halt),
                Ok((name, Err(trouble))) => heard.troubles.push(format!("{name}: {trouble}")),
                Err(error) => heard.troubles.push(error.to_string()),
            }
            if self.is_enough(&note) {
                return Confirmation::Confirmed { by: std::mem::take(&mut heard.by) };
            }
        }
        heard.unknown(None)
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

    /// "quorum none" is met by nobody at all, and so says nothing.
    fn is_enough(&self, note: &Note) -> bool {
        let policy = self.0.settings.policy.as_ref();
        policy.is_some_and(|policy| policy.quorum_name().is_some() && policy.judge(note).met)
    }
}
