//! Appends a batch to a log in memory, reads it back, and shows that an old head can append nothing.
//!
//! `cargo run -p store --example append`

use bytes::Bytes;
use merkle::tile::OpenTiles;
use merkle::{EntryDigest, LeafIndex};
use store::{Batch, LogReader, LogWriter, Memory, NewEntry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Memory::new();
    let head = store.open("log.example").await?;
    let entries = ["first", "second"].map(entry).to_vec();
    let batch = Batch::append(&head, &OpenTiles::empty(), 1_800_000_000, entries)?.batch;
    store.commit(&batch).await?;

    let head = store.head().await?;
    println!("size {}, root {}", head.size(), head.root());
    for entry in store.entries(LeafIndex::new(0), 10).await? {
        println!("entry {}: {}", entry.index, entry.digest);
    }
    // The head has moved, so a second writer that still holds the old one is fenced.
    println!("again: {}", store.commit(&batch).await.expect_err("the head has moved"));
    Ok(())
}

fn entry(statement: &'static str) -> NewEntry {
    NewEntry {
        digest: EntryDigest::of(statement.as_bytes()),
        twin: None,
        statement: Bytes::from_static(statement.as_bytes()),
        policy: LeafIndex::new(0),
        rule: "example".into(),
        facts: "{}".into(),
        guards: Vec::new(),
        collateral: Vec::new(),
    }
}
