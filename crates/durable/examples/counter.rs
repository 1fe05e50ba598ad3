//! Counts how often it was run, in a file that no crash leaves torn, under a lock against a second process.
//!
//! `cargo run -p durable --example counter -- /tmp/counter`

use std::path::PathBuf;

use durable::{FileAccess, Lock};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder =
        std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("durable-counter"), PathBuf::from);
    durable::make_folder(&folder, FileAccess::Public)?;
    let _lock = Lock::take(&folder.join("lock"), FileAccess::Public)?;
    let file = folder.join("runs");
    let before: u64 = match durable::read(&file, 32)? {
        Some(text) => String::from_utf8(text)?.parse()?,
        None => 0,
    };
    // Once this returns, the new number survives power loss; until then the old one is in place.
    durable::replace(&file, (before + 1).to_string().as_bytes(), FileAccess::Public)?;
    println!("run {} of {}", before + 1, file.display());
    Ok(())
}
