//! Signed Statements for the load, signed before the measurement.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anyhow::Context;
use fastrand::Rng;
use scitt::{SignedStatement, Signer, SigningKey, StatementBuilder};

use crate::cpu;
use crate::http;

/// Seed of the issuer's key, which is public.
const SEED: [u8; 32] = [9; 32];
/// Issuer (`iss`) of the statements.
pub const ISS: &str = "https://issuer.example";
/// Key identifier (`kid`) of the issuer's key.
pub const KID: &str = "bench";
/// Content type of the payloads, which no profile parses.
pub const CONTENT_TYPE: &str = "application/octet-stream";

/// Approximate size in bytes of a statement without its payload; the digits of its number may add a few.
const OVERHEAD: usize = 169;

/// Unique statements, each as the HTTP request that registers it.
pub struct Statements {
    requests: Arc<Vec<Vec<u8>>>,
    length: usize,
}

impl Statements {
    /// Signs the statements with these numbers, of about `bytes` bytes each, for `POST` requests to `path`.
    pub fn sign(numbers: Range<usize>, bytes: usize, path: &str) -> anyhow::Result<Self> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let share = numbers.len().div_ceil(threads);
        let parts = thread::scope(|scope| {
            let starts = numbers.clone().step_by(share.max(1));
            let ranges = starts.map(|start| start..(start + share).min(numbers.end));
            let workers: Vec<_> = ranges.map(|range| scope.spawn(move || sign(range, bytes))).collect();
            let parts = workers.into_iter().map(|worker| worker.join().expect("signing does not panic"));
            parts.collect::<anyhow::Result<Vec<_>>>()
        })?;
        let length = parts.iter().flatten().map(Vec::len).next().unwrap_or_default();
        let statements = parts.into_iter().flatten();
        let requests = statements.map(|statement| http::post(path, "application/cose", &statement)).collect();
        Ok(Self { requests: Arc::new(requests), length })
    }

    /// Returns the HTTP requests.
    pub fn requests(&self) -> &Arc<Vec<Vec<u8>>> {
        &self.requests
    }

    /// Returns the length of one statement in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the statements without their HTTP heads.
    pub fn bodies(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.requests.iter().map(|request| &request[request.len() - self.length..])
    }
}

/// Returns the issuer's public key as a `did:key`, as a policy names it.
pub fn issuer_key() -> anyhow::Result<String> {
    Ok(key()?.public_key().did_key())
}

/// Returns the CPU microseconds to parse one of these statements and verify its signature.
pub fn check_cost(statements: &Statements) -> anyhow::Result<f64> {
    let (key, begun, before) = (key()?, Instant::now(), cpu::own());
    let mut checked = 0_u32;
    for body in statements.bodies().cycle() {
        SignedStatement::parse(body.to_vec())?.verify_with(key.public_key(), None)?;
        checked += 1;
        if checked.is_multiple_of(256) && begun.elapsed().as_millis() >= 500 {
            break;
        }
    }
    Ok((cpu::own() - before) * 1e6 / f64::from(checked))
}

fn key() -> anyhow::Result<SigningKey> {
    SigningKey::from_ed25519_seed(&SEED).context("the seed is a key")
}

fn sign(range: Range<usize>, bytes: usize) -> anyhow::Result<Vec<Vec<u8>>> {
    let key = key()?;
    range.map(|number| statement(&key, number, bytes)).collect()
}

fn statement(key: &dyn Signer, number: usize, bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut payload = vec![0; bytes.saturating_sub(OVERHEAD)];
    Rng::with_seed(number as u64).fill(&mut payload);
    let statement = StatementBuilder::new(payload).content_type(CONTENT_TYPE).kid(KID).iss(ISS);
    Ok(statement.sub(&format!("pkg:generic/artifact@{number:08}")).encode(key)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_unique_valid_and_of_the_length_asked_for() {
        let statements = Statements::sign(0..50, 1024, "/entries").unwrap();
        let mut digests: Vec<_> = statements
            .bodies()
            .map(|body| {
                let statement = SignedStatement::parse(body.to_vec()).unwrap();
                statement.verify_with(key().unwrap().public_key(), None).unwrap();
                statement.digest()
            })
            .collect();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 50);
        assert!(statements.length().abs_diff(1024) <= 16, "{}", statements.length());
    }
}
