//! `tabellion policy`: shows, validates, tests and publishes registration policies.

mod show;
mod trial;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use registration::policy::statement as policy_statement;
use registration::{POLICY_CONTENT_TYPE, Policy as RegistrationPolicy};
use serde::Serialize;

use crate::cli::Context;
use crate::commands::operator::{self, Signer, Signing};
use crate::console::{Exit, Failure, Report, files, safe};
use crate::service::{Service, ServiceArgs};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion policy validate policy.toml")]
pub enum Policy {
    /// The policy in force, from its entry on the log, and those before it
    Show(show::Show),
    /// Whether a policy file can run: every mistake at once
    #[command(before_help = "example:  tabellion policy validate policy.toml")]
    Validate {
        /// The policy (TOML)
        file: PathBuf,
    },
    /// What a policy file would make of statements; registers nothing
    Test(trial::Trial),
    /// Sign the next revision and register it
    #[command(before_help = "example:  tabellion policy publish policy.toml --key keys/operator.pem")]
    Publish {
        /// The policy (TOML); its revision is the one in force + 1
        file: PathBuf,
        #[command(flatten)]
        signing: Signing,
        #[command(flatten)]
        service: ServiceArgs,
    },
}

impl Policy {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show(show) => show.run(context),
            Self::Test(trial) => trial.run(context),
            Self::Validate { file } => context.console.result(&Validated::of(&read(&file)?)),
            Self::Publish { file, signing, service } => {
                publish(context, &file, &signing, &service.connect(context)?)
            }
        }
    }
}

/// Reads a policy file; the failure lists all mistakes in it.
pub fn read(file: &Path) -> Result<RegistrationPolicy, Failure> {
    RegistrationPolicy::from_toml(&files::read_text(file)?).map_err(|mistakes| {
        let failure = Failure::new(Exit::Failure, "policy", format!("{} cannot run", file.display()));
        mistakes.0.into_iter().fold(failure, |failure, mistake| failure.fact(mistake.key, mistake.problem))
    })
}

fn publish(context: &Context, file: &Path, signing: &Signing, service: &Service) -> Result<(), Failure> {
    let (next, signer) = (read(file)?, signing.signer()?);
    let current = operator::policy_of(service)?;
    match policy_statement::step(&current, &next) {
        Ok(policy_statement::Step::Keep) => {
            context.console.note("this policy is in force already");
            return context.console.result(&Validated::of(&current));
        }
        Ok(policy_statement::Step::Publish) => {}
        Err(conflict) => return Err(Failure::new(Exit::Refused, "policy-conflict", conflict.to_string())),
    }
    let key = match signer {
        Signer::Key(key) => key,
        Signer::Write(proposals) => {
            return proposals.write(context, POLICY_CONTENT_TYPE, next.payload().to_vec());
        }
    };
    let statement = policy_statement::sign(&next, &current, &key)
        .map_err(|error| Failure::new(Exit::Failure, "cannot-sign", error.to_string()))?;
    let (location, _) = service.block_on(service.client.submit(statement.bytes()))?;
    context.console.note(format!("registered {location}"));
    context.console.result(&Validated::of(&next))
}

#[derive(Serialize)]
struct Validated {
    iss: String,
    origin: String,
    revision: u64,
    digest: String,
}

impl Validated {
    fn of(policy: &RegistrationPolicy) -> Self {
        let contents = policy.contents();
        Self {
            iss: contents.iss.clone(),
            origin: contents.origin.clone(),
            revision: contents.revision,
            digest: policy.digest().to_string(),
        }
    }
}

impl Report for Validated {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "log       {} ({})", safe(&self.iss), safe(&self.origin))?;
        writeln!(out, "revision  {}\ndigest    {}", self.revision, self.digest)
    }
}
