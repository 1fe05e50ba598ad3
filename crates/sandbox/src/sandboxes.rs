//! The backends that this process may use: those which have proven their isolation.

use std::sync::Arc;

use crate::{Call, Engine, Job, Outcome, Sandbox, SandboxError};

/// Backends that passed their self-test, in order of preference. There is no fallback without isolation.
#[derive(Default)]
pub struct Sandboxes {
    usable: Vec<Arc<dyn Sandbox>>,
    refused: Vec<SandboxError>,
}

impl Sandboxes {
    /// Starts and tests every backend that this program was built with, which takes seconds.
    pub fn of_this_machine() -> Self {
        let mut sandboxes = Self::default();
        #[cfg(feature = "wasm")]
        sandboxes.add(crate::Wasm::new());
        #[cfg(target_os = "linux")]
        sandboxes.add(crate::Bwrap::new());
        sandboxes
    }

    /// Tests a backend and keeps it if it isolates; otherwise keeps the reason.
    pub fn add<S: Sandbox + 'static>(&mut self, backend: Result<S, SandboxError>) {
        let tested = backend.and_then(|backend| backend.self_test().map(|()| backend));
        match tested {
            Ok(backend) => self.usable.push(Arc::new(backend)),
            Err(reason) => self.refused.push(reason),
        }
    }

    /// Returns the first backend that supports the call.
    pub fn find(&self, call: &Call) -> Option<&Arc<dyn Sandbox>> {
        self.usable.iter().find(|backend| backend.supports(call))
    }

    /// Runs the job in the first backend that supports its call.
    pub fn run(&self, job: &Job) -> Result<Outcome, SandboxError> {
        match self.find(&job.call) {
            Some(backend) => backend.run(job),
            None => Err(self.unsupported(&job.call)),
        }
    }

    /// Returns an error if an engine is not what it was when it was tested.
    pub fn check_unchanged(&self) -> Result<(), SandboxError> {
        self.usable.iter().try_for_each(|backend| backend.check_unchanged())
    }

    /// Returns the engines that may be used.
    pub fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.usable.iter().map(|backend| backend.engine())
    }

    /// Returns why other backends may not be used.
    pub fn refused(&self) -> &[SandboxError] {
        &self.refused
    }

    fn unsupported(&self, call: &Call) -> SandboxError {
        let call = match call {
            Call::Function { language, .. } => format!("{language:?} functions"),
            Call::Program { command, .. } => {
                format!("the program {:?}", command.first().map_or("", String::as_str))
            }
        };
        let reasons = self.refused.iter().map(|reason| format!("; {reason}")).collect::<String>();
        SandboxError::Unsupported(format!("{call} on this machine{reasons}"))
    }
}
