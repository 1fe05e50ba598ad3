//! Signs the checkpoint of a small log, prints it, and opens it again as a monitor does.
//!
//! `cargo run -p tabellion-tlog --example checkpoint`

use merkle::{CompactRange, EntryDigest};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::note::{LocalKey, NoteSigner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tree = CompactRange::empty();
    for entry in ["first", "second", "third"] {
        tree.append(EntryDigest::of(entry.as_bytes()).leaf_hash());
    }
    let origin: Origin = "log.example/2026".parse()?;
    // A real log has a key from a random source.
    let key = LocalKey::new("log.example/2026".parse()?, ed25519_dalek::SigningKey::from_bytes(&[7; 32]))?;
    let note = Checkpoint::new(origin.clone(), tree.size(), tree.root())?.sign(&key)?;
    println!("{note}");

    let opened = Checkpoint::open(note.to_string().as_bytes(), &origin, &[key.key().clone()])?;
    println!("verified under {}: {} entries, root {}", key.key(), opened.size(), opened.root());
    Ok(())
}
