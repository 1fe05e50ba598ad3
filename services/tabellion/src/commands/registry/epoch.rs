//! `tabellion registry epoch`: the first version of a registry's next epoch.
//!
//! Within an epoch every version has the revocations of the one before it; only a new epoch may leave some out.
//! Deltas of earlier epochs may stay in their list: gateways skip them.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use roa::registry::{RegistryDocument, RevokedSubject};
use roa::text::UtcTime;

use super::RegistryEdit;
use crate::console::{Exit, Failure};
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Epoch {
    /// The registry; the first version of its next epoch replaces it
    file: PathBuf,
    /// The operator's key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Leave out revocations before this time; their objects must have expired
    #[arg(long, value_name = "TIME")]
    drop_before: Option<Timestamp>,
}

impl Epoch {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let before = self.drop_before.map(past).transpose()?;
        let mut edit = RegistryEdit::open(&self.file, &self.key)?;
        if let Some(before) = before {
            drop_revocations(&mut edit.document, &before);
        }
        begin_epoch(&mut edit.document);
        edit.write(context)
    }
}

/// Refuses a time in the future, at which nothing has expired yet.
fn past(time: Timestamp) -> Result<UtcTime, Failure> {
    if time > Timestamp::now() {
        let what = format!("--drop-before: {time} is in the future");
        return Err(Failure::new(Exit::Usage, "usage", what)
            .why("revocations stay until everything that they revoke has expired"));
    }
    Ok(UtcTime(time))
}

/// Removes the revocations before a time, except those of keys that the registry lists: such a key would be accepted
/// again.
fn drop_revocations(document: &mut RegistryDocument, before: &UtcTime) {
    let listed: HashSet<String> = document.keys.iter().map(|key| key.public_key.0.jwk_thumbprint()).collect();
    document.revocations.retain(|revocation| match &revocation.subject {
        RevokedSubject::Key(thumbprint) if listed.contains(thumbprint.as_str()) => true,
        _ => revocation.revoked_at >= *before,
    });
}

/// Makes the document version 0 of the next epoch, which has all its revocations from the beginning.
fn begin_epoch(document: &mut RegistryDocument) {
    document.epoch += 1;
    document.sequence = 0;
    for revocation in &mut document.revocations {
        revocation.sequence = 0;
    }
}
