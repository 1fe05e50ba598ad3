//! Background tasks whose panic must not pass unnoticed.

use tokio::sync::watch;

/// Tells whether a supervised task has panicked. Clones share the answer.
#[derive(Clone, Debug)]
pub struct Supervisor(watch::Sender<Option<&'static str>>);

/// Held by a supervised task; reports when it is dropped by a panic.
struct Guard {
    task: &'static str,
    supervisor: Supervisor,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Supervisor {
    /// The same task, which reports its panic under this name.
    pub fn watch<F: Future>(
        &self,
        task: &'static str,
        future: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let guard = Guard { task, supervisor: self.clone() };
        async move {
            let _guard = guard;
            future.await
        }
    }

    /// Resolves with the name of the first task that panics.
    pub async fn panicked(&self) -> &'static str {
        let mut failed = self.0.subscribe();
        // The sender is in `self`, so waiting cannot fail.
        match failed.wait_for(Option::is_some).await.map(|task| *task) {
            Ok(Some(task)) => task,
            _ => std::future::pending().await,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.supervisor.0.send_replace(Some(self.task));
        }
    }
}
