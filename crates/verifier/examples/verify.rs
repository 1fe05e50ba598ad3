//! Verifies a Signed or Transparent Statement offline, and prints every check.
//!
//! `cargo run -p tabellion-verifier --example verify -- STATEMENT.cose TRUST.toml`, with the files of `tabellion
//! register` and `tabellion trust`. Without arguments it signs a statement itself, under a key that is in no trust store.

use std::time::{SystemTime, UNIX_EPOCH};

use scitt::{Algorithm, Signer, SigningKey, StatementBuilder};
use verifier::{StatementEvidence, TrustStore, verify};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let statement = match arguments.next() {
        Some(file) => std::fs::read(file)?,
        None => signed_here()?,
    };
    let trust = match arguments.next() {
        Some(file) => TrustStore::from_toml(&std::fs::read_to_string(file)?)?,
        None => TrustStore::default(),
    };
    let evidence = StatementEvidence { statement: &statement, ..StatementEvidence::default() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let verdict = verify(&evidence, &trust, now);
    for check in &verdict.checks {
        println!("{:?} {:?}: {}", check.state, check.name, check.detail);
    }
    println!("verified: {}", verdict.is_verified());
    Ok(())
}

fn signed_here() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let key = SigningKey::generate(Algorithm::EdDsa)?;
    let issuer = key.public_key().did_key();
    let builder = StatementBuilder::new("the payload").content_type("text/plain").kid(issuer.as_str());
    Ok(builder.iss(&issuer).sub("a subject").sign(&key)?.bytes().to_vec())
}
