//! `tabellion policy`: shows, validates, tests and publishes registration policies.

mod admit;
mod show;
mod trial;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use registration::policy::Mistakes;
use registration::policy_statement;
use registration::{POLICY_CONTENT_TYPE, Policy as RegistrationPolicy};

use crate::commands::operator::{self, Signer, Signing};
use crate::console::{Exit, Failure, files, members, safe};
use crate::context::Context;
use crate::keyfile;
use crate::service::{Service, ServiceArgs};

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion policy validate policy.toml")]
pub enum Policy {
    /// Show the policy in force, or earlier ones, from the log
    Show(show::Show),
    /// Check a policy file, and list all mistakes
    #[command(before_help = "example:  tabellion policy validate policy.toml")]
    Validate {
        /// The policy (TOML)
        file: PathBuf,
    },
    /// Decide on statements under a policy file, without registering them
    Test(trial::Trial),
    /// Admit an issuer's key or certificate, in a policy file
    Admit(admit::Admit),
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
            Self::Admit(admit) => admit.run(context),
            Self::Validate { file } => print(context, &read(&file)?),
            Self::Publish { file, signing, service } => {
                publish(context, &file, &signing, &service.connect(context)?)
            }
        }
    }
}

/// Reads a policy file; the failure lists all mistakes in it.
pub fn read(file: &Path) -> Result<RegistrationPolicy, Failure> {
    RegistrationPolicy::from_toml(&files::read_text(file)?).map_err(|mistakes| unsound(file, mistakes))
}

/// The failure for a policy with mistakes, all of which it lists.
fn unsound(file: &Path, mistakes: Mistakes) -> Failure {
    let failure = Failure::new(Exit::Failure, "policy", format!("{} cannot run", file.display()));
    mistakes.0.into_iter().fold(failure, |failure, mistake| failure.fact(mistake.key, mistake.problem))
}

fn publish(context: &Context, file: &Path, signing: &Signing, service: &Service) -> Result<(), Failure> {
    let (next, signer) = (read(file)?, signing.signer()?);
    let current = operator::policy_of(service)?;
    match policy_statement::step(&current, &next) {
        Ok(policy_statement::Step::Keep) => {
            context.console.note("this policy is in force already");
            return print(context, &current);
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
    let statement = policy_statement::sign(&next, &current, &key).map_err(keyfile::cannot_sign)?;
    let (location, _) = service.block_on(service.client.submit(statement.bytes()))?;
    context.console.note(format!("registered {location}"));
    print(context, &next)
}

fn print(context: &Context, policy: &RegistrationPolicy) -> Result<(), Failure> {
    let (contents, digest) = (policy.contents(), policy.digest().to_string());
    let (iss, origin, revision) = (&contents.iss, &contents.origin, contents.revision);
    context.console.print(&members! { iss, origin, revision, digest }, |out| {
        writeln!(out, "log       {} ({})", safe(iss), safe(origin))?;
        writeln!(out, "revision  {revision}\ndigest    {digest}")
    })
}
