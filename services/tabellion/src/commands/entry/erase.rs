//! `tabellion entry erase`: takes the bytes of entries out of a log, by a statement of its operator.
//!
//! The statement is registered first and says which entries, why and by whose word; the log then erases. Places, digests and
//! proofs stay.

use std::collections::BTreeSet;
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

use crate::cli::Context;
use crate::commands::operator::{self, Proposals, Signer, Signing};
use crate::commands::receipt::entry_named;
use crate::commands::verify::now;
use crate::console::{Exit, Failure, Report};
use crate::service::{Service, ServiceArgs};

/// How often somebody else may take the number of our erasure.
const TRIES: usize = 5;
/// How often we look whether the bytes are gone.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(mut_arg("timeout", |timeout| timeout.hide(true)))]
pub struct Erase {
    /// Entry IDs, or files that hold the statements
    #[arg(required = true)]
    entries: Vec<String>,
    /// Why, in words; it stands on the log for ever
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Why, as a code
    #[arg(long, value_name = "WORD", default_value = REQUEST)]
    rule: String,
    /// Who decided; it stands on the log for ever
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
        let entries: BTreeSet<String> = self
            .entries
            .iter()
            .map(|entry| Ok(entry_named(entry)?.to_string()))
            .collect::<Result<_, Failure>>()?;
        let entries: Vec<EntryDigest> = entries.iter().filter_map(|entry| entry.parse().ok()).collect();
        let service = self.service.connect(context)?;
        let key = match signer {
            Signer::Key(key) => key,
            Signer::Write(proposals) => return self.write(context, &service, &proposals, &entries),
        };
        let policy = operator::policy_of(&service)?;
        let mut done = Vec::new();
        for some in entries.chunks(MAX_ERASED) {
            let (sequence, entry) = self.register(&service, &policy, &key, some)?;
            done.push(self.wait(&service, sequence, &entry)?);
        }
        let left = done.iter().any(|erasure| !erasure.held.is_empty() || !erasure.pending.is_empty());
        context.console.result(&Done(done))?;
        match left {
            false => Ok(()),
            true => Err(Failure::new(Exit::TryAgain, "not-erased-yet", "some bytes are still there")
                .why("a hold keeps them, or the service was too slow: it goes on by itself")),
        }
    }

    /// Writes the erasure that is to be approved, with the number that is next now.
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

    /// Signs with the next number until nobody else has it.
    fn register(
        &self,
        service: &Service,
        policy: &Policy,
        key: &SigningKey,
        entries: &[EntryDigest],
    ) -> Result<(u64, EntryDigest), Failure> {
        let mut told = None;
        for _ in 0..TRIES {
            let sequence = next_sequence(service)?;
            let payload = self.erasure(sequence, entries).payload();
            let statement = operator::sign(policy, ERASURE_CONTENT_TYPE, payload, None, key)?;
            match service.drive(service.client.submit(statement.bytes())) {
                Ok(_) => return Ok((sequence, statement.digest())),
                Err(ClientError::Refused { problem, .. })
                    if problem.get_rule() == Some(erasure::ErasureRule::SequenceUnique.name()) =>
                {
                    told = Some(problem.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::new(Exit::TryAgain, "try-again", told.unwrap_or_default()))
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

    /// Looks until nothing is left that is only a matter of time.
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
                Ok(_) | Err(_) => std::thread::sleep(LOOK),
            }
        }
    }
}

fn next_sequence(service: &Service) -> Result<u64, Failure> {
    Ok(service.block_on(service.client.json::<Next>("v1/erasures?limit=1"))?.next_sequence)
}

#[derive(Deserialize)]
struct Next {
    next_sequence: u64,
}

/// How far an erasure is, in the service's words.
#[derive(Deserialize, Serialize)]
struct Erasure {
    sequence: u64,
    entry_id: String,
    erased: Vec<String>,
    held: Vec<String>,
    pending: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Done(Vec<Erasure>);

impl Report for Done {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for erasure in &self.0 {
            writeln!(out, "erasure {} is entry {}", erasure.sequence, erasure.entry_id)?;
            for (word, entries) in
                [("erased", &erasure.erased), ("held", &erasure.held), ("pending", &erasure.pending)]
            {
                for entry in entries {
                    writeln!(out, "{word:8} {entry}")?;
                }
            }
        }
        Ok(())
    }
}
