//! Starting again: at every size, after an old copy was put back, with and without the pin.

mod support;

use merkle::{RootHash, TreeSize};
use sequencer::pin::{self, AdoptError, Pin, PinError};
use sequencer::{Halt, Role, SubmitError};
use store::{Fault, LogReader, LogWriter, SignatureStore, StoreMethod};
use support::{Log, ORIGIN, policy, statement};

#[tokio::test(start_paused = true)]
async fn a_restart_at_every_size_around_a_power_of_two_goes_on() {
    for size in sizes() {
        let log = Log::empty();
        let mut process = log.start().await;
        for n in 0..size {
            let next = if n == 0 { policy(0) } else { statement(n) };
            // One by one at the small sizes, so that every one of them is a head; else in two.
            if size <= 33 {
                log.submit(&process, next).await.unwrap();
            } else if n == 0 {
                log.submit(&process, next).await.unwrap();
                log.submit_all(&process, (1..size).map(statement)).await;
                break;
            }
        }
        assert_eq!(log.size().await, size);
        process.handle.kill();
        process = log.start().await;
        let next = if size == 0 { policy(0) } else { statement(9999) };
        let placement = log.submit(&process, next).await.unwrap();
        assert_eq!(placement.index.get(), size);
        log.check().await;
    }
}

fn sizes() -> impl Iterator<Item = u64> {
    let around = (0..10).flat_map(|k| [(1u64 << k) - 1, 1 << k, (1 << k) + 1]);
    around.chain([65_535 / 16, 511, 512, 513, 767, 768, 769])
}

#[tokio::test(start_paused = true)]
async fn a_start_reads_one_row_and_one_tile_for_each_level_and_not_the_tree() {
    let log = Log::with(3000).await;
    let process = log.start().await;
    let before = process.store.all_calls();
    assert!(before <= 22, "{before} calls to start");
    assert_eq!(process.store.calls(StoreMethod::Tiles), 1);
    for call in [StoreMethod::Entry, StoreMethod::Entries, StoreMethod::Heads] {
        assert_eq!(process.store.calls(call), 0);
    }
    log.submit(&process, statement(9999)).await.unwrap();
    assert_eq!(process.store.calls(StoreMethod::Tiles), 1, "the write path reads no tree");
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_put_back_is_refused_with_both_sizes_and_nothing_is_signed() {
    let log = Log::with(1139).await;
    let backup = log.memory.backup();
    let process = log.start().await;
    log.submit_all(&process, (5000..5064).map(statement)).await;
    process.handle.stop().await;
    let signed = log.signer.signed().len();
    log.memory.restore(&backup);
    let process = log.start().await;
    let halt = process.halt().expect("it must not lead");
    assert_eq!(halt.to_string(), "the database is at 1,140, this log has signed 1,204");
    let refused = log.submit(&process, statement(9999)).await;
    assert!(matches!(refused, Err(SubmitError::Halted(Halt::DatabaseBehind { .. }))), "{refused:?}");
    assert_eq!(log.signer.signed().len(), signed);
    assert!(log.memory.entry(merkle::LeafIndex::new(3)).await.unwrap().is_some(), "reads go on");
    process.handle.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_old_copy_put_back_under_a_running_log_is_noticed_at_the_next_batch() {
    let log = Log::with(10).await;
    let backup = log.memory.backup();
    let process = log.start().await;
    log.submit(&process, statement(20)).await.unwrap();
    log.memory.restore(&backup);
    let _ = log.submit(&process, statement(21)).await;
    let halt = process.until_halted().await;
    let expected = Halt::DatabaseBehind { database: TreeSize::new(11), signed: TreeSize::new(12) };
    assert_eq!(halt, expected);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_went_another_way_is_refused() {
    let log = Log::with(10).await;
    let backup = log.memory.backup();
    let process = log.start().await;
    log.submit(&process, statement(20)).await.unwrap();
    process.handle.stop().await;
    let elsewhere = Log::with(0).await;
    elsewhere.memory.restore(&backup);
    let pin = Pin {
        origin: ORIGIN.into(),
        size: TreeSize::new(11),
        root: backup.head().await.unwrap().root(),
        epoch: 1,
    };
    elsewhere.other_pin().claim(&pin).unwrap();
    let fork = elsewhere.start_at(elsewhere.other_pin()).await;
    for n in 30..35 {
        elsewhere.submit(&fork, statement(n)).await.unwrap();
    }
    log.memory.restore(&elsewhere.memory);
    let process = log.start().await;
    let halt = process.halt();
    assert!(matches!(halt, Some(Halt::DatabaseDisagrees { database: Some(_), .. })), "{halt:?}");
}

#[tokio::test(start_paused = true)]
async fn a_log_with_signed_heads_and_no_pin_leads_only_after_it_is_adopted() {
    let log = Log::with(4).await;
    let process = log.start_at(log.other_pin()).await;
    let halt = process.halt();
    assert!(matches!(&halt, Some(Halt::NoPin { size, .. }) if size.get() == 5), "{halt:?}");
    process.handle.stop().await;
    let head = log.memory.head().await.unwrap();
    let (size, root) = (head.size(), head.root());
    let file = log.other_pin();
    let leader = log.start().await;
    leader.until_leading().await;
    let refused = pin::adopt(&log.memory, &file, ORIGIN, "operator", size, root).await;
    assert!(matches!(refused, Err(AdoptError::Led)), "{refused:?}");
    leader.handle.stop().await;
    let other = RootHash::from_bytes([7; 32]);
    let refused = pin::adopt(&log.memory, &file, ORIGIN, "operator", size, other).await;
    assert!(matches!(refused, Err(AdoptError::OtherRoot { .. })));
    let refused = pin::adopt(&log.memory, &file, ORIGIN, "operator", TreeSize::new(77), root).await;
    assert!(matches!(refused, Err(AdoptError::NoSuchHead(_))));
    pin::adopt(&log.memory, &file, ORIGIN, "operator", size, root).await.unwrap();
    let process = log.start_at(log.other_pin()).await;
    assert!(matches!(process.role(), Role::Leading { .. }));
    log.submit(&process, statement(10)).await.unwrap();
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn the_pin_is_raised_before_the_signature_and_never_behind_it() {
    let log = Log::with(0).await;
    let process = log.start().await;
    for n in 1..20 {
        log.submit(&process, statement(n)).await.unwrap();
        let pin = log.pin().read().unwrap().unwrap();
        let signed = log.signer.signed().last().copied().unwrap();
        assert_eq!((pin.size, pin.root), signed);
    }
}

#[test]
fn a_pin_that_is_damaged_anywhere_is_refused_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = pin::PinFile::in_directory(directory.path());
    let (size, root) = (TreeSize::new(10), RootHash::from_bytes([1; 32]));
    let pin = Pin { origin: ORIGIN.into(), size, root, epoch: 3 };
    file.claim(&pin).unwrap();
    // The other slot has never been written: nothing stands in for this one.
    let path = directory.path().join("pin.3");
    let good = std::fs::read(&path).unwrap();
    let slot = good.len() / 2;
    for at in 0..slot {
        let mut bad = good.clone();
        bad[at] ^= 1;
        for bad in [&bad[..], &good[..at]] {
            std::fs::write(&path, bad).unwrap();
            assert!(matches!(file.read(), Err(PinError::Unreadable { .. })), "byte {at}");
            assert!(file.raise(&Pin { size: TreeSize::new(11), ..pin.clone() }).is_err());
            assert!(file.claim(&Pin { epoch: 4, ..pin.clone() }).is_err());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pin_of_another_log_is_refused() {
    let log = Log::with(1).await;
    let (size, root) = (TreeSize::new(1), RootHash::from_bytes([1; 32]));
    let file = log.other_pin();
    file.claim(&Pin { origin: "other.example".into(), size, root, epoch: 1 }).unwrap();
    let process = log.start_at(file).await;
    assert!(matches!(process.halt(), Some(Halt::OtherLog { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_pin_that_cannot_be_written_stops_signing() {
    let log = Log::with(1).await;
    let process = log.start().await;
    let signed = log.signer.signed().len();
    log.block_pin();
    let outcome = log.submit(&process, statement(10)).await;
    assert!(matches!(outcome, Err(SubmitError::Halted(Halt::Pin(_)))), "{outcome:?}");
    assert_eq!(log.signer.signed().len(), signed);
    process.handle.stop().await;
    log.unblock_pin();
    let again = log.start().await;
    assert!(log.submit(&again, statement(10)).await.unwrap().already_there);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_way_of_signing_at_start_halts_and_reads_can_go_on() {
    let log = Log::with(1).await;
    log.memory.take_over("somebody").await.unwrap();
    let process = log.start().await;
    log.block_pin();
    log.submit(&process, statement(10)).await.unwrap_err();
    assert!(matches!(process.until_halted().await, Halt::Pin(_)));
    process.handle.stop().await;
    let process = log.start().await;
    assert!(matches!(process.halt(), Some(Halt::Pin(_))), "{:?}", process.role());
    process.handle.stop().await;
    log.unblock_pin();
    log.signer.fail(1000);
    let process = log.start().await;
    assert!(matches!(process.halt(), Some(Halt::Signer { .. })), "{:?}", process.role());
    process.handle.stop().await;
    log.signer.fail(0);
    let process = log.start().await;
    log.insist(&process, statement(10)).await;
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn a_start_while_the_database_goes_away_answers_and_leads_later() {
    let log = Log::with(1).await;
    let store = store::FailingStore::new(log.memory.clone());
    for nth in 1..=8 {
        store.fail(StoreMethod::TakeOver, nth, Fault::Refused);
    }
    let process = log.start_over(store, log.pin()).await.unwrap();
    assert_eq!(process.role(), Role::Following);
    process.until_leading().await;
    log.insist(&process, statement(10)).await;
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_finishes_what_is_queued_and_takes_no_more() {
    let log = Log::with(0).await;
    let process = log.start().await;
    let mut waiting = Vec::new();
    for n in 1..=500 {
        let handle = process.handle.clone();
        waiting.push(tokio::spawn(async move { handle.submit(statement(n)).await }));
    }
    tokio::task::yield_now().await;
    process.handle.stop().await;
    let mut placed = 0;
    for task in waiting {
        match task.await.unwrap() {
            Ok(_) => placed += 1,
            Err(SubmitError::Stopping) => {} // it came after the stop
            Err(other) => panic!("{other}"),
        }
    }
    assert!(placed > 0);
    assert!(matches!(log.submit(&process, statement(999)).await, Err(SubmitError::Stopping)));
    assert_eq!(process.role(), Role::Stopped);
    assert_eq!(log.size().await, placed + 1, "who was told nothing has no entry");
    let newest = log.memory.newest_signed(store::SignatureKind::Receipt).await.unwrap().unwrap();
    assert_eq!(newest.head.size.get(), placed + 1);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn r52_a_key_is_taken_up_only_once_every_signature_before_it_is_kept() {
    let log = Log::with(1).await;
    let process = log.start().await;
    process.store.fail(StoreMethod::KeepSignatures, 1, Fault::NotApplied);
    for number in 10..15 {
        log.submit(&process, statement(number)).await.unwrap();
    }
    let kept = log.signer.change_key(&log.memory).await;
    assert_eq!(
        kept,
        2 * log.signer.heads().len(),
        "a crash now would leave a head unsigned before a signed one"
    );
    process.handle.stop().await;
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn signatures_that_a_crash_took_along_are_made_again_for_every_head_that_may_have_left() {
    let log = Log::with(1).await;
    let process = log.start().await;
    (1..1000).for_each(|nth| process.store.fail(StoreMethod::KeepSignatures, nth, Fault::NotApplied));
    for number in 10..15 {
        log.submit(&process, statement(number)).await.unwrap();
        // No batch takes the first signature along, and the later ones wait behind it.
        tokio::time::sleep(2 * log.limits.keep_after).await;
    }
    process.handle.kill();
    let unsigned = log.unsigned().await;
    assert_eq!(unsigned.len(), 5, "the receipts have left, and nothing of them is kept: {unsigned:?}");
    let process = log.start().await;
    log.insist(&process, statement(20)).await;
    tokio::time::sleep(2 * log.limits.keep_after).await;
    assert_eq!(log.unsigned().await, [], "the checkpoint of every receipt's size can be read");
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn the_signatures_over_a_head_are_stored_with_the_next_batch() {
    let log = Log::with(0).await;
    let process = log.start().await;
    for number in 1..=3 {
        log.submit(&process, statement(number)).await.unwrap();
    }
    assert_eq!(process.store.calls(StoreMethod::KeepSignatures), 0);
    let unsigned = log.unsigned().await;
    assert_eq!(unsigned.len(), 1, "only the newest head waits for its batch: {unsigned:?}");
    tokio::time::sleep(2 * log.limits.keep_after).await;
    assert_eq!(log.unsigned().await, [], "an idle log stores them by themselves");
    assert_eq!(process.store.calls(StoreMethod::KeepSignatures), 1);
    log.check().await;
}

#[tokio::test(start_paused = true)]
async fn no_head_is_stored_as_signed_before_its_predecessors_are() {
    let log = Log::with(0).await;
    let process = log.start().await;
    (1..5).for_each(|nth| process.store.fail(StoreMethod::KeepSignatures, nth, Fault::NotApplied));
    log.submit(&process, statement(1)).await.unwrap();
    tokio::time::sleep(2 * log.limits.keep_after).await;
    while process.store.faults_left() > 0 {
        let number = 10 + process.store.all_calls();
        log.submit(&process, statement(number)).await.unwrap();
        let (history, unsigned) = (log.memory.heads(0, usize::MAX).await.unwrap(), log.unsigned().await);
        let sizes: Vec<TreeSize> = history.iter().map(|head| head.size).collect();
        assert!(sizes.ends_with(&unsigned), "of {sizes:?}, {unsigned:?} are not signed");
        tokio::time::sleep(2 * log.limits.keep_after).await;
    }
    log.check().await;
}
