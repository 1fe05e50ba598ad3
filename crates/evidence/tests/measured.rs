//! The store that reports how long each operation takes: it changes no answer, and names operation and error.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use evidence::contract::{EvidenceDatabase, Stream};
use evidence::{
    EvidenceMethod, EvidenceStore, FailingEvidence, Fault, MeasuredEvidence, Memory, Outbox, StreamEditor,
};
use operation_times::{OperationObserver, StoreOperation};

/// The names of the operations so far, with the classes of their errors.
#[derive(Debug, Default)]
struct Reports(Mutex<Vec<(&'static str, Option<&'static str>)>>);

impl OperationObserver for Reports {
    fn ended(&self, operation: StoreOperation, error_type: Option<&'static str>, _: Duration) {
        self.0.lock().unwrap().push((operation.name, error_type));
    }
}

struct Wrapped(Memory);

#[async_trait]
impl EvidenceDatabase for Wrapped {
    async fn handle(&self, instance: &str) -> Arc<dyn EvidenceStore> {
        Arc::new(MeasuredEvidence::new(self.0.handle(instance).await, Arc::new(Reports::default())))
    }

    async fn stream_editor(&self) -> Box<dyn StreamEditor> {
        self.0.stream_editor().await
    }
}

evidence::evidence_store_contract!(measured: || async { Wrapped(Memory::new("maker")) });

#[tokio::test]
async fn each_operation_is_reported_once_with_its_name_and_the_class_of_its_error() {
    let (failing, reports) = (FailingEvidence::new(Memory::new("one")), Arc::new(Reports::default()));
    let store = MeasuredEvidence::new(Arc::new(failing.clone()), reports.clone());
    let change = [Stream::new("s").change(1)];
    failing.fail(EvidenceMethod::Commit, 1, Fault::NotApplied);
    store.commit(&change).await.unwrap_err();
    store.commit(&change).await.unwrap();
    store.commit(&change).await.unwrap_err();
    store.pending(1).await.unwrap();
    assert_eq!(store.instance(), "one");
    let expected =
        [("commit", Some("unknown")), ("commit", None), ("commit", Some("conflict")), ("pending", None)];
    assert_eq!(*reports.0.lock().unwrap(), expected);
}
