//! Witnesses: parties outside that have seen this log's heads, and remember them if database and pin are lost
//! together.
//!
//! The pin shows that the database was restored from an old copy; a witness shows it too, and cannot be lost with
//! this host. Witnesses are asked at each take-over, and their answers are followed while this process leads. A
//! witness knows only the heads that it was shown: the loss of later signed heads is noticed by the pin alone.
//!
//! Not here: how witnesses are asked and which of them count ([`Witnesses`] is given by the service).

use std::time::Duration;

use async_trait::async_trait;

use crate::{ClockOpinion, Halt, Now};

/// Parties that have seen this log's heads.
#[async_trait]
pub trait Witnesses: Send + Sync + 'static {
    /// Shows the witnesses the newest signed head in the database, and waits at most `patience` for their answers.
    /// If no head is signed there, any head of this log that they have seen contradicts it.
    async fn confirm(&self, patience: Duration) -> Confirmation;

    /// Resolves once a witness has seen a head that contradicts the database.
    async fn contradicted(&self) -> Halt;

    /// Compares this reading of the clocks with the times of the witnesses' newest cosignatures. Witnesses without
    /// a recent answer are left out.
    fn clocks(&self, now: Now) -> Vec<ClockOpinion> {
        let _ = now;
        Vec::new()
    }
}

/// Answer of [`Witnesses::confirm`] about the newest signed head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// Enough witnesses have seen no larger head.
    Confirmed {
        /// Names of these witnesses.
        by: Vec<String>,
    },
    /// A witness has seen a larger or a different head.
    Contradicted(Halt),
    /// Too few witnesses answered, with the reason.
    Unknown(String),
}

/// No witnesses: [`confirm`](Witnesses::confirm) returns `Unknown` at once.
#[async_trait]
impl Witnesses for () {
    async fn confirm(&self, _patience: Duration) -> Confirmation {
        Confirmation::Unknown("there are none".into())
    }

    async fn contradicted(&self) -> Halt {
        std::future::pending().await
    }
}
