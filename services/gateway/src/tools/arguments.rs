//! The check of a call's arguments against the schema of its tool.
//!
//! A check that takes few steps runs at once. Others run in a blocking task, with a bound on how many run at once: their
//! time is limited, but a hostile schema can use it up.

use std::sync::Arc;

use admission::tool::{CheckedArguments, Description, ToolFault, ToolRules};
use schema::{Misfit, Schema, Unusable};
use vap::reason::Reason;

use super::{Compiled, Tools};
use crate::decision_writer::{CallJob, EarlyRead};

impl Tools {
    /// Checks arguments against the tool description in force. When the call is decided, this description must still be
    /// in force.
    ///
    /// Arguments of a tool whose pin was not read count as unchecked.
    pub async fn check(&self, rules: ToolRules, job: &CallJob, early: &EarlyRead) -> CheckedArguments {
        let pin = early.pin(&job.route, &job.tool).filter(|_| rules.check_arguments);
        let Some(description) = pin.and_then(|pin| pin.in_force(rules.pins)) else {
            return CheckedArguments::default();
        };
        let against = Some(description.digest.clone());
        CheckedArguments { against, fault: self.fault(description, job.arguments.text()).await }
    }

    async fn fault(&self, description: &Description, arguments: &str) -> Option<ToolFault> {
        let key = description.digest.to_string();
        let known = self.schemas.get(&key);
        match known.as_deref() {
            Some(Ok(None)) => return None,
            Some(Ok(Some(schema))) => {
                if let Some(checked) = schema.check_if_quick(arguments) {
                    return checked.err().map(misfit);
                }
            }
            Some(Err(_)) | None => {}
        }
        self.fault_in_background(key, known, description.clone(), arguments).await
    }

    async fn fault_in_background(
        &self,
        key: String,
        known: Option<Compiled>,
        description: Description,
        arguments: &str,
    ) -> Option<ToolFault> {
        let unfinished = || Some(unusable("the check did not come to an end"));
        let Ok(turn) = self.checks.clone().acquire_owned().await else { return unfinished() };
        let arguments = arguments.to_owned();
        let checked = tokio::task::spawn_blocking(move || {
            let compiled = known.unwrap_or_else(|| Arc::new(compile(&description)));
            let fault = fault_in(&compiled, &arguments);
            drop(turn);
            (compiled, fault)
        });
        let Ok((compiled, fault)) = checked.await else { return unfinished() };
        self.schemas.insert(key, compiled);
        fault
    }
}

/// Checks arguments against a description, without the caches of [`Tools`].
pub(super) fn checked(description: &Description, arguments: &str) -> CheckedArguments {
    let compiled = Arc::new(compile(description));
    CheckedArguments { against: Some(description.digest.clone()), fault: fault_in(&compiled, arguments) }
}

/// Compiles the schema of a tool; `None` if it has none. A description that was too long to be kept has no usable
/// schema.
fn compile(description: &Description) -> Result<Option<Schema>, Unusable> {
    if description.text.is_none() {
        return Schema::compile("").map(Some);
    }
    description.member("inputSchema").map(|text| Schema::compile(&text)).transpose()
}

fn fault_in(compiled: &Compiled, arguments: &str) -> Option<ToolFault> {
    match &**compiled {
        Err(why) => Some(unusable(&why.to_string())),
        Ok(None) => None,
        Ok(Some(schema)) => schema.check(arguments).err().map(misfit),
    }
}

fn misfit(why: Misfit) -> ToolFault {
    match why {
        Misfit::TooCostly => unusable(&why.to_string()),
        Misfit::At { .. } | Misfit::Unreadable(_) => {
            ToolFault { reason: Reason::ArgumentsInvalid, place: Some(why.to_string()) }
        }
    }
}

fn unusable(why: &str) -> ToolFault {
    ToolFault { reason: Reason::ToolSchemaUnusable, place: Some(why.to_owned()) }
}
