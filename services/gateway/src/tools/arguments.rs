//! The check of a call's arguments against the schema of its tool.
//!
//! The check runs in a blocking task, with a bound on how many run at once: its time is limited, but a hostile schema
//! can use it up.

use std::sync::Arc;

use admission::tool::{CheckedArguments, Description, ToolFault, ToolRules};
use schema::{Misfit, Schema, Unusable};
use vap::reason::Reason;

use super::{Compiled, Tools};
use crate::decision_writer::DecisionWriter;

impl Tools {
    /// Checks arguments against the tool description in force. When the call is decided, this description must still be
    /// in force.
    pub async fn check(
        &self,
        writer: &DecisionWriter,
        rules: ToolRules,
        (route, tool): (&str, &str),
        arguments: &str,
    ) -> CheckedArguments {
        if !rules.check_arguments {
            return CheckedArguments::default();
        }
        let pin = match writer.pin_of(route, tool).await {
            Ok(pin) => pin,
            Err(error) => {
                tracing::warn!(%error, "the arguments of a call are not checked: the evidence cannot be read");
                return CheckedArguments::default();
            }
        };
        let Some(description) = pin.as_ref().and_then(|pin| pin.in_force(rules.pins)).cloned() else {
            return CheckedArguments::default();
        };
        let against = Some(description.digest.clone());
        let fault = self.fault(description, arguments).await;
        CheckedArguments { against, fault }
    }

    async fn fault(&self, description: Description, arguments: &str) -> Option<ToolFault> {
        let key = description.digest.to_string();
        let known = self.schemas.get(&key);
        if known.as_ref().is_some_and(|compiled| matches!(&**compiled, Ok(None))) {
            return None;
        }
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
        Ok(Some(schema)) => match schema.check(arguments) {
            Ok(()) => None,
            Err(why @ Misfit::TooCostly) => Some(unusable(&why.to_string())),
            Err(why @ (Misfit::At { .. } | Misfit::Unreadable(_))) => {
                Some(ToolFault { reason: Reason::ArgumentsInvalid, place: Some(why.to_string()) })
            }
        },
    }
}

fn unusable(why: &str) -> ToolFault {
    ToolFault { reason: Reason::ToolSchemaUnusable, place: Some(why.to_owned()) }
}
