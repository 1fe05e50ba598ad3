//! Appends a batch to a log in memory, reads it back, and shows that an old head can append nothing.
//!
//! `cargo run -p store --example append`

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use store::{Batch, Head, LogReader, LogWriter, Memory, NewEntry, TileAddress, TileWrite};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Memory::new();
    let head = store.open("log.example").await?;
    let batch = batch(&head, &["first", "second"]);
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

/// Returns a batch of statements for an empty log.
fn batch(from: &Head, statements: &[&'static str]) -> Batch {
    let entries: Vec<NewEntry> = statements.iter().map(|text| entry(text)).collect();
    let leaves: Vec<_> = entries.iter().map(|entry| entry.digest.leaf_hash()).collect();
    let to = Head { batch: 1, edge: from.edge.grow(&leaves).into_range(), at: 1_800_000_000, ..from.clone() };
    let hashes: Vec<u8> = leaves.iter().flat_map(|leaf| *leaf.as_bytes()).collect();
    let tiles = vec![TileWrite { address: TileAddress { level: 0, number: 0 }, data: hashes.into() }];
    Batch {
        from: from.clone(),
        to,
        entries,
        tiles,
        settled: Vec::new(),
        effects: Vec::new(),
        signatures: Vec::new(),
    }
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
