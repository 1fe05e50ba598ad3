//! Signs a text as a Signed Statement, parses what a log would receive, and prints its entry ID.
//!
//! `cargo run -p tabellion-scitt --example sign -- "the build passed"`

use scitt::{Algorithm, SignedStatement, Signer, SigningKey, StatementBuilder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let payload = std::env::args().nth(1).unwrap_or_else(|| "the build passed".to_owned());
    let key = SigningKey::generate(Algorithm::EdDsa)?;
    // An issuer that is a did:key carries its public key in its name.
    let issuer = key.public_key().did_key();
    let builder = StatementBuilder::new(payload.into_bytes()).content_type("text/plain");
    let signed = builder.kid(issuer.as_str()).iss(&issuer).sub("build 17").sign(&key)?;

    let received = SignedStatement::parse(signed.bytes().clone())?;
    received.verify_with(key.public_key(), None)?;
    println!("issuer  {issuer}");
    println!("entry   {}", received.digest());
    println!("bytes   {}", received.bytes().len());
    Ok(())
}
