//! `tabellion vrf fetch`: fetches a receipt's statement and log receipt by `receipt_id`, and verifies them offline.
//!
//! A `receipt_id` is unique for its issuer only, so that receipts of several issuers may have it. Then the issuer must
//! be named: the first one to use an identifier has no better claim to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use merkle::EntryDigest;
use scitt::transparent;
use serde_json::Value as Json;
use uuid::Uuid;
use verifier::{StatementEvidence, TrustStore};
use vrf_evidence::{EvidenceFault, VrfEvidence, VrfVerifier};

use super::evidence_summary::EvidenceSummary;
use crate::commands::verify::now;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::{Service, ServiceArgs, percent_encoded, served_list};
use crate::trust_file::TrustFile;
use crate::verification::exit;

#[derive(Debug, Args)]
pub struct Fetch {
    /// The receipt's identifier (a UUID)
    receipt_id: Uuid,
    /// The verifier, if several have used the identifier
    #[arg(long, value_name = "DID")]
    issuer: Option<String>,
    /// The receipt of a redacted statement
    #[arg(long, value_name = "FILE")]
    disclosed: Option<PathBuf>,
    /// Write the statement and the log receipt
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The trust file [default: ./trust.toml, then ./tabellion-dev/trust.toml]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Fetch {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let trust = TrustFile::find(context, self.trust.as_deref())?.store;
        let disclosed = self.disclosed.as_deref().map(files::read).transpose()?;
        let service = self.service.connect(context)?;
        let fetched = Fetched::from(&service, &self.entry(&service)?, &trust)?;
        let evidence = StatementEvidence {
            statement: &fetched.statement,
            receipts: &[&fetched.receipt],
            payload: disclosed.as_deref(),
        };
        let evidence = VrfVerifier::new(&trust).verify(&evidence, now()).map_err(|fault| broken(&fault))?;
        self.check_is_requested(&evidence)?;
        context.console.result(&EvidenceSummary::of(&evidence))?;
        match (exit(evidence.outcome), &self.output) {
            (Exit::Success, Some(folder)) => fetched.write(context, folder, &evidence.receipt_id),
            (Exit::Success, None) => Ok(()),
            (exit, _) => Err(Failure::already_printed(exit)),
        }
    }

    /// Refuses another receipt than the requested one, and another issuer's.
    fn check_is_requested(&self, evidence: &VrfEvidence) -> Result<(), Failure> {
        let requested = self.receipt_id.to_string();
        let is_of_issuer = self.issuer.as_ref().is_none_or(|issuer| *issuer == evidence.issuer);
        match evidence.receipt_id == requested && is_of_issuer {
            true => Ok(()),
            false => {
                let fault = "the service answered with another receipt than the requested one";
                Err(Failure::new(Exit::VerificationFailed, "nonsense", fault)
                    .fact("receipt", &evidence.receipt_id)
                    .fact("issuer", &evidence.issuer))
            }
        }
    }

    /// Returns the entry of the receipt with this identifier, by the named issuer or the only one.
    fn entry(&self, service: &Service) -> Result<EntryDigest, Failure> {
        let mut by_issuer = BTreeMap::new();
        let issuer = self.issuer.as_ref().map(|iss| format!("&issuer={}", percent_encoded(iss)));
        let first = format!("v1/entries?receipt_id={}{}", self.receipt_id, issuer.unwrap_or_default());
        service.pages(first, |page: Json| {
            let text = |entry: &Json, name: &str| entry.get(name)?.as_str().map(str::to_owned);
            let named = served_list(&page, "entries")?
                .iter()
                .filter_map(|entry| Some((text(entry, "iss")?, text(entry, "entry_id")?)));
            by_issuer.extend(named);
            Ok(())
        })?;
        let mut entries = by_issuer.values();
        match (entries.next(), entries.next()) {
            (None, _) => Err(self.not_found()),
            (Some(entry), None) => EntryDigest::from_str(entry)
                .map_err(|error| Failure::new(Exit::Failure, "nonsense", error.to_string())),
            (Some(_), Some(_)) => Err(self.ambiguous(&by_issuer)),
        }
    }

    fn not_found(&self) -> Failure {
        let by = self.issuer.as_ref().map(|issuer| format!(" by {issuer}")).unwrap_or_default();
        Failure::new(Exit::NotFound, "not-found", format!("the log holds no receipt {}{by}", self.receipt_id))
    }

    fn ambiguous(&self, by_issuer: &BTreeMap<String, String>) -> Failure {
        let what = format!("{} issuers have a receipt {}", by_issuer.len(), self.receipt_id);
        let failure = Failure::new(Exit::Usage, "receipt-ambiguous", what)
            .why("an identifier is unique for its issuer only, and anyone may use it")
            .hint(format!("tabellion vrf fetch {} --issuer DID", self.receipt_id));
        by_issuer.iter().fold(failure, |failure, (issuer, entry)| failure.fact(issuer, entry))
    }
}

/// A statement and its log receipt, as the log serves them.
struct Fetched {
    statement: Vec<u8>,
    receipt: Vec<u8>,
}

impl Fetched {
    fn from(service: &Service, entry: &EntryDigest, trust: &TrustStore) -> Result<Self, Failure> {
        let statement = service.block_on(service.client.statement(entry))?;
        let receipt = service.block_on(service.client.dated_receipt(&statement, trust, now()))?;
        Ok(Self { statement: statement.bytes().to_vec(), receipt: receipt.to_vec() })
    }

    fn write(&self, context: &Context, folder: &Path, name: &str) -> Result<(), Failure> {
        let transparent = transparent::attach(&self.statement, &[&self.receipt])
            .map_err(|error| Failure::new(Exit::Failure, "malformed", error.to_string()))?;
        let parts: [(&str, &[u8]); 3] =
            [("cose", &self.statement), ("receipt", &self.receipt), ("transparent.cose", &transparent)];
        for (ending, bytes) in parts {
            let file = folder.join(format!("{name}.{ending}"));
            files::write(&file, bytes, Access::Ordinary, Existing::Replace)?;
            context.console.note(format!("wrote      {}", file.display()));
        }
        Ok(())
    }
}

/// The failure for an entry that is not a VRF statement, or breaks a rule of the format.
fn broken(fault: &EvidenceFault) -> Failure {
    Failure::new(Exit::VerificationFailed, &*fault.code, "this is not a conforming VRF statement")
        .fact("found", &*fault.detail)
}
