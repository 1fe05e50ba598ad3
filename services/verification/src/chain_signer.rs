//! The signer of receipts, one writer for each chain.
//!
//! A receipt's position and predecessor come from the database. The transaction that stores the signed statement also
//! moves the chain, so a crash leaves either both or neither, and only stored statements are sent or answered. A chain
//! that the database does not know is looked up in the log before its first signature.

use std::sync::Arc;

use client::Client;
use durable::crash;
use registration::vrf::{BuildVrfError, VrfStatement};
use scitt::{SignedStatement, Signer, SigningKey};
use serde_json::Value;
use tokio::sync::{Mutex, Notify};
use verification_store::{ChainEnd, NewReceipt, StoreError, VerificationStore};

use crate::chain_recovery::{self, RecoveryError};
use crate::time::now;

/// Visited when a receipt is signed and not stored yet.
const SIGNED: &str = "receipt-signed";
/// Visited when a signed receipt is stored and not sent yet.
const STORED: &str = "receipt-stored";

/// The reason why a receipt is not signed.
#[derive(Debug, thiserror::Error)]
pub enum NotSigned {
    /// The chain is halted.
    #[error("the chain is halted: {0}")]
    Halted(String),
    /// The chain's end is not known.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The receipt would break a rule of the format.
    #[error(transparent)]
    Receipt(#[from] BuildVrfError),
    /// The database does not store it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl NotSigned {
    /// Returns whether a later attempt may succeed without an operator.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Recovery(error) => matches!(error, RecoveryError::Unanswered(_)),
            Self::Store(error) => error.is_temporary(),
            Self::Halted(_) | Self::Receipt(_) => false,
        }
    }
}

/// The only signer of this verifier's receipts.
pub struct ChainSigner {
    signer: SigningKey,
    issuer: String,
    store: Arc<VerificationStore>,
    log: Client,
    /// Notified when a statement is stored.
    stored: Arc<Notify>,
    /// Held from reading a chain's end until the statement is stored.
    writing: Mutex<()>,
}

impl ChainSigner {
    /// Creates the signer of this verifier. `stored` is notified when a statement waits for the log.
    pub fn new(signer: SigningKey, store: Arc<VerificationStore>, log: Client, stored: Arc<Notify>) -> Self {
        let issuer = signer.public_key().did_key();
        Self { signer, issuer, store, log, stored, writing: Mutex::default() }
    }

    /// Returns the verifier's did:key.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Signs the receipt of a job, at the end of the agent's chain, and stores it. Without a subject, the receipt stands
    /// outside of any chain, and its own name is the subject.
    ///
    /// # Errors
    /// [`NotSigned`]; unless the outcome of storing is unknown, the chain is then as it was.
    pub async fn conclude(&self, job: &str, subject: Option<&str>, receipt: Value) -> Result<(), NotSigned> {
        match subject {
            Some(subject) => self.conclude_chained(job, subject, receipt).await,
            None => {
                let id = receipt.get("receipt_id").and_then(Value::as_str).unwrap_or_default();
                let subject = format!("urn:uuid:{id}");
                let statement = VrfStatement::new(receipt.clone(), &subject).unchained();
                let signed = statement.sign(&self.signer)?;
                self.keep(job, &subject, None, &receipt, &signed).await
            }
        }
    }

    async fn conclude_chained(&self, job: &str, subject: &str, receipt: Value) -> Result<(), NotSigned> {
        let known = self.store.chain(&self.issuer, subject).await?;
        if known.is_none() {
            let end = chain_recovery::chain_end(&self.log, &self.issuer, subject).await?;
            tracing::info!(subject, next = end.next, "the chain continues as the log has it");
            self.store.adopt_chain(&self.issuer, subject, &end).await?;
        }
        let _writing = self.writing.lock().await;
        let end = self.store.chain(&self.issuer, subject).await?;
        let ChainEnd { next, last, halted } =
            end.ok_or_else(|| StoreError::Damaged(format!("the chain of {subject} is lost")))?;
        if let Some(why) = halted {
            return Err(NotSigned::Halted(why));
        }
        let statement = VrfStatement::new(receipt.clone(), subject);
        let statement = match last {
            Some(last) => statement.after(last, next),
            None => statement,
        };
        let signed = statement.sign(&self.signer)?;
        self.keep(job, subject, Some(next), &receipt, &signed).await
    }

    async fn keep(
        &self,
        job: &str,
        subject: &str,
        position: Option<u64>,
        receipt: &Value,
        signed: &SignedStatement,
    ) -> Result<(), NotSigned> {
        crash::visit(SIGNED);
        let kept = NewReceipt {
            id: signed.digest(),
            issuer: self.issuer.clone(),
            subject: subject.to_owned(),
            position,
            at: now(),
            receipt: jose::jcs::canonical(receipt).into(),
            statement: signed.bytes().clone(),
        };
        self.store.conclude(job, &kept).await?;
        crash::visit(STORED);
        self.stored.notify_one();
        Ok(())
    }
}
