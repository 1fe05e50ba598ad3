//! `tabellion entry erase`: erases the bytes of entries with a statement of the log's operator.
//!
//! The statement, which names the entries, the reason and the person who decided, is registered first; then the log
//! erases. Positions, digests and proofs remain. Entries that an erasure names already are not named again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use client::ClientError;
use merkle::EntryDigest;
use registration::erasure::{self, NewErasure, REQUEST};
use registration::limits::MAX_ERASED;
use registration::{ERASURE_CONTENT_TYPE, Policy};
use scitt::SigningKey;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::commands::operator::{self, Proposals, Signer, Signing};
use crate::commands::receipt::entry_named;
use crate::commands::verify::now;
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::{Service, ServiceArgs, nonsense};

/// Number of attempts, if another operator registers the erasure's number first.
const TRIES: usize = 5;
/// Interval of the checks in [`Erase::wait`].
const POLL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(mut_arg("timeout", |timeout| timeout.hide(true)))]
pub struct Erase {
    /// Entry IDs, or files that hold the statements
    #[arg(required = true)]
    entries: Vec<String>,
    /// The reason as text, permanently on the log
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The reason as a code
    #[arg(long, value_name = "WORD", default_value = REQUEST)]
    rule: String,
    /// The decision's author, permanently on the log
    #[arg(long, value_name = "TEXT")]
    authorized_by: Option<String>,
    #[command(flatten)]
    signing: Signing,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Erase {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let signer = self.signing.signer()?;
        let requested: BTreeSet<String> = self
            .entries
            .iter()
            .map(|entry| Ok(entry_named(entry)?.to_string()))
            .collect::<Result<_, Failure>>()?;
        let entries: Vec<EntryDigest> = requested.iter().filter_map(|entry| entry.parse().ok()).collect();
        let service = self.service.connect(context)?;
        let (entries, earlier) = without_erased(&service, entries)?;
        let mut done = match (entries.is_empty(), signer) {
            (true, _) => Vec::new(),
            (false, Signer::Key(key)) => self.erase(&service, &key, &entries)?,
            (false, Signer::Write(proposals)) => return self.write(context, &service, &proposals, &entries),
        };
        for (sequence, entry) in &earlier {
            done.push(self.wait(&service, *sequence, entry)?);
        }
        let is_erased = |entry: &String| done.iter().any(|erasure| erasure.erased.contains(entry));
        let left = !requested.iter().all(is_erased);
        context.console.print(&done, |out| done.iter().try_for_each(|erasure| lines(out, erasure)))?;
        match left {
            false => Ok(()),
            true => Err(Failure::new(Exit::TryAgain, "not-erased-yet", "some bytes are still there")
                .why("because of a hold, or because the service was too slow: it continues automatically")),
        }
    }

    /// Registers erasures of the entries, and waits for each.
    fn erase(
        &self,
        service: &Service,
        key: &SigningKey,
        entries: &[EntryDigest],
    ) -> Result<Vec<Erasure>, Failure> {
        let policy = operator::policy_of(service)?;
        let mut done = Vec::new();
        for some in entries.chunks(MAX_ERASED) {
            let (sequence, entry) = self.register(service, &policy, key, some)?;
            done.push(self.wait(service, sequence, &entry)?);
        }
        Ok(done)
    }

    /// Writes the erasure with the next number to a file for approval.
    fn write(
        &self,
        context: &Context,
        service: &Service,
        proposals: &Proposals,
        entries: &[EntryDigest],
    ) -> Result<(), Failure> {
        if entries.len() > MAX_ERASED {
            return Err(Failure::new(
                Exit::Usage,
                "usage",
                format!("one erasure names at most {MAX_ERASED} entries"),
            ));
        }
        let sequence = next_sequence(service)?;
        proposals.write(context, ERASURE_CONTENT_TYPE, self.erasure(sequence, entries).payload())
    }

    /// Registers an erasure with the next number; repeats if another operator uses that number first.
    fn register(
        &self,
        service: &Service,
        policy: &Policy,
        key: &SigningKey,
        entries: &[EntryDigest],
    ) -> Result<(u64, EntryDigest), Failure> {
        let mut last_problem = None;
        for _ in 0..TRIES {
            let sequence = next_sequence(service)?;
            let payload = self.erasure(sequence, entries).payload();
            let statement = operator::sign(policy, ERASURE_CONTENT_TYPE, payload, None, key)?;
            match service.drive(service.client.submit(statement.bytes())) {
                Ok(_) => return Ok((sequence, statement.digest())),
                Err(ClientError::Refused { problem, .. })
                    if problem.get_rule() == Some(erasure::ErasureRule::SequenceUnique.name()) =>
                {
                    last_problem = Some(problem.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::new(Exit::TryAgain, "try-again", last_problem.unwrap_or_default()))
    }

    fn erasure(&self, sequence: u64, entries: &[EntryDigest]) -> NewErasure {
        NewErasure {
            sequence,
            entries: entries.to_vec(),
            reason: self.reason.clone(),
            rule: self.rule.clone(),
            at: i64::try_from(now())
                .ok()
                .and_then(|now| jiff::Timestamp::from_second(now).ok())
                .map(|now| now.to_string()),
            authorized_by: self.authorized_by.clone(),
        }
    }

    /// Waits until no entries are pending, for at most `--timeout`.
    fn wait(&self, service: &Service, sequence: u64, entry: &EntryDigest) -> Result<Erasure, Failure> {
        let until = Instant::now() + Duration::from_secs(self.service.timeout);
        loop {
            let found = service.block_on(service.client.json::<Erasure>(&format!("v1/erasures/{sequence}")));
            match found {
                Ok(found) if found.entry_id != entry.to_string() => {
                    return Err(Failure::new(
                        Exit::Failure,
                        "nonsense",
                        "the log numbers another erasure so",
                    )
                    .fact("erasure", sequence.to_string()));
                }
                Ok(found) if found.pending.is_empty() || Instant::now() > until => return Ok(found),
                Err(error) if Instant::now() > until => return Err(error),
                Ok(_) | Err(_) => std::thread::sleep(POLL),
            }
        }
    }
}

/// Removes the entries that an erasure names already, and returns the others and those erasures by number. A second
/// erasure would erase nothing, and stay on the log.
fn without_erased(
    service: &Service,
    entries: Vec<EntryDigest>,
) -> Result<(Vec<EntryDigest>, BTreeMap<u64, EntryDigest>), Failure> {
    let (mut others, mut erasures) = (Vec::new(), BTreeSet::new());
    for entry in entries {
        match erasure_of(service, &entry)? {
            Some(erasure) => {
                erasures.insert(erasure);
            }
            None => others.push(entry),
        }
    }
    let numbered = |erasure: EntryDigest| Ok((sequence_of(service, &erasure)?, erasure));
    let earlier = erasures.into_iter().map(numbered).collect::<Result<_, Failure>>()?;
    Ok((others, earlier))
}

/// Returns the first erasure that names the entry. `None` also for an unknown entry, and for a caller who may not read
/// links: the log itself decides about their erasure.
fn erasure_of(service: &Service, entry: &EntryDigest) -> Result<Option<EntryDigest>, Failure> {
    let path = format!("v1/entries/{entry}/links");
    let links: Json = match service.drive(service.client.json(&path)) {
        Ok(links) => links,
        Err(ClientError::NotFound(_)) => return Ok(None),
        Err(ClientError::Refused { status, .. }) if [401, 403].contains(&status.as_u16()) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut links = links["links"].as_array().into_iter().flatten();
    let erasure = links.find(|link| link["by"] == "erased_by");
    Ok(erasure.and_then(|link| link["entries"][0]["entry_id"].as_str()?.parse::<EntryDigest>().ok()))
}

fn sequence_of(service: &Service, erasure: &EntryDigest) -> Result<u64, Failure> {
    let statement = service.block_on(service.client.statement(erasure))?;
    let read = erasure::Erasure::from_payload(statement.payload().unwrap_or_default());
    Ok(read.map_err(nonsense)?.sequence)
}

fn next_sequence(service: &Service) -> Result<u64, Failure> {
    Ok(service.block_on(service.client.json::<ErasureAnnouncement>("v1/erasures?limit=1"))?.next_sequence)
}

#[derive(Deserialize)]
struct ErasureAnnouncement {
    next_sequence: u64,
}

/// The state of an erasure, as the service reports it.
#[derive(Deserialize, Serialize)]
struct Erasure {
    sequence: u64,
    entry_id: String,
    erased: Vec<String>,
    held: Vec<String>,
    pending: Vec<String>,
}

fn lines(out: &mut dyn Write, erasure: &Erasure) -> io::Result<()> {
    writeln!(out, "erasure {} is entry {}", erasure.sequence, erasure.entry_id)?;
    let states = [("erased", &erasure.erased), ("held", &erasure.held), ("pending", &erasure.pending)];
    let mut entries =
        states.iter().flat_map(|(state, entries)| entries.iter().map(move |entry| (state, entry)));
    entries.try_for_each(|(state, entry)| writeln!(out, "{state:8} {entry}"))
}
