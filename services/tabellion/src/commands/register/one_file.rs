//! Registration of signed statements one at a time, for commands that make them.

use std::path::{Path, PathBuf};

use super::work::RegistrationWork;
use super::{IssuerIdentity, Register, RegistrationResult};
use crate::console::Failure;
use crate::context::Context;
use crate::service::{Service, ServiceArgs};
use crate::trust_file::TrustFile;

/// A connection to a log whose key is known.
pub struct StatementRegistration {
    flags: Register,
    issuer: IssuerIdentity,
    service: Service,
    trust: TrustFile,
}

impl StatementRegistration {
    /// Connects to the log. An unknown log is pinned in the trust file, as `tabellion register` does it.
    pub fn connect(context: &Context, trust: Option<PathBuf>, service: ServiceArgs) -> Result<Self, Failure> {
        let flags = Register::signed_files(trust, service);
        let service = flags.service.connect(context)?;
        let trust = flags.trusted_log(context, &service)?;
        let issuer = flags.issuer()?;
        Ok(StatementRegistration { flags, issuer, service, trust })
    }

    /// Registers the statement in a file, and stores its receipt and the transparent statement next to it. A statement
    /// that has a receipt of this log is not sent again.
    pub fn register(&self, file: &Path) -> Result<RegistrationResult, Failure> {
        let StatementRegistration { flags, issuer, service, trust } = self;
        let work = RegistrationWork { flags, issuer, client: &service.client, trust };
        service.drive(work.one(file))
    }
}
