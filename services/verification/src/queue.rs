//! The places of accepted requests and the workers, of which each client has a share.
//!
//! Where there are several clients, a client has no more places than are still free, so each next client finds some; and at
//! most half of the workers. A place is given back once the checks have run: a job that waits for its signature is counted
//! for its client only.
//!
//! Not here: quotas in requests a minute (`clients`), and running jobs (`jobs`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::limits::UNSIGNED_JOBS;

/// The reason why there is no place for a request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// The queue is full.
    #[error("the queue is full: {0} requests are waiting or running")]
    Full(usize),
    /// The client has its share of the queue.
    #[error("{0} requests of this client are waiting or running, and the other places are for other clients")]
    Share(usize),
    /// Receipts of the client wait for the log.
    #[error("{0} checked requests of this client wait until the log answers")]
    Unsigned(usize),
}

/// The places and the workers.
pub struct JobQueue {
    places: usize,
    workers: Arc<Semaphore>,
    /// Whether there are several clients.
    is_shared: bool,
    /// Number of workers that one client may have at the same time.
    workers_of_client: usize,
    taken: Mutex<Taken>,
}

/// The places that are taken.
#[derive(Default)]
struct Taken {
    all: usize,
    by_client: HashMap<String, ClientJobs>,
}

/// The jobs of a client.
struct ClientJobs {
    /// Jobs with a place: their checks have not run yet.
    unchecked: usize,
    /// Jobs whose checks have run, and whose receipt is not signed.
    unsigned: usize,
    workers: Arc<Semaphore>,
}

/// The place of a job, until the job ends.
pub struct JobPlace {
    queue: Arc<JobQueue>,
    client: String,
    is_checked: bool,
}

/// A worker, until this is dropped.
pub struct Worker {
    _of_client: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl JobQueue {
    /// An empty queue for this number of clients.
    pub fn new(places: usize, workers: usize, clients: usize) -> Arc<Self> {
        let is_shared = clients > 1;
        let workers_of_client = if is_shared { (workers / 2).max(1) } else { workers };
        let workers = Arc::new(Semaphore::new(workers));
        Arc::new(Self { places, workers, is_shared, workers_of_client, taken: Mutex::default() })
    }

    /// Takes a place for a request of a client.
    ///
    /// # Errors
    /// [`NoPlace`].
    pub fn place(self: &Arc<Self>, client: &str) -> Result<JobPlace, NoPlace> {
        let mut taken = self.taken();
        let free = self.places.saturating_sub(taken.all);
        let ClientJobs { unchecked, unsigned, .. } = *self.client(&mut taken, client);
        match free {
            0 => Err(NoPlace::Full(taken.all)),
            _ if self.is_shared && unchecked >= free => Err(NoPlace::Share(unchecked)),
            _ if unsigned >= UNSIGNED_JOBS => Err(NoPlace::Unsigned(unsigned)),
            _ => Ok(self.take(&mut taken, client)),
        }
    }

    /// Takes a place for a job that was accepted earlier, whether one is free or not.
    pub fn place_of_accepted(self: &Arc<Self>, client: &str) -> JobPlace {
        self.take(&mut self.taken(), client)
    }

    fn take(self: &Arc<Self>, taken: &mut Taken, client: &str) -> JobPlace {
        taken.all += 1;
        self.client(taken, client).unchecked += 1;
        JobPlace { queue: self.clone(), client: client.to_owned(), is_checked: false }
    }

    fn client<'a>(&self, taken: &'a mut Taken, client: &str) -> &'a mut ClientJobs {
        taken.by_client.entry(client.to_owned()).or_insert_with(|| ClientJobs {
            unchecked: 0,
            unsigned: 0,
            workers: Arc::new(Semaphore::new(self.workers_of_client)),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobPlace {
    /// Waits for a worker. Clients that wait have their turns in the order of their requests.
    ///
    /// # Errors
    /// [`AcquireError`] if the queue is closed.
    pub async fn worker(&self) -> Result<Worker, AcquireError> {
        let of_client = self.queue.client(&mut self.queue.taken(), &self.client).workers.clone();
        let of_client = of_client.acquire_owned().await?;
        let of_all = self.queue.workers.clone().acquire_owned().await?;
        Ok(Worker { _of_client: of_client, _of_all: of_all })
    }

    /// Gives the place to another request: the checks have run.
    pub fn checked(&mut self) {
        if std::mem::replace(&mut self.is_checked, true) {
            return;
        }
        let mut taken = self.queue.taken();
        taken.all -= 1;
        let jobs = self.queue.client(&mut taken, &self.client);
        jobs.unchecked -= 1;
        jobs.unsigned += 1;
    }
}

impl Drop for JobPlace {
    fn drop(&mut self) {
        self.checked();
        let mut taken = self.queue.taken();
        self.queue.client(&mut taken, &self.client).unsigned -= 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_client_has_no_more_places_than_are_free_unless_it_is_alone() {
        let several = JobQueue::new(8, 2, 2);
        let of_a: Vec<JobPlace> = (0..4).map(|_| several.place("a").unwrap()).collect();
        assert_eq!(several.place("a").err(), Some(NoPlace::Share(4)));
        let _of_b: Vec<JobPlace> = (0..2).map(|_| several.place("b").unwrap()).collect();
        assert_eq!(several.place("b").err(), Some(NoPlace::Share(2)));
        drop(of_a);
        assert!(several.place("b").is_ok());

        let alone = JobQueue::new(2, 2, 1);
        let _both = [alone.place("a").unwrap(), alone.place("a").unwrap()];
        assert_eq!(alone.place("a").err(), Some(NoPlace::Full(2)));
    }

    #[test]
    fn a_place_is_free_once_the_checks_have_run_and_the_jobs_without_signature_are_bounded() {
        let queue = JobQueue::new(1, 1, 1);
        let mut waiting = Vec::new();
        for _ in 0..UNSIGNED_JOBS {
            let mut place = queue.place("a").unwrap();
            assert_eq!(queue.place("a").err(), Some(NoPlace::Full(1)));
            place.checked();
            waiting.push(place);
        }
        assert_eq!(queue.place("a").err(), Some(NoPlace::Unsigned(UNSIGNED_JOBS)));
        assert!(queue.place("b").is_ok());
        waiting.pop();
        assert!(queue.place("a").is_ok());
    }
}
