//! Admission of statements for bulk writes to a log that no process serves (`tabellion bench grow`): the decision of a
//! registration, without quotas, limits and questions to the log.

use std::sync::Arc;

use registration::PolicyInForce;
use scitt::SignedStatement;
use store::{LogReader, NewEntry};

use crate::log::admission::{NotAdmitted, admit_alone};
use crate::log::policies::{Policies, PolicyUnreadable};

/// The policy in force of a log.
pub struct BulkAdmission {
    in_force: PolicyInForce,
}

impl BulkAdmission {
    /// Reads the policy in force.
    pub async fn of(store: Arc<dyn LogReader>) -> Result<Self, PolicyUnreadable> {
        let leaf = store.head().await?.policy;
        let policy = Policies::new(store, Arc::default()).at(leaf).await?;
        Ok(Self { in_force: policy.in_force.clone() })
    }

    /// Returns the entry of a statement, if the policy admits it without other entries.
    pub fn entry(&self, statement: &SignedStatement) -> Result<NewEntry, NotAdmitted> {
        admit_alone(statement, &self.in_force)
    }
}
