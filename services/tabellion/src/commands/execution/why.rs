//! `tabellion execution verify --why`: the decision of a receipt, made again from the documents on the log.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use display::counted;
use merkle::LeafIndex;
use registration::agentroa::PolicyDocument;
use roa::aer::ExecutionReceipt;
use roa::chain::Chain;
use roa::denial::Denial;
use roa::explain::{Contradiction, DecisionExplanation, explain};
use roa::registry::{Registry, RegistryDocument};
use roa::signed::Signed;
use roa::text::{Sha256Digest, UtcTime};
use roa::verify::TimeBounds;
use serde::Serialize;

use super::order::{LateRegistry, check_order};
use super::registered::{LogReceipts, Registration};
use crate::commands::agentroa::policy_digest;
use crate::commands::registry::{not_a_registry, operator_keys, refused};
use crate::commands::roa::read_chain;
use crate::commands::verify::input::{self, TAGGED_SIGN1};
use crate::console::{Exit, Failure, Report, files, safe};
use crate::context::Context;

/// The documents that a decision rested on.
#[derive(Debug, Args)]
pub struct Why {
    /// Explain the decision with the call's chain
    #[arg(long, value_name = "CHAIN", requires_all = ["registry", "registry_key"])]
    why: Option<PathBuf>,
    /// The registry of that time: file or statement
    #[arg(long, value_name = "FILE", requires = "why")]
    registry: Option<PathBuf>,
    /// A key of the registry's operator
    #[arg(long, value_name = "KEY", requires = "why")]
    registry_key: Vec<String>,
    /// The policy document: file or statement
    #[arg(long, value_name = "FILE", requires = "why")]
    policy: Option<PathBuf>,
}

impl Why {
    /// Returns whether a chain is given.
    pub fn is_requested(&self) -> bool {
        self.why.is_some()
    }

    /// Explains the decision of a receipt, if a chain is given. `registration` is that of the receipt's statement.
    pub fn explain(
        &self,
        context: &Context,
        receipt: &ExecutionReceipt,
        log: &LogReceipts,
        registration: Option<&Registration>,
    ) -> Result<(), Failure> {
        let (Some(chain), Some(registry)) = (&self.why, &self.registry) else { return Ok(()) };
        let documents = Documents { context, log };
        let chain = read_chain(chain)?;
        let (registry, before) = documents.registry(registry, &self.registry_key)?;
        let order = registration.zip(before.as_ref());
        let order = order.map(|(of_receipt, before)| check_order(before, of_receipt, receipt.produced_at));
        let mut explanation = explain(receipt, &chain, &registry, TimeBounds::default());
        if let Some(policy) = &self.policy {
            explanation.contradictions.extend(documents.other_policy(receipt, policy)?);
        }
        let late = order.and_then(Result::err);
        let report = WhyReport::of(&explanation, receipt, &chain, &registry);
        let registry_registered = before.map(|before| RegistryRegistration::of(&before, late.as_ref()));
        context.console.result(&WhyReport {
            registered: log.are_required(),
            registry_registered,
            ..report
        })?;
        match (explanation.contradictions.is_empty(), late) {
            (true, None) => Ok(()),
            (true, Some(late)) => Err(late.failure()),
            (false, _) => Err(contradicted(&explanation.contradictions)),
        }
    }
}

/// Reads the documents of an explanation: files, or statements on the log.
struct Documents<'a> {
    context: &'a Context,
    log: &'a LogReceipts,
}

impl Documents<'_> {
    /// Reads the registry, with its registration if receipts are required.
    fn registry(&self, file: &Path, keys: &[String]) -> Result<(Registry, Option<Registration>), Failure> {
        let operators = operator_keys(keys)?;
        let (bytes, registration) = self.read(file)?;
        let signed: Signed<RegistryDocument> =
            Signed::parse(&bytes).map_err(|error| not_a_registry(file, &error))?;
        let registry = Registry::open(&signed, &operators).map_err(|error| refused(file, &error))?;
        Ok((registry, registration))
    }

    fn other_policy(
        &self,
        receipt: &ExecutionReceipt,
        file: &Path,
    ) -> Result<Option<Contradiction>, Failure> {
        let (bytes, _) = self.read(file)?;
        let found: Sha256Digest = match PolicyDocument::read(&bytes) {
            Ok(_) => Sha256Digest::of(&bytes),
            Err(_) => policy_digest(&bytes),
        };
        let stated = receipt.policy.digest;
        Ok((found != stated).then(|| Contradiction {
            member: "/policy/policy_digest",
            stated: stated.to_string(),
            found: found.to_string(),
        }))
    }

    /// Reads a document: a file, or the payload of a statement. If receipts are required, it is a statement with a
    /// receipt. The document is what is signed here; the issuer's signature is what `tabellion verify` verifies.
    fn read(&self, file: &Path) -> Result<(Vec<u8>, Option<Registration>), Failure> {
        let bytes = files::read(file)?;
        if !bytes.starts_with(TAGGED_SIGN1) {
            return match self.log.are_required() {
                true => Err(not_registered(file)),
                false => Ok((bytes, None)),
            };
        }
        let statement = input::statement(file)?;
        let registration = self.log.verify_attached(self.context, file, &statement)?;
        let payload = statement.payload().map(<[u8]>::to_vec).ok_or_else(|| {
            let what = format!("{}: the payload is detached", file.display());
            Failure::new(Exit::VerificationFailed, "malformed", what)
        })?;
        Ok((payload, registration))
    }
}

fn not_registered(file: &Path) -> Failure {
    let what = format!("{} is not a statement, and --trust requires a receipt of the log", file.display());
    Failure::new(Exit::NotVerified, "no-statement", what)
        .hint("name the transparent statement that tabellion registry publish or tabellion register wrote")
}

fn contradicted(contradictions: &[Contradiction]) -> Failure {
    let what = "the receipt contradicts the chain, the registry or the policy";
    let failure = Failure::new(Exit::VerificationFailed, "execution-contradicted", what);
    contradictions.iter().fold(failure, |failure, contradiction| {
        let Contradiction { member, stated, found } = contradiction;
        failure.fact(*member, format!("the receipt says {stated}, and it is {found}"))
    })
}

/// An explanation, hop by hop.
#[derive(Serialize)]
struct WhyReport {
    at: String,
    registry: String,
    hops: Vec<WhyHop>,
    decided: String,
    reason: Option<&'static str>,
    hop: Option<usize>,
    dimension: Option<&'static str>,
    beyond_documents: bool,
    contradictions: Vec<String>,
    registered: bool,
    registry_registered: Option<RegistryRegistration>,
}

/// The registration of the registry, compared with the time of the decision.
#[derive(Serialize)]
struct RegistryRegistration {
    index: Option<u64>,
    at: Option<String>,
    before_decision: bool,
}

impl RegistryRegistration {
    fn of(registration: &Registration, late: Option<&LateRegistry>) -> Self {
        Self {
            index: registration.index.map(LeafIndex::get),
            at: registration.at.and_then(UtcTime::from_unix_seconds).map(String::from),
            before_decision: late.is_none(),
        }
    }
}

impl Display for RegistryRegistration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mark = if self.before_decision { "ok    " } else { "FAIL  " };
        write!(f, "{mark}the log had the registry")?;
        if let Some(index) = self.index {
            write!(f, " as entry {index}")?;
        }
        if let Some(at) = &self.at {
            write!(f, " at {at}")?;
        }
        f.write_str(if self.before_decision { ", before the decision" } else { ", not before the decision" })
    }
}

#[derive(Serialize)]
struct WhyHop {
    hop: usize,
    holder: String,
    signers: Vec<String>,
    capabilities: Vec<String>,
    depth: u32,
    budget: Option<String>,
    price_class: Option<u32>,
    slo_class: Option<u32>,
    classification: Option<String>,
}

impl WhyReport {
    fn of(
        explanation: &DecisionExplanation,
        receipt: &ExecutionReceipt,
        chain: &Chain,
        registry: &Registry,
    ) -> WhyReport {
        let version = registry.version();
        let denial = explanation.decided.as_ref().err();
        let hops = explanation.hops.iter().enumerate().map(|(hop, explained)| WhyHop {
            hop,
            holder: explained.holder.to_string(),
            signers: explained.signers.clone(),
            capabilities: explained.scope.capabilities.grants().map(ToString::to_string).collect(),
            depth: explained.scope.depth,
            budget: explained
                .scope
                .budget
                .as_ref()
                .map(|budget| format!("{} {}", budget.ceiling, budget.unit)),
            price_class: explained.scope.price_class,
            slo_class: explained.scope.slo_class,
            classification: explained.scope.classification.as_ref().map(ToString::to_string),
        });
        let stated = |contradiction: &Contradiction| {
            let Contradiction { member, stated, found } = contradiction;
            format!("{member}: {stated}, found {found}")
        };
        WhyReport {
            at: receipt.produced_at.into(),
            registry: format!(
                "{} {}.{} ({} presented)",
                registry.document().registry_id,
                version.epoch,
                version.sequence,
                counted(chain.hops().len(), "hop", "hops")
            ),
            hops: hops.collect(),
            decided: denial.map_or_else(|| "permit".to_owned(), Denial::to_string),
            reason: denial.map(|denial| denial.reason.as_str()),
            hop: denial.and_then(|denial| denial.hop),
            dimension: denial.and_then(|denial| denial.dimension).map(|dimension| dimension.as_str()),
            beyond_documents: explanation.is_beyond_documents,
            contradictions: explanation.contradictions.iter().map(stated).collect(),
            registered: false,
            registry_registered: None,
        }
    }
}

impl Report for WhyReport {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "decided again for {} with registry {}", safe(&self.at), safe(&self.registry))?;
        for hop in &self.hops {
            writeln!(
                out,
                "ok    hop {}  {} by {}",
                hop.hop,
                safe(&hop.holder),
                safe(&hop.signers.join(" "))
            )?;
            let classes = [("price", hop.price_class), ("slo", hop.slo_class)];
            let classes = classes.iter().filter_map(|(name, class)| Some(format!(", {name} {}", (*class)?)));
            let budget = hop.budget.as_ref().map(|budget| format!(", budget {budget}")).unwrap_or_default();
            let data = hop.classification.as_ref().map(|label| format!(", data {label}")).unwrap_or_default();
            let limits = format!("depth {}{budget}{}{data}", hop.depth, classes.collect::<String>());
            writeln!(out, "      {}", safe(&limits))?;
            writeln!(out, "      {}", safe(&hop.capabilities.join(" ")))?;
        }
        let mark = if self.reason.is_none() { "ok   " } else { "deny " };
        writeln!(out, "{mark} {}", safe(&self.decided))?;
        if self.beyond_documents {
            writeln!(
                out,
                "the receipt decides on grounds that chain and registry neither confirm nor refute"
            )?;
        }
        if self.registered {
            writeln!(out, "ok    the log has the receipt, and the documents that it was compared with")?;
        }
        if let Some(registration) = &self.registry_registered {
            writeln!(out, "{registration}")?;
        }
        self.contradictions.iter().try_for_each(|stated| writeln!(out, "FAIL  {}", safe(stated)))
    }
}
