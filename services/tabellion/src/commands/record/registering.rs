//! Registration of checkpoints: the list of those that wait for the log is part of the state of `--watch`, so a
//! statement is stored, and known to wait, before it is first sent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::commands::register::StatementRegistration;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::service::ServiceArgs;

/// The log that checkpoints go to.
pub struct CheckpointLog {
    trust: Option<PathBuf>,
    service: ServiceArgs,
    /// `None` until the log has answered once.
    connection: Option<StatementRegistration>,
    /// Statements that the log has refused since the start of the process. The next process sends them again.
    refused: BTreeSet<String>,
    /// What was last noted about the log.
    noted: Option<String>,
}

impl CheckpointLog {
    /// A log that is not connected yet.
    pub fn new(trust: Option<PathBuf>, service: ServiceArgs) -> Self {
        CheckpointLog { trust, service, connection: None, refused: BTreeSet::new(), noted: None }
    }

    /// Registers the waiting statements in their order, and removes those that the log has taken. If the log cannot be
    /// reached, the rest waits for the next time.
    pub fn register(
        &mut self,
        context: &Context,
        folder: &Path,
        waiting: &mut Vec<String>,
    ) -> Result<(), Failure> {
        for name in waiting.clone() {
            if self.refused.contains(&name) {
                continue;
            }
            match self.register_one(context, &folder.join(&name)) {
                Ok(entry) => {
                    waiting.retain(|other| *other != name);
                    self.noted = None;
                    let json = members! { name, entry };
                    context
                        .console
                        .print(&json, |out| writeln!(out, "registered {}: {entry}", safe(&name)))?;
                }
                Err(failure) if failure.exit == Exit::TryAgain => {
                    self.note(context, &failure);
                    return Ok(());
                }
                Err(failure) => {
                    context.console.note(format!("{name}: {}", failure.in_short()));
                    self.refused.insert(name);
                }
            }
        }
        Ok(())
    }

    /// Registers a statement, and returns its entry ID.
    fn register_one(&mut self, context: &Context, file: &Path) -> Result<String, Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => StatementRegistration::connect(context, self.trust.clone(), self.service.clone())?,
        };
        let registered = self.connection.insert(connection).register(file)?;
        Ok(registered.entry)
    }

    /// Notes why the log takes nothing, unless that was noted before.
    fn note(&mut self, context: &Context, failure: &Failure) {
        let why = failure.in_short();
        if self.noted.as_ref() != Some(&why) {
            context.console.note(format!("checkpoints wait for the log: {why}"));
            self.noted = Some(why);
        }
    }
}
