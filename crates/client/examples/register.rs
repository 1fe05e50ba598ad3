//! Registers a statement with a transparency service, and verifies the receipt before it is written.
//!
//! `cargo run -p client --example register -- https://log.example STATEMENT.cose TRUST.toml RECEIPT.cose`

use std::time::{SystemTime, UNIX_EPOCH};

use client::{Client, Options};
use scitt::SignedStatement;
use verifier::TrustStore;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [service, statement, trust, receipt] = &arguments[..] else {
        return Err("usage: register SERVICE STATEMENT TRUST RECEIPT".into());
    };
    let statement = SignedStatement::parse(std::fs::read(statement)?)?;
    let trust = TrustStore::from_toml(&std::fs::read_to_string(trust)?)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();

    let client = Client::new(service, Options::default())?;
    let registered = client.register(&statement, &trust, now).await?;
    std::fs::write(receipt, &registered.receipt)?;
    println!("registered {} at {}", statement.digest(), registered.location);
    Ok(())
}
