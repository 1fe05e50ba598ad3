//! Who has seen this log's heads from outside, and remembers them when database and pin are lost together.
//!
//! The pin notices a database that went back; a witness notices it too, and is nobody's to lose. It is asked at each
//! take-over, and heard while this process leads. It knows only the heads that it was shown: a tail that was signed after
//! the last of them and lost since is the pin's alone to notice.
//!
//! Not here: how witnesses are asked and which of them count. That is given.

use std::time::Duration;

use async_trait::async_trait;

use crate::{ClockOpinion, Halt, Now};

/// Those who have seen this log's heads.
#[async_trait]
pub trait Witnesses: Send + Sync + 'static {
    /// Shows them the newest signed head in the database, and waits this long for what they say. If nothing is signed
    /// there, any head of this log that they have seen contradicts it.
    async fn confirm(&self, patience: Duration) -> Confirmation;

    /// Resolves once one of them has seen what is not in the database.
    async fn contradicted(&self) -> Halt;

    /// What their newest cosignatures say of this reading of the clocks. Those that were not heard lately say nothing.
    fn clocks(&self, now: Now) -> Vec<ClockOpinion> {
        let _ = now;
        Vec::new()
    }
}

/// What the witnesses say of the newest signed head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// Enough of them have seen nothing that goes beyond it.
    Confirmed {
        /// Their names.
        by: Vec<String>,
    },
    /// One of them has seen more, or something else.
    Contradicted(Halt),
    /// Too few of them answered; says why.
    Unknown(String),
}

/// Nobody watches.
#[async_trait]
impl Witnesses for () {
    async fn confirm(&self, _patience: Duration) -> Confirmation {
        Confirmation::Unknown("there are none".into())
    }

    async fn contradicted(&self) -> Halt {
        std::future::pending().await
    }
}
