//! `tabellion registry add`: a further entry in the next version of a registry.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use roa::registry::{AgentEntry, Ed25519Jwk, KeyEntry, KeyRole, OAuthClient, PolicyEntry, ServerEntry};
use roa::text::{AgentId, Text};
use scitt::Curve;

use super::RegistryEdit;
use crate::commands::agentroa::{now, policy_digest, usage};
use crate::console::{Exit, Failure, files};
use crate::context::Context;
use crate::keyfile;

const KEY: &str = "example:  tabellion registry add key r.json --key op.pem --role agent ...";
const AGENT: &str = "example:  tabellion registry add agent r.json --key op.pem --agent aha:o/u/a";
const SERVER: &str =
    "example:  tabellion registry add server r.json --key op.pem --server github --tool read";
const POLICY: &str =
    "example:  tabellion registry add policy r.json --key op.pem --policy-id p --policy p.json";
const CLASSIFICATION: &str = "example:  tabellion registry add classification r.json --key op.pem secret";

#[derive(Debug, Subcommand)]
#[command(before_help = SERVER)]
pub enum Add {
    /// A signing key with its role
    #[command(before_help = KEY)]
    Key(AddKey),
    /// An agent, with the OAuth clients that it calls with
    #[command(before_help = AGENT)]
    Agent(AddAgent),
    /// A server, with the tools of its manifest
    #[command(before_help = SERVER)]
    Server(AddServer),
    /// A policy document; an earlier one of the same name stays accepted with --keep-previous
    #[command(before_help = POLICY)]
    Policy(AddPolicy),
    /// A classification of data, above all others so far
    #[command(before_help = CLASSIFICATION)]
    Classification(AddClassification),
}

impl Add {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Key(add) => add.run(context),
            Self::Agent(add) => add.run(context),
            Self::Server(add) => add.run(context),
            Self::Policy(add) => add.run(context),
            Self::Classification(add) => add.run(context),
        }
    }
}

/// The registry to edit.
#[derive(Debug, Args)]
struct Edited {
    /// The registry; its next version replaces it
    file: PathBuf,
    /// The operator's key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl Edited {
    fn open(&self) -> Result<RegistryEdit, Failure> {
        RegistryEdit::open(&self.file, &self.key)
    }
}

/// The role of a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Role {
    Authorizer,
    Agent,
    Gateway,
}

#[derive(Debug, Args)]
pub struct AddKey {
    #[command(flatten)]
    edited: Edited,
    /// What the key signs: authorizer (envelopes), agent (delegations) or gateway (receipts)
    #[arg(long, value_enum, hide_possible_values = true)]
    role: Role,
    /// The name of the key [default for an agent: its id]
    #[arg(long, value_name = "NAME", required_unless_present = "agent")]
    signer: Option<Text>,
    /// The organisation [default for an agent: that of its id]
    #[arg(long, value_name = "NAME", required_unless_present = "agent")]
    organization: Option<Text>,
    /// The agent whose key it is
    #[arg(long, value_name = "AGENT", required_if_eq("role", "agent"))]
    agent: Option<AgentId>,
    /// The Ed25519 key: a file or a did:key
    #[arg(long, value_name = "KEY")]
    public_key: String,
}

impl AddKey {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let key = keyfile::read_public(&self.public_key)?;
        if key.curve() != Curve::Ed25519 {
            let what = format!("AgentROA signs with Ed25519 keys, not with {}", key.curve());
            return Err(Failure::new(Exit::Failure, "cannot-sign", what)
                .hint("tabellion issuer new -o agent.pem --alg EdDSA"));
        }
        let text = |text: &str| text.parse::<Text>().map_err(|error| usage(&error));
        let name = self.agent.as_ref().map(AgentId::as_str).unwrap_or_default();
        let organization = self.agent.as_ref().map(AgentId::organization).unwrap_or_default();
        let entry = KeyEntry {
            signer: self.signer.map_or_else(|| text(name), Ok)?,
            role: match self.role {
                Role::Authorizer => KeyRole::Authorizer,
                Role::Agent => KeyRole::Agent,
                Role::Gateway => KeyRole::Gateway,
            },
            organization: self.organization.map_or_else(|| text(organization), Ok)?,
            agent_id: self.agent,
            policies: Vec::new(),
            public_key: Ed25519Jwk(key),
            not_before: now(),
            not_after: None,
        };
        let mut edit = self.edited.open()?;
        edit.document.keys.push(entry);
        edit.write(context)
    }
}

#[derive(Debug, Args)]
pub struct AddAgent {
    #[command(flatten)]
    edited: Edited,
    /// The agent
    #[arg(long)]
    agent: AgentId,
    /// The issuer of its access tokens
    #[arg(long, value_name = "URL", requires = "client_id")]
    issuer: Option<Text>,
    /// Its client at that issuer
    #[arg(long, value_name = "ID", requires = "issuer")]
    client_id: Option<Text>,
}

impl AddAgent {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let mut edit = self.edited.open()?;
        let client =
            self.issuer.zip(self.client_id).map(|(issuer, client_id)| OAuthClient { issuer, client_id });
        let known = edit.document.agents.iter_mut().find(|entry| entry.agent_id == self.agent);
        match known {
            Some(entry) => entry.oauth_clients.extend(client),
            None => edit.document.agents.push(AgentEntry {
                agent_id: self.agent,
                oauth_clients: client.into_iter().collect(),
                certificates: Vec::new(),
                device_attestations: Vec::new(),
            }),
        }
        edit.write(context)
    }
}

#[derive(Debug, Args)]
pub struct AddServer {
    #[command(flatten)]
    edited: Edited,
    /// The server's name in capabilities; it has no dot
    #[arg(long, value_name = "NAME")]
    server: Text,
    /// A tool of its manifest; may be given more than once
    #[arg(long, value_name = "NAME")]
    tool: Vec<Text>,
}

impl AddServer {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let mut edit = self.edited.open()?;
        edit.document.servers.retain(|entry| entry.server_id != self.server);
        edit.document.servers.push(ServerEntry { server_id: self.server, tools: self.tool });
        edit.write(context)
    }
}

#[derive(Debug, Args)]
pub struct AddPolicy {
    #[command(flatten)]
    edited: Edited,
    /// The name of the policy
    #[arg(long, value_name = "NAME")]
    policy_id: Text,
    /// The policy document; its digest is taken
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Still accept envelopes under the document before it
    #[arg(long)]
    keep_previous: bool,
}

impl AddPolicy {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let policy_digest = policy_digest(&files::read(&self.policy)?);
        let mut edit = self.edited.open()?;
        let policies = &mut edit.document.policies;
        let known = policies.iter().position(|entry| entry.policy_id == self.policy_id);
        let before = known.map(|position| policies.remove(position)).filter(|_| self.keep_previous);
        let previous = before
            .into_iter()
            .flat_map(|entry| entry.previous_digests.into_iter().chain([entry.policy_digest]));
        let previous_digests = previous.filter(|digest| *digest != policy_digest).collect();
        policies.push(PolicyEntry { policy_id: self.policy_id, policy_digest, previous_digests });
        edit.write(context)
    }
}

#[derive(Debug, Args)]
pub struct AddClassification {
    #[command(flatten)]
    edited: Edited,
    /// The classification
    label: Text,
}

impl AddClassification {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let mut edit = self.edited.open()?;
        edit.document.classifications.push(self.label);
        edit.write(context)
    }
}
