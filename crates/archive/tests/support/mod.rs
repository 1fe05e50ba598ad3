//! A log with one of everything, and a meaning that a test can follow: an entry that says `erase N` erases entry N.
#![allow(dead_code)]

use archive::{ArchiveHeader, ArchivePurpose, ArchiveSummary, EntryEffects, StatementInspector};
use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use store::contract::{Appender, ORIGIN, entry, statement};
use store::{
    Collateral, CommittedHead, Cosignature, Cosignatures, Custody, Entry, GuardKey, HeadSignature, Inbox,
    InboxItem, LogKey, LogKeys, LogReader, LogStore, Memory, NewEntry, Report, Reports, SignatureKind,
};

pub const KID: &[u8] = b"the only key";

/// Signatures are the root, by the one key.
pub struct Plain;

impl StatementInspector for Plain {
    fn effects_of(&self, entry: &Entry) -> Result<EntryEffects, String> {
        let text = entry
            .statement
            .as_ref()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default();
        let erases = text.strip_prefix("erase ").map(|n| EntryDigest::of(&statement(n.parse().unwrap())));
        Ok(EntryEffects { is_policy: entry.index.get() == 0, erases: erases.into_iter().collect() })
    }

    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String> {
        let known = keys.iter().any(|key| key.kid == signature.kid);
        match known && signature.bytes == signature_bytes(head) {
            true => Ok(()),
            false => Err("it is not by that key over that root".into()),
        }
    }
}

fn signature_bytes(head: &CommittedHead) -> String {
    format!("{} {}", head.size, head.root)
}

pub async fn sign(store: &dyn LogStore) {
    for head in store.heads(1, 1000).await.unwrap() {
        for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
            let bytes = Bytes::from(signature_bytes(&head));
            store
                .keep_signature(&HeadSignature { size: head.size, kind, kid: KID.to_vec(), bytes })
                .await
                .unwrap();
        }
    }
}

fn erasure(of: u64) -> NewEntry {
    let statement = Bytes::from(format!("erase {of}"));
    NewEntry { digest: EntryDigest::of(&statement), statement, ..entry(0) }
}

/// Every field of the model is used: twins, guards, collateral, holds of all kinds, erased entries, a
/// report with and one without its statement, two keys, a statement that waits, take-overs.
pub async fn full() -> Memory {
    full_of(301).await
}

/// Such a log with so many plain entries before the others.
pub async fn full_of(plain: u64) -> Memory {
    let store = Memory::new();
    let mut log = Appender::new(std::sync::Arc::new(store.clone())).await;
    for (kid, retired_at) in [(b"an old key".as_slice(), Some(7)), (KID, None)] {
        let key = LogKey::new(kid.to_vec(), Bytes::from_static(b"public"), TreeSize::new(0));
        let retired_size = retired_at.map(|_| TreeSize::new(1));
        let key = LogKey { retired_at, retired_size, ..key };
        store.keep_key(&key).await.unwrap();
    }
    log.take_over().await;
    log.append(1).await;
    log.append(plain - 1).await;
    log.take_over().await;
    log.take_over().await;
    let decorated = NewEntry {
        twin: Some(EntryDigest::of(b"a twin")),
        guards: vec![GuardKey(b"claim one".to_vec()), GuardKey(vec![7; 33])],
        collateral: vec![
            Collateral { kind: 1, bytes: Bytes::from_static(b"beside") },
            Collateral { kind: 4, bytes: Bytes::from_static(b"chain") },
        ],
        facts: r#"{"a":1}"#.into(),
        ..entry(plain)
    };
    let doomed = NewEntry { guards: vec![GuardKey(b"kept for ever".to_vec())], ..entry(plain + 1) };
    log.append_entries(vec![decorated, doomed, entry(plain + 2)]).await.unwrap();
    log.append_entries(vec![erasure(plain + 1), erasure(5)]).await.unwrap();
    let at = LeafIndex::new;
    for (index, case, released) in [
        (plain + 1, "a", Some(9)),
        (plain + 1, "b", Some(11)),
        (4, "c", None),
        (4, "d", Some(12)),
        (4, "d", None),
    ] {
        store.hold(at(index), case, 8).await.unwrap();
        if let Some(released) = released {
            assert!(store.release(at(index), case, released).await.unwrap());
        }
    }
    for (of, refused) in [(plain, b"contradiction".as_slice()), (5, b"another")] {
        let report = Report {
            guard: GuardKey(b"claim one".to_vec()),
            registered: (at(of), EntryDigest::of(&statement(of))),
            refused: EntryDigest::of(refused),
            statement: Some(Bytes::copy_from_slice(refused)),
            at: 5,
        };
        assert!(store.keep_report(&report).await.unwrap());
    }
    store.erase(&[at(plain + 1), at(5)]).await.unwrap();
    sign(&store).await;
    let newest = store.head().await.unwrap().size();
    for witness in [b"w1".to_vec(), b"w2".to_vec()] {
        let line = Bytes::from_static("— witness sig\n".as_bytes());
        store.keep_cosignature(&Cosignature { size: newest, witness, at: 99, line }).await.unwrap();
    }
    let item = InboxItem {
        digest: EntryDigest::of(b"waits"),
        submission: Bytes::from_static(b"in its own encoding"),
    };
    store.enqueue(&item).await.unwrap();
    store
}

/// The first record of an archive of the contract's log.
pub fn header(purpose: ArchivePurpose) -> ArchiveHeader {
    ArchiveHeader { origin: ORIGIN.to_owned(), purpose, made_at: 1_700_000_000 }
}

/// Its archive.
pub async fn written(store: &dyn LogStore, purpose: ArchivePurpose) -> (Vec<u8>, ArchiveSummary) {
    let mut out = Vec::new();
    let summary = archive::write(store, &Plain, header(purpose), &mut out, &|_| ()).await.unwrap();
    (out, summary)
}
