//! The store that reports how long each operation takes: it changes no answer, and names operation and error.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use operation_times::{OperationObserver, StoreOperation};
use store::contract::{Appender, LogDatabase, ORIGIN, entry};
use store::{
    FailingStore, Fault, Lifecycle, LogReader, LogStore, LogWriter, MeasuredStore, Memory, StoreMethod,
};

/// The reports so far: number, name and class of the error.
#[derive(Debug, Default)]
struct Reports(Mutex<Vec<(usize, &'static str, Option<&'static str>)>>);

impl OperationObserver for Reports {
    fn ended(&self, operation: StoreOperation, error_type: Option<&'static str>, _: Duration) {
        self.0.lock().unwrap().push((operation.number, operation.name, error_type));
    }
}

impl Reports {
    fn take(&self) -> Vec<(usize, &'static str, Option<&'static str>)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

struct Wrapped(Memory);

#[async_trait]
impl LogDatabase for Wrapped {
    async fn handle(&self) -> Arc<dyn LogStore> {
        let store: Arc<dyn LogStore> = Arc::new(self.0.clone());
        Arc::new(MeasuredStore::new(store, Arc::new(Reports::default())))
    }
}

store::log_store_contract!(measured: || async { Wrapped(Memory::new()) });

#[tokio::test]
async fn each_operation_is_reported_once_with_its_number_its_name_and_the_class_of_its_error() {
    let (failing, reports) = (FailingStore::new(Memory::new()), Arc::new(Reports::default()));
    let store = Arc::new(MeasuredStore::new(Arc::new(failing.clone()), reports.clone()));
    assert!(store.head().await.is_err());
    store.open(ORIGIN).await.unwrap();
    failing.fail(StoreMethod::Head, 1, Fault::Full);
    assert!(store.head().await.is_err());
    store.state().await.unwrap();
    store.close().await;
    let (head, open) = (StoreMethod::Head as usize, StoreMethod::Open as usize);
    let state = (StoreMethod::State as usize, "state", None);
    let expected =
        [(head, "head", Some("no_log")), (open, "open", None), (head, "head", Some("full")), state];
    assert_eq!(reports.take(), expected);

    let mut appender = Appender::with(store, 2).await;
    failing.fail(StoreMethod::Commit, 1, Fault::NotApplied);
    appender.append_entries(vec![entry(2)]).await.unwrap_err();
    let (_, name, error) = reports.take().into_iter().rfind(|(_, name, _)| *name == "commit").unwrap();
    assert_eq!((name, error), ("commit", Some("unknown")));
}
