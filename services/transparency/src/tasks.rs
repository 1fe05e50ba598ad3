//! Background tasks, which run until the service stops. A panic in one of them ends the service.

use sequencer::Supervisor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The background tasks of a service, for [`Self::stop`] to end. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct BackgroundTasks {
    tasks: TaskTracker,
    stop: CancellationToken,
    supervisor: Supervisor,
}

impl BackgroundTasks {
    /// Runs a task until it ends or the service stops. `name` identifies it in the process's log.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (stop, task) = (self.stop.clone(), self.supervisor.watch(name, task));
        self.tasks.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Waits for a task to panic, and returns the name of the first that does.
    pub async fn panicked(&self) -> &'static str {
        self.supervisor.panicked().await
    }

    /// Cancels all tasks and waits for their end.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_a_background_task_is_reported_by_name() {
        let background = BackgroundTasks::default();
        background.spawn("a sound task", std::future::pending());
        background.spawn("a broken task", async { panic!("on purpose") });
        assert_eq!(background.panicked().await, "a broken task");
        background.stop().await;
    }

    #[tokio::test]
    async fn a_task_that_ends_or_is_stopped_is_no_failure() {
        let background = BackgroundTasks::default();
        background.spawn("a short task", async {});
        background.spawn("a long task", std::future::pending());
        background.stop().await;
        assert!(futures::FutureExt::now_or_never(background.panicked()).is_none());
    }
}
