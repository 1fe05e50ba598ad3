//! The evidence store and the log's client, from the configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Client, Options};
use data_encoding::HEXLOWER;
use evidence::{EvidenceStore, MeasuredEvidence, StoreError, StoredRecord, StoredStream};
use evidence_postgres::Postgres;
use evidence_sqlite::Sqlite;
use serving::database_metrics::{DatabaseMetrics, DatabaseSystem};
use verifier::TrustStore;

use crate::config::{Config, Evidence};
use crate::decision_writer::{LogConnection, OutboxLimits, WriterKeys, WriterSettings};
use crate::keys::{GatewayKeyError, Keys};
use crate::limits::{LOG_PATIENCE, MAX_SMALL_FILE_BYTES};
use crate::start_error::StartError;

/// Opens the store with a fresh random instance name. Its operations are part of the metrics.
pub async fn open(config: &Config, metrics: &DatabaseMetrics) -> Result<Arc<dyn EvidenceStore>, StartError> {
    let instance = instance()?;
    let (store, system): (Arc<dyn EvidenceStore>, _) = match &config.evidence {
        Evidence::Sqlite(path) => {
            let store = Sqlite::open(evidence_sqlite::Settings::new(path, instance)).await?;
            (Arc::new(store), DatabaseSystem::Sqlite)
        }
        Evidence::Postgres(url) => (Arc::new(postgres(url, &instance).await?), DatabaseSystem::PostgreSql),
    };
    Ok(Arc::new(MeasuredEvidence::new(store, metrics.observer(system))))
}

/// Read-only access to the evidence, also while gateways use it.
pub enum EvidenceReader {
    /// A SQLite file.
    Sqlite(evidence_sqlite::SqliteReader),
    /// A PostgreSQL database.
    Postgres(evidence_postgres::PostgresReader),
}

impl EvidenceReader {
    /// Opens the store that the configuration names.
    pub async fn at(config: &Config) -> Result<Self, StoreError> {
        Ok(match &config.evidence {
            Evidence::Sqlite(path) => Self::Sqlite(evidence_sqlite::SqliteReader::at(path).await?),
            Evidence::Postgres(url) => {
                let options = evidence_postgres::Options::from_url(url)?;
                Self::Postgres(evidence_postgres::PostgresReader::at(&options).await?)
            }
        })
    }

    /// The records of a stream from this sequence number on, in order.
    pub async fn records(
        &self,
        stream: &str,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        match self {
            Self::Sqlite(look) => look.records(stream, from, limit).await,
            Self::Postgres(look) => look.records(stream, from, limit).await,
        }
    }

    /// The states of these streams, in the same order.
    pub async fn streams(&self, names: &[&str]) -> Result<Vec<Option<StoredStream>>, StoreError> {
        match self {
            Self::Sqlite(look) => look.streams(names).await,
            Self::Postgres(look) => look.streams(names).await,
        }
    }

    /// Closes the connection.
    pub async fn close(self) {
        match self {
            Self::Sqlite(look) => look.close().await,
            Self::Postgres(look) => look.close().await,
        }
    }
}

/// Access of a command to the evidence, also while gateways use it.
pub async fn operator_access(config: &Config) -> Result<Box<dyn evidence::StreamEditor>, StoreError> {
    Ok(match &config.evidence {
        Evidence::Sqlite(path) => Box::new(evidence_sqlite::SqliteStreamEditor::at(path).await?),
        Evidence::Postgres(url) => {
            let options = evidence_postgres::Options::from_url(url)?;
            Box::new(evidence_postgres::PostgresStreamEditor::at(&options).await?)
        }
    })
}

async fn postgres(url: &str, instance: &str) -> Result<Postgres, StoreError> {
    let options = evidence_postgres::Options::from_url(url)?;
    Postgres::migrate(&options).await?;
    Postgres::connect(&options, instance).await
}

fn instance() -> Result<String, GatewayKeyError> {
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(|_| GatewayKeyError::Random)?;
    Ok(HEXLOWER.encode(&name))
}

/// The client of the log, with the trust store for its receipts.
pub fn log(config: &Config) -> Result<LogConnection, StartError> {
    let trust = config.log.trust.as_deref().map(trust).transpose()?;
    Ok(LogConnection { url: config.log.url.clone(), client: log_client(config, LOG_PATIENCE)?, trust })
}

/// A client of the log that retries for at most `patience`.
pub fn log_client(config: &Config, patience: Duration) -> Result<Client, StartError> {
    let log = &config.log;
    let extra_roots = log.ca_file.as_deref().map(read).transpose()?.map(Bytes::from);
    let token = log.token_file.as_deref().map(secret).transpose()?;
    Client::new(&log.url, Options { patience, extra_roots, token, ..Options::default() })
        .map_err(|error| StartError::Log(error.to_string()))
}

fn trust(path: &Path) -> Result<TrustStore, StartError> {
    let text = text(path)?;
    TrustStore::from_toml(&text).map_err(|error| file(path, error.to_string()))
}

/// The keys in the form that the decision writer takes.
pub fn writer_keys(keys: &Keys) -> Result<WriterKeys, StartError> {
    let jwk_set = jose::json::read_bytes(keys.jwks()).map_err(|error| StartError::Log(error.to_string()))?;
    Ok(WriterKeys { evidence: keys.evidence.clone(), verdict: keys.verdict.clone(), jwk_set })
}

/// The settings of the decision writer.
pub fn settings(config: &Config) -> WriterSettings {
    WriterSettings {
        outbox: OutboxLimits {
            records: config.outbox.records,
            bytes: config.outbox.bytes,
            age: config.outbox.age,
        },
        receipt_required: config.log.receipt_required,
        receipt_wait: config.log.receipt_wait,
        session_idle: config.session_idle,
        keep: config.evidence_keep,
        shared: matches!(config.evidence, Evidence::Postgres(_)),
        ..WriterSettings::of(&config.issuer)
    }
}

/// The secret in a file: its first line.
pub fn secret(path: &Path) -> Result<String, StartError> {
    Ok(text(path)?.lines().next().unwrap_or_default().trim().to_owned())
}

fn text(path: &Path) -> Result<String, StartError> {
    String::from_utf8(read(path)?).map_err(|_| file(path, "not text".to_owned()))
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    let bytes = durable::read(path, MAX_SMALL_FILE_BYTES).map_err(|error| file(path, error.to_string()))?;
    bytes.ok_or_else(|| file(path, "is not there".to_owned()))
}

fn file(path: &Path, why: String) -> StartError {
    StartError::File { path: path.to_owned(), why }
}
