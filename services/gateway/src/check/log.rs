//! Checks that the log would accept the gateway's statements, with a sample of each kind for `POST
//! /v1/policy/evaluate`.

use std::time::Duration;

use bytes::Bytes;
use client::{Client, ClientError};
use jiff::Timestamp;
use jose::jcs;
use registration::jwk_set::JWK_SET;
use scitt::{Signer, SigningKey, StatementBuilder};
use serde_json::{Value, json};
use vap::audit::VAP_AUDIT;

use super::{CheckFinding, CheckOutcome};
use crate::config::Config;
use crate::evidence_store::log_client;
use crate::keys;

/// The stream of the sample record, which is never registered.
const SAMPLE_STREAM: &str = "tabellion-gateway-check";

/// Maximum time for the log to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks the log with a sample of each kind of statement.
pub async fn check(config: &Config) -> Vec<CheckFinding> {
    let client = match log_client(config, PATIENCE) {
        Ok(client) => client,
        Err(error) => return vec![CheckFinding::new("log", CheckOutcome::Failed, error.to_string())],
    };
    let key = match keys::evidence(config) {
        Ok(Some(key)) => key,
        Ok(None) => {
            let detail = "there is no evidence key yet: `tabellion gateway keys` makes it, and prints the lines for the log's policy";
            return vec![CheckFinding::new("log", CheckOutcome::NotChecked, detail)];
        }
        Err(error) => return vec![CheckFinding::new("log", CheckOutcome::Failed, error.to_string())],
    };
    let mut findings = Vec::new();
    findings.extend(
        sample(&client, &key, config, ("audit records", VAP_AUDIT, SAMPLE_STREAM, &record(config))).await,
    );
    if let Some(Ok(keys)) = keys::published(&config.state).ok().map(|set| jose::json::read_bytes(&set)) {
        findings.extend(sample(&client, &key, config, ("key sets", JWK_SET, &config.issuer, &keys)).await);
    }
    findings
}

async fn sample(
    client: &Client,
    key: &SigningKey,
    config: &Config,
    (name, content_type, sub, payload): (&str, &'static str, &str, &Value),
) -> Option<CheckFinding> {
    let what = format!("log takes {name}");
    let statement = StatementBuilder::new(jcs::canonical(payload))
        .content_type(content_type)
        .kid(key.public_key().thumbprint())
        .iss(&config.issuer)
        .sub(sub)
        .sign(key);
    let statement = match statement {
        Ok(statement) => statement,
        Err(error) => return Some(CheckFinding::new(what, CheckOutcome::Failed, error.to_string())),
    };
    Some(match client.evaluate(&Bytes::copy_from_slice(statement.bytes())).await {
        Ok(answer) if answer.would_admit => {
            CheckFinding::new(what, CheckOutcome::Ok, answer.rule.unwrap_or_default())
        }
        Ok(answer) => {
            let why = answer.violation.map_or("it gives no reason".to_owned(), |violation| {
                format!("{} ({}): {}", violation.rule, violation.place, violation.detail)
            });
            let name = key.public_key().did_key();
            let detail = format!(
                "refused by {why}; the policy must list {} with {name} (tabellion gateway keys)",
                config.issuer
            );
            CheckFinding::new(what, CheckOutcome::Failed, detail)
        }
        Err(error @ (ClientError::NotFound(_) | ClientError::Refused { .. })) => {
            CheckFinding::new(what, CheckOutcome::Failed, error.to_string())
        }
        Err(error) => CheckFinding::new(what, CheckOutcome::NotChecked, error.to_string()),
    })
}

/// The smallest valid record: the end of a stream.
fn record(config: &Config) -> Value {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
    json!({
        "version": "1",
        "kind": "closed",
        "gateway": config.issuer,
        "stream": SAMPLE_STREAM,
        "seq": 0,
        "at": now.to_string(),
    })
}
