//! What the witnesses say, with and without a pin, at a start and while leading.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use merkle::TreeSize;
use sequencer::{Confirmation, Halt, Role, SubmitError, Witnesses};
use store::{Fault, StoreMethod};
use support::{Log, policy, statement};
use tokio::sync::watch;

/// Says what the test wants.
struct Say {
    at_start: Confirmation,
    later: watch::Sender<Option<Halt>>,
}

impl Say {
    fn at_start(at_start: Confirmation) -> Arc<Self> {
        Arc::new(Self { at_start, later: watch::Sender::new(None) })
    }
}

#[async_trait]
impl Witnesses for Say {
    async fn confirm(&self, _patience: Duration) -> Confirmation {
        self.at_start.clone()
    }

    async fn contradicted(&self) -> Halt {
        let mut later = self.later.subscribe();
        later.wait_for(Option::is_some).await.unwrap().clone().unwrap()
    }
}

fn confirmed() -> Confirmation {
    Confirmation::Confirmed { by: vec!["w1".into(), "w2".into()] }
}

fn ahead() -> Halt {
    Halt::WitnessAhead { witness: "w1".into(), database: TreeSize::new(1140), signed: TreeSize::new(1204) }
}

#[tokio::test(start_paused = true)]
async fn without_a_pin_the_word_of_the_witnesses_is_enough_and_the_pin_is_made_anew() {
    let mut log = Log::with(4).await;
    log.witnesses = Say::at_start(confirmed());
    let process = log.start_at(log.other_pin()).await;
    assert!(matches!(process.role(), Role::Leading { .. }), "{:?}", process.role());
    assert_eq!(log.other_pin().read().unwrap().unwrap().size, TreeSize::new(5));
    log.submit(&process, statement(10)).await.unwrap();
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_pin_and_without_enough_witnesses_nothing_is_signed_and_the_reason_is_told() {
    let mut log = Log::with(4).await;
    let signed = log.signer.signed().len();
    log.witnesses = Say::at_start(Confirmation::Unknown("w1 cannot be reached".into()));
    let process = log.start_at(log.other_pin()).await;
    let halt = process.halt().expect("it must not lead");
    assert!(matches!(&halt, Halt::NoPin { size, .. } if size.get() == 5), "{halt:?}");
    assert!(halt.to_string().contains("w1 cannot be reached"), "{halt}");
    assert_eq!(log.signer.signed().len(), signed);
}

#[tokio::test(start_paused = true)]
async fn a_witness_that_has_seen_more_is_believed_with_a_pin_and_without() {
    let mut log = Log::with(4).await;
    log.witnesses = Say::at_start(Confirmation::Contradicted(ahead()));
    for pin in [log.pin(), log.other_pin()] {
        let process = log.start_at(pin).await;
        let halt = process.halt().expect("it must not lead");
        assert_eq!(
            halt.to_string(),
            "the database is at 1,140, this log has signed 1,204: the witness w1 has seen it"
        );
        process.handle.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_pin_no_witness_has_to_answer() {
    let mut log = Log::with(4).await;
    log.witnesses = Say::at_start(Confirmation::Unknown("nobody answers".into()));
    let process = log.start().await;
    log.submit(&process, statement(10)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_log_that_signed_nothing_starts_unless_a_witness_has_seen_it() {
    let mut log = Log::empty();
    log.witnesses = Say::at_start(Confirmation::Contradicted(ahead()));
    let process = log.start().await;
    assert_eq!(process.halt(), Some(ahead()));
    process.handle.stop().await;
    log.witnesses = Say::at_start(Confirmation::Unknown("nobody answers".into()));
    let process = log.start().await;
    log.submit(&process, policy(0)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_batch_under_way_when_a_witness_contradicts_is_neither_signed_nor_answered() {
    let mut log = Log::with(4).await;
    let say = Say::at_start(confirmed());
    log.witnesses = say.clone();
    let process = log.start().await;
    let signed = log.signer.signed().len();
    log.signer.fail(1);
    let submitted = log.submit(&process, statement(10));
    tokio::pin!(submitted);
    // Committed and pinned; the second try to sign is waited for.
    let first = tokio::time::timeout(Duration::from_millis(1), &mut submitted).await;
    assert!(first.is_err() && log.size().await == 6, "{first:?}");
    say.later.send_replace(Some(ahead()));
    let refused = submitted.await;
    assert!(matches!(refused, Err(SubmitError::Halted(Halt::WitnessAhead { .. }))), "{refused:?}");
    assert_eq!(process.until_halted().await, ahead());
    assert_eq!(log.signer.signed().len(), signed);
    assert_eq!(process.handle.published().unwrap().head.size, TreeSize::new(5));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_committed_after_a_witness_contradicted_is_not_even_pinned() {
    let mut log = Log::with(4).await;
    let say = Say::at_start(confirmed());
    log.witnesses = say.clone();
    let process = log.start().await;
    let signed = log.signer.signed().len();
    process.store.fail(StoreMethod::Commit, 1, Fault::Refused);
    let submitted = log.submit(&process, statement(10));
    tokio::pin!(submitted);
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut submitted).await.is_err());
    say.later.send_replace(Some(ahead()));
    assert!(submitted.await.is_err());
    assert_eq!(process.until_halted().await, ahead());
    assert_eq!(log.signer.signed().len(), signed);
    assert_eq!(log.pin().read().unwrap().unwrap().size, TreeSize::new(5));
}

#[tokio::test(start_paused = true)]
async fn a_contradiction_while_leading_stops_it_and_nothing_is_signed_after() {
    let mut log = Log::with(4).await;
    let say = Say::at_start(confirmed());
    log.witnesses = say.clone();
    let process = log.start().await;
    log.submit(&process, statement(10)).await.unwrap();
    say.later.send_replace(Some(ahead()));
    assert_eq!(process.until_halted().await, ahead());
    let signed = log.signer.signed().len();
    let refused = log.submit(&process, statement(11)).await;
    assert!(matches!(refused, Err(SubmitError::Halted(Halt::WitnessAhead { .. }))), "{refused:?}");
    assert_eq!(log.signer.signed().len(), signed);
}
