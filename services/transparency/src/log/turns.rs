//! Turns: the statements of a batch are decided side by side, and submitted in their order.

use std::pin::pin;
use std::task::Poll;

use futures::poll;
use tokio::sync::oneshot;

/// The turn of one statement. The next one comes when the work of this one has begun; if it is dropped, when this one would have
/// come.
pub struct Turn {
    /// `None` for the first one, and once it has come.
    before: Option<TurnBefore>,
    after: Option<oneshot::Sender<Option<TurnBefore>>>,
}

/// Sends what is to be waited for after the turn before: what that one has not waited for itself.
struct TurnBefore(oneshot::Receiver<Option<TurnBefore>>);

impl Turn {
    /// Returns turns one after the other.
    pub fn each() -> impl Iterator<Item = Self> {
        let mut before = None;
        std::iter::repeat_with(move || {
            let (after, next) = oneshot::channel();
            Self { before: before.replace(TurnBefore(next)), after: Some(after) }
        })
    }

    /// Awaits the turn, begins the work, and passes the turn on.
    pub async fn take<T>(mut self, work: impl Future<Output = T>) -> T {
        // What is awaited stays in place: if this is dropped meanwhile, the next turn awaits it.
        while let Some(TurnBefore(passed)) = &mut self.before {
            self.before = passed.await.unwrap_or_default();
        }
        let mut work = pin!(work);
        let begun = poll!(work.as_mut());
        drop(self);
        match begun {
            Poll::Ready(done) => done,
            Poll::Pending => work.await,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(after) = self.after.take() {
            // An error means that there is no next turn.
            let _ = after.send(self.before.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::future::join_all;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn work_begins_in_the_order_of_the_turns_also_if_some_have_none() {
        let begun = RefCell::new(Vec::new());
        let work = |number: usize, turn: Turn| {
            let begun = &begun;
            async move {
                for _ in number..5 {
                    yield_now().await;
                }
                if number == 2 {
                    return drop(turn);
                }
                let work = async {
                    begun.borrow_mut().push(number);
                    yield_now().await;
                };
                turn.take(work).await;
            }
        };
        join_all(Turn::each().take(5).enumerate().map(|(number, turn)| work(number, turn))).await;
        assert_eq!(*begun.borrow(), [0, 1, 3, 4]);
    }

    #[tokio::test]
    async fn a_turn_that_is_dropped_while_it_waits_lets_none_pass_the_one_before_it() {
        let mut turns = Turn::each();
        let (first, second, third) = (turns.next().unwrap(), turns.next().unwrap(), turns.next().unwrap());
        let mut third = pin!(third.take(async {}));
        {
            let mut second = pin!(second.take(async {}));
            assert!(poll!(second.as_mut()).is_pending());
        }
        assert!(poll!(third.as_mut()).is_pending(), "the first one has not come yet");
        first.take(async {}).await;
        assert!(poll!(third.as_mut()).is_ready());
    }
}
