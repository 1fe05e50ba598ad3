//! Background tasks whose panic must be noticed.

use tokio::sync::watch;

/// Reports the first panic of the supervised tasks. Clones share the report.
#[derive(Clone, Debug)]
pub struct Supervisor(watch::Sender<Option<&'static str>>);

/// Guard in a supervised task, which reports a panic when it is dropped by one.
struct PanicGuard {
    task: &'static str,
    supervisor: Supervisor,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Supervisor {
    /// Wraps a task so that its panic is reported under this name.
    pub fn watch<F: Future>(
        &self,
        task: &'static str,
        future: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let guard = PanicGuard { task, supervisor: self.clone() };
        async move {
            let _guard = guard;
            future.await
        }
    }

    /// Resolves with the name (given to [`watch`](Self::watch)) of the first task that panics.
    pub async fn panicked(&self) -> &'static str {
        let mut failed = self.0.subscribe();
        // `wait_for` cannot fail: the sender is in `self`.
        match failed.wait_for(Option::is_some).await.map(|task| *task) {
            Ok(Some(task)) => task,
            _ => std::future::pending().await,
        }
    }
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.supervisor.0.send_replace(Some(self.task));
        }
    }
}
