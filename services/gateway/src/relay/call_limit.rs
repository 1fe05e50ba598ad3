//! The end of the wait for the answer to a call, whatever its server does.

use std::future::Future;
use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time that a call may take, and its cancellation by the client (legacy era).
#[derive(Clone, Debug)]
pub struct CallLimit {
    deadline: Instant,
    cancelled: CancellationToken,
}

/// Reason why the answer to a call is not awaited any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GivenUp {
    /// The call took longer than it may.
    #[error("the call exceeded the time limit; its outcome is unknown")]
    Overdue,
    /// The client cancelled the call.
    #[error("the call was cancelled; its outcome is unknown")]
    Cancelled,
}

impl CallLimit {
    /// A limit of `most` from now on, for a call that `cancelled` cancels.
    pub fn new(most: Duration, cancelled: CancellationToken) -> Self {
        Self { deadline: Instant::now() + most, cancelled }
    }

    /// The time from which on the answer is not awaited.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the reason, if the call is given up.
    pub fn reached(&self) -> Option<GivenUp> {
        if self.cancelled.is_cancelled() {
            return Some(GivenUp::Cancelled);
        }
        (Instant::now() >= self.deadline).then_some(GivenUp::Overdue)
    }

    /// Waits until the call is given up, and returns the reason.
    pub async fn over(&self) -> GivenUp {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => GivenUp::Cancelled,
            () = tokio::time::sleep_until(self.deadline) => GivenUp::Overdue,
        }
    }

    /// Runs `work`, unless the call is given up first.
    ///
    /// # Errors
    /// The reason, if it is.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, GivenUp> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            why = self.over() => Err(why),
        }
    }
}
