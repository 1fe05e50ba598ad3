//! Signed Statements for the load, signed before the measurement.
//!
//! `kinds` makes one statement of each content type, `listed` those of one session and one chain, `issuer` has the key and
//! the policy that admits them.

mod issuer;
mod kinds;
mod listed;

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use scitt::SignedStatement;

use crate::http;
use crate::limits::SIGNED_AT_ONCE;
use crate::numbers::Numbers;
use crate::process;

pub(crate) use issuer::{ISS, Issuer, admit_issuer};
pub(crate) use kinds::subject;
use kinds::{KINDS, Kind, NumberedStatement};
pub(crate) use listed::ListedStatements;

/// The content type that is measured first unless another one is named.
pub(crate) const OPAQUE: &str = "application/octet-stream";

/// Returns the content types that can be measured: those that the first policy of `tabellion init` admits.
pub fn content_types() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.content_type)
}

/// Returns whether a content type can be measured.
pub fn is_content_type(name: &str) -> bool {
    content_types().any(|known| known == name)
}

/// Which statements a load needs.
pub(crate) struct SignedLoad<'a> {
    /// Their content type.
    pub(crate) content_type: &'a str,
    /// Length of an opaque one in bytes.
    pub(crate) bytes: usize,
    /// Path of the `POST` requests.
    pub(crate) path: &'a str,
    /// Duration of the load.
    pub(crate) length: Duration,
}

/// Unique statements of one content type, each as the HTTP request that registers it.
pub(crate) struct Statements {
    requests: Arc<Vec<Vec<u8>>>,
    /// Length of the head of each request.
    heads: Vec<usize>,
}

impl Statements {
    /// Signs the statements with these numbers for `POST` requests to `path`; an opaque one has about `bytes` bytes.
    pub(crate) fn sign(
        content_type: &str,
        numbers: Range<u64>,
        bytes: usize,
        path: &str,
    ) -> anyhow::Result<Self> {
        let signed = sign_all(content_type, numbers, bytes)?;
        let request = |statement: &SignedStatement| {
            let request = http::post(path, "application/cose", statement.bytes());
            (request.len() - statement.bytes().len(), request)
        };
        let (heads, requests) = signed.iter().map(request).unzip();
        Ok(Self { requests: Arc::new(requests), heads })
    }

    /// Signs up to `count` statements, for as long as `length` at most: a machine that signs slowly registers slowly.
    pub(crate) fn sign_for(load: &SignedLoad<'_>, numbers: &Numbers, count: usize) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut all = Self { requests: Arc::default(), heads: Vec::new() };
        let mut requests = Vec::new();
        while requests.len() < count && (requests.is_empty() || begun.elapsed() < load.length) {
            let next = numbers.take(SIGNED_AT_ONCE.min(count - requests.len()) as u64);
            let signed = Self::sign(load.content_type, next, load.bytes, load.path)?;
            all.heads.extend(signed.heads);
            requests.extend(Arc::unwrap_or_clone(signed.requests));
        }
        all.requests = Arc::new(requests);
        Ok(all)
    }

    /// Returns the HTTP requests.
    pub(crate) fn requests(&self) -> &Arc<Vec<Vec<u8>>> {
        &self.requests
    }

    /// Returns the length of the first statement in bytes.
    pub(crate) fn length(&self) -> usize {
        self.bodies().next().map_or(0, <[u8]>::len)
    }

    /// Returns the statements without their HTTP heads.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.requests.iter().zip(&self.heads).map(|(request, head)| &request[*head..])
    }
}

/// Signs the statements with these numbers, on all processors.
pub(crate) fn sign_all(
    content_type: &str,
    numbers: Range<u64>,
    bytes: usize,
) -> anyhow::Result<Vec<SignedStatement>> {
    sign_each(content_type, numbers, bytes, Ok)
}

/// Signs the statements with these numbers and applies a function to each, on all processors. The results are in the
/// order of the numbers.
pub(crate) fn sign_each<T: Send>(
    content_type: &str,
    numbers: Range<u64>,
    bytes: usize,
    then: impl Fn(SignedStatement) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let kind = kind(content_type)?;
    let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = (numbers.end - numbers.start).div_ceil(threads).max(1);
    let sign = |range: Range<u64>| {
        let issuer = Issuer::new()?;
        let statements = range.map(|number| {
            let content_type = kind.content_type;
            (kind.sign)(&NumberedStatement { issuer: &issuer, content_type, number, bytes })
        });
        statements.map(|statement| statement.and_then(&then)).collect::<anyhow::Result<Vec<T>>>()
    };
    let parts = thread::scope(|scope| {
        let starts = numbers.clone().step_by(share as usize);
        let ranges = starts.map(|start| start..(start + share).min(numbers.end));
        let workers: Vec<_> = ranges
            .map(|range| {
                let sign = &sign;
                scope.spawn(move || sign(range))
            })
            .collect();
        let parts =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        parts.collect::<anyhow::Result<Vec<_>>>()
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// Returns the CPU microseconds to parse one of these statements and verify its signature.
pub(crate) fn check_cost(statements: &Statements) -> anyhow::Result<f64> {
    let (issuer, begun, before) = (Issuer::new()?, Instant::now(), process::own_cpu());
    let mut checked = 0_u32;
    for body in statements.bodies().cycle() {
        SignedStatement::parse(body.to_vec())?.verify_with(issuer.public_key(), None)?;
        checked += 1;
        if checked.is_multiple_of(256) && begun.elapsed().as_millis() >= 500 {
            break;
        }
    }
    Ok((process::own_cpu() - before) * 1e6 / f64::from(checked))
}

fn kind(content_type: &str) -> anyhow::Result<&'static Kind> {
    let found = KINDS.iter().find(|kind| kind.content_type == content_type);
    found.with_context(|| format!("no statements of the content type {content_type:?} can be made"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use merkle::LeafIndex;
    use registration::policy::{Identity, for_init};
    use registration::{Answers, Policy, PolicyInForce, Record, SideData};
    use scitt::{Signer, SigningKey};

    use super::*;

    fn policy() -> String {
        let operator = SigningKey::from_ed25519_seed(&[7; 32]).unwrap();
        let index = SigningKey::from_ed25519_seed(&[8; 32]).unwrap();
        let log = Identity {
            iss: "https://bench.example/log",
            origin: "bench.example/log",
            operator: operator.public_key(),
            index: index.public_key(),
        };
        admit_issuer(&for_init(log)).unwrap()
    }

    #[test]
    fn statements_are_unique_valid_and_about_as_long_as_requested() {
        let statements = Statements::sign(OPAQUE, 0..50, 1024, "/entries").unwrap();
        let mut digests: Vec<_> = statements
            .bodies()
            .map(|body| {
                let statement = SignedStatement::parse(body.to_vec()).unwrap();
                statement.verify_with(Issuer::new().unwrap().public_key(), None).unwrap();
                statement.digest()
            })
            .collect();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 50);
        assert!(statements.length().abs_diff(1024) <= 16, "{}", statements.length());
    }

    #[test]
    fn a_new_log_admits_statements_of_every_content_type() {
        let in_force = PolicyInForce::new(Policy::from_toml(&policy()).unwrap(), LeafIndex::new(0));
        for content_type in content_types() {
            for statement in sign_all(content_type, 1_000_000..1_000_002, 1024).unwrap() {
                let authenticated = in_force.authenticate(&statement, SideData::default()).unwrap();
                let record =
                    Record::read(&authenticated).unwrap_or_else(|why| panic!("{content_type}: {why}"));
                let decision = in_force.decide(&authenticated, &record, &Answers::none());
                decision.into_permit().unwrap_or_else(|why| panic!("{content_type}: {why}"));
            }
        }
    }

    #[test]
    fn every_content_type_of_a_new_log_can_be_measured() {
        let policy: toml::Table = policy().parse().unwrap();
        let types = policy["type"].as_array().unwrap();
        let admitted: BTreeSet<&str> =
            types.iter().map(|rule| rule["content_type"].as_str().unwrap()).collect();
        assert_eq!(content_types().collect::<BTreeSet<_>>(), admitted);
    }
}
