//! How long a log of so many entries takes to write, to verify and to restore, and how much memory that needs.
//!
//! `cargo run --release -p archive --example measure -- 100000`: entries of 1 KiB in SQLite, eight to a batch.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use archive::{ArchiveHeader, ArchivePurpose, EntryEffects, PartialFile, StatementInspector};
use bytes::Bytes;
use merkle::tile::OpenTiles;
use merkle::{EntryDigest, LeafIndex};
use store::{
    AppendedBatch, Batch, CommittedHead, Entry, GuardKey, HeadSignature, LogKey, LogKeys, LogWriter,
    NewEntry, SignatureKind, SignatureStore,
};
use store_sqlite::{Settings, Sqlite};

const ORIGIN: &str = "log.example";
const STATEMENT_BYTES: usize = 1024;
const BATCH: u64 = 8;

struct Nothing;

impl StatementInspector for Nothing {
    fn effects_of(&self, _: &Entry) -> Result<EntryEffects, String> {
        Ok(EntryEffects::default())
    }

    fn check_signature(&self, _: &CommittedHead, _: &HeadSignature, _: &[LogKey]) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).unwrap_or("100000".into()).parse()?;
    let folder = tempfile::tempdir()?;
    let store = Sqlite::open(Settings::new(folder.path().join("from.db"))).await?;
    generate(&store, count).await?;
    let file = folder.path().join("log.backup");

    let begun = Instant::now();
    let aside = PartialFile::create(&file)?;
    let out = BufWriter::with_capacity(1 << 20, aside.file());
    let header = ArchiveHeader { origin: ORIGIN.to_owned(), purpose: ArchivePurpose::Backup, made_at: 1 };
    let summary = archive::write(&store, &Nothing, header, out, &|_| ()).await?;
    aside.keep()?;
    told("write", count, begun);
    println!("file      {} MB", std::fs::metadata(&file)?.len() >> 20);

    let begun = Instant::now();
    archive::verify(File::open(&file)?, &Nothing, &|_| ())?;
    told("verify", count, begun);

    let begun = Instant::now();
    let copy = Sqlite::open(Settings::new(folder.path().join("to.db"))).await?;
    archive::fill(&copy, File::open(&file)?, (&summary, &Nothing), &|_| ()).await?;
    archive::finish(&copy, &summary).await?;
    told("restore", count, begun);
    Ok(())
}

fn told(what: &str, count: u64, begun: Instant) {
    let took = begun.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or(" ?").trim();
    println!(
        "{what:9} {took:.2?}, {:.0} entries/s, at most {peak} so far",
        count as f64 / took.as_secs_f64()
    );
}

async fn generate(store: &Sqlite, count: u64) -> Result<(), Box<dyn Error>> {
    let mut head = store.open(ORIGIN).await?;
    let (kid, public) = (b"key".to_vec(), Bytes::new());
    store.keep_key(&LogKey::new(kid, public, head.size())).await?;
    let mut open = OpenTiles::default();
    while head.size().get() < count {
        let from = head.size().get();
        let entries: Vec<NewEntry> = (from..(from + BATCH).min(count)).map(entry).collect();
        let AppendedBatch { batch, tiles, .. } = Batch::append(&head, &open, head.at, entries)?;
        store.commit(&batch).await?;
        let to = batch.to;
        for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
            let bytes = Bytes::from_static(&[b's'; 200]);
            store
                .keep_signature(&HeadSignature { size: to.size(), kind, kid: b"key".to_vec(), bytes })
                .await?;
        }
        (head, open) = (to, tiles);
    }
    Ok(())
}

fn entry(n: u64) -> NewEntry {
    let mut statement = format!("statement {n} ").into_bytes();
    statement.resize(STATEMENT_BYTES, b'.');
    let digest = EntryDigest::of(&statement);
    NewEntry {
        digest,
        twin: Some(EntryDigest::of(digest.as_bytes())),
        statement: statement.into(),
        policy: LeafIndex::new(0),
        rule: "rule".into(),
        facts: r#"{"subject":"thing"}"#.into(),
        guards: vec![GuardKey([&[1][..], digest.as_bytes()].concat())],
        collateral: Vec::new(),
    }
}
