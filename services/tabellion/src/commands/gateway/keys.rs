//! `tabellion gateway keys`: creates the gateway's keys before its first start, and prints the entries for the log's
//! policy.

use clap::Args;
use gateway::config::{AgentRoaConfig, ReceiptForm};
use gateway::keys::{self, GatewayKeyError};
use registration::agentroa::AGENTROA_CHAIN;
use registration::jwk_set::JWK_SET;
use roa::aer::AER_JSON;
use scitt::Signer;
use vap::audit::VAP_AUDIT;

use super::config_file;
use super::toml_text::quoted;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway keys --config gateway.toml")]
pub struct Keys {}

impl Keys {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config_file::read_or_dev(context)?;
        let made = keys::missing_paths(&config).map_err(unusable)?;
        let keys = keys::Keys::open(&config).map_err(unusable)?;
        let key = keys.evidence.public_key();
        let receipts =
            config.agentroa.as_ref().map(|agentroa| receipts(&config.issuer, agentroa, &key.did_key()));
        let policy = binding(&config.issuer, &key.did_key()) + &receipts.unwrap_or_default();
        let json = members! {
            issuer: &config.issuer,
            evidence_key: key.did_key(),
            evidence_kid: data_encoding::BASE64URL_NOPAD.encode(&key.thumbprint()),
            verdict_kid: keys.verdict_kid(),
            made,
            policy,
        };
        context.console.print(&json, |out| {
            for path in &made {
                writeln!(out, "# made {}", safe(&path.display().to_string()))?;
            }
            writeln!(
                out,
                "# For the log's policy.toml: the keys of this gateway, and the statements that it sends."
            )?;
            // The TOML consists of an ASCII issuer in quotes and a key, so `safe` is not needed.
            write!(out, "{policy}")
        })
    }
}

/// The failure for keys that cannot be read or made.
pub fn unusable(error: GatewayKeyError) -> Failure {
    Failure::new(Exit::Failure, "key-unusable", "the keys cannot be used").fact("because", error.to_string())
}

/// Returns the policy entries with which the log admits this gateway's execution receipts and the chains that they name
/// (AgentROA).
fn receipts(issuer: &str, agentroa: &AgentRoaConfig, key: &str) -> String {
    let entries = [issuer, &agentroa.gateway_id, key, &agentroa.signer].map(quoted);
    let [issuer, id, key, signer] = entries;
    let by_hash = match agentroa.receipts {
        ReceiptForm::Plain => "",
        ReceiptForm::Hash => "hash_envelope = true\n",
    };
    let chains = match agentroa.register_chains {
        true => format!("\n[[type]]\ncontent_type = {}\nissuers = [{issuer}]\n", quoted(AGENTROA_CHAIN)),
        false => String::new(),
    };
    format!(
        "\n[[type]]\n\
         content_type = {}\n\
         issuers = [{issuer}]\n\
         {by_hash}\n\
         [[type.aer.gateway]]\n\
         iss = {issuer}\n\
         id = {id}\n\
         keys = [{{ key = {key}, signer = {signer} }}]\n\
         {chains}",
        quoted(AER_JSON)
    )
}

/// Returns the policy entries with which the log admits this gateway.
fn binding(issuer: &str, key: &str) -> String {
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
