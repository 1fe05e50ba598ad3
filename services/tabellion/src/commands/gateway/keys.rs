//! `tabellion gateway keys`: creates the gateway's keys before its first start, and prints the entries for the log's
//! policy.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use gateway::keys;
use registration::jwk_set::JWK_SET;
use registration::vap::VAP_AUDIT;
use scitt::Signer;
use serde::Serialize;

use super::config_file;
use crate::cli::Context;
use crate::console::{Exit, Failure, Report, safe};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway keys --config gateway.toml")]
pub struct Keys {}

impl Keys {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config_file::read_or_dev(context)?;
        let unusable = |error: keys::KeyError| {
            Failure::new(Exit::Failure, "key-unusable", "the keys cannot be used")
                .fact("because", error.to_string())
        };
        let made = keys::look(&config).map_err(unusable)?;
        let keys = keys::Keys::open(&config).map_err(unusable)?;
        let key = keys.evidence.public_key();
        context.console.result(&Told {
            policy: binding(&config.issuer, &key.did_key()),
            issuer: config.issuer,
            evidence_key: key.did_key(),
            evidence_kid: data_encoding::BASE64URL_NOPAD.encode(&key.thumbprint()),
            verdict_kid: keys.verdict_kid(),
            made,
        })
    }
}

/// Returns the policy entries with which the log admits this gateway.
fn binding(issuer: &str, key: &str) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let (issuer, key) = (quoted(issuer), quoted(key));
    format!(
        "[[issuer]]\n\
         iss = {issuer}\n\
         keys = [{key}]\n\n\
         # Where the policy has these types already, add the name to their `issuers` instead.\n\
         [[type]]\n\
         content_type = {}\n\
         issuers = [{issuer}]\n\n\
         [type.vap_audit]\n\
         require_decision = false\n\n\
         [[type]]\n\
         content_type = {}\n\
         issuers = [{issuer}]\n",
        quoted(VAP_AUDIT),
        quoted(JWK_SET)
    )
}

#[derive(Serialize)]
struct Told {
    issuer: String,
    evidence_key: String,
    evidence_kid: String,
    verdict_kid: String,
    made: Vec<PathBuf>,
    /// Entries for the log's policy in TOML.
    policy: String,
}

impl Report for Told {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for path in &self.made {
            writeln!(out, "# made {}", safe(&path.display().to_string()))?;
        }
        writeln!(out, "# For the log's policy.toml: who this gateway is, and what it sends.")?;
        // The TOML consists of an ASCII issuer in quotes and a key, so `safe` is not needed.
        write!(out, "{}", self.policy)
    }
}
