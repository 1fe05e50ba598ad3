//! Execution receipts of the gateway, and the chains that are registered with them (section 6; ).

use std::sync::Arc;

use admission::arguments::CallArguments;
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use merkle::EntryDigest;
use roa::aer::{CalledTool, DecidedCall, ExecutionReceipt, GatewayIdentity, SignReceiptError, SignedReceipt};
use roa::chain::Chain;
use roa::denial::Denial;
use roa::registry::Registry;
use roa::text::{NotOfForm, Sha256Digest, Text, UtcTime};
use roa::verify::{VerifiedChain, is_signed_throughout};
use scitt::Signer;

use super::{AgentRoa, AuthorityDecision, PresentedChain};
use crate::config::{AgentRoaConfig, ReceiptForm};

/// The server's identifier in the receipt of a call whose tool belongs to no server.
const NO_SERVER: &str = "none";

/// Signs execution receipts.
#[derive(Clone)]
pub struct ReceiptSigner {
    identity: GatewayIdentity,
    signer: Text,
    key: Arc<dyn Signer>,
    form: ReceiptForm,
    registers_chains: bool,
}

/// The call that a receipt is about.
#[derive(Clone, Copy, Debug)]
pub struct CallReceipt<'a> {
    /// The server's identifier and the server's own name of the tool.
    pub action: Option<(&'a str, &'a str)>,
    /// The name of the tool, as the client sees it.
    pub tool: &'a str,
    /// The arguments.
    pub arguments: &'a CallArguments,
    /// The time of the decision.
    pub now: Timestamp,
}

/// The execution receipt of a decision, as it is returned to the caller.
#[derive(Clone, Debug)]
pub struct ReceiptReference {
    /// The entry ID of the receipt's statement.
    pub id: EntryDigest,
    /// The identifier of the receipt.
    pub aer_id: String,
    /// The address of the entry.
    pub audit_ref: String,
    /// The member `dev.tabellion/aer` of an answer's `_meta`: the receipt, and the address of its entry.
    pub json: String,
}

/// A delegation chain that is registered with a receipt.
#[derive(Clone, Debug)]
pub struct ChainToRegister {
    /// The `chain_digest` of receipts.
    pub digest: Sha256Digest,
    /// The canonical JSON of the chain.
    pub canonical: Vec<u8>,
}

impl ReceiptSigner {
    /// Creates the signer of a gateway's receipts with the key that the configuration names.
    ///
    /// # Errors
    /// [`NotOfForm`] if a name is empty or too long.
    pub fn new(config: &AgentRoaConfig, key: Arc<dyn Signer>) -> Result<Self, NotOfForm> {
        let (id, version) = (config.gateway_id.parse()?, env!("CARGO_PKG_VERSION").parse()?);
        let identity = GatewayIdentity { id, version };
        let signer = config.signer.parse()?;
        Ok(Self { identity, signer, key, form: config.receipts, registers_chains: config.register_chains })
    }

    /// Returns the name of the key in the registry.
    #[must_use]
    pub fn signer(&self) -> &Text {
        &self.signer
    }
}

impl AgentRoa {
    /// Returns the form in which receipts are registered.
    #[must_use]
    pub fn receipt_form(&self) -> ReceiptForm {
        self.receipts.form
    }

    /// Returns the digest of a call's chain if chains are registered: receipts name the chain by it.
    #[must_use]
    pub fn registered_digest(&self, presented: &PresentedChain) -> Option<Sha256Digest> {
        let chain = presented.chain.as_ref().ok().filter(|_| self.receipts.registers_chains);
        chain.map(|chain| chain.digest())
    }

    /// Returns whether a chain may be registered although it is denied. One that is not signed throughout is left out, since
    /// anyone who has seen a root envelope can write one.
    pub(super) fn is_registrable(
        &self,
        chain: &Chain,
        verified: &Result<Arc<VerifiedChain>, Denial>,
        registry: &Registry,
    ) -> bool {
        verified.is_ok() || (self.receipts.registers_chains && is_signed_throughout(chain, registry))
    }

    /// Returns the chain to register with the receipt of a decision, unless its canonical form is longer than readers
    /// accept.
    #[must_use]
    pub fn chain_to_register(
        &self,
        presented: &PresentedChain,
        decision: &AuthorityDecision,
    ) -> Option<ChainToRegister> {
        let digest = self.registered_digest(presented)?;
        let is_registrable = decision.denial.is_none() || presented.is_registrable;
        let canonical = presented.chain.as_ref().ok().filter(|_| is_registrable)?.canonical();
        (canonical.len() <= roa::limits::CHAIN.bytes).then_some(ChainToRegister { digest, canonical })
    }

    /// Signs the receipt of a decision. `random` is the number in its identifier.
    ///
    /// # Errors
    /// [`SignReceiptError`] if the key cannot sign.
    pub fn receipt(
        &self,
        decision: &AuthorityDecision,
        call: CallReceipt<'_>,
        random: [u8; 8],
    ) -> Result<SignedReceipt, SignReceiptError> {
        let decided = DecidedCall {
            aer_id: form(&format!("aer:{}", HEXLOWER.encode(&random))),
            produced_at: UtcTime(call.now),
            mode: decision.mode.clone(),
            action: called_tool(call),
            gateway: self.receipts.identity.clone(),
            plan_hash: None,
        };
        let receipt = match (&decision.denial, &decision.subject) {
            (None, Some(subject)) => ExecutionReceipt::permit(decided, subject.clone()),
            (Some(denial), Some(subject)) => ExecutionReceipt::denial(decided, subject.clone(), denial),
            (Some(denial), None) => ExecutionReceipt::denial_without_root(decided, denial),
            (None, None) => ExecutionReceipt::denial_without_root(decided, &Denial::no_envelope()),
        };
        receipt.sign(self.receipts.signer.as_str(), &*self.receipts.key)
    }
}

/// Describes the tool of a call. A name that belongs to no server is that of [`NO_SERVER`].
fn called_tool(call: CallReceipt<'_>) -> CalledTool {
    let input_hash = Sha256Digest::of(&call.arguments.canonical().bytes);
    let of_server =
        |(server, tool): (&str, &str)| CalledTool::new(server.parse().ok()?, tool, input_hash).ok();
    call.action.and_then(of_server).unwrap_or_else(|| {
        CalledTool::new(form(NO_SERVER), call.tool, input_hash).expect("the placeholder has no dot")
    })
}

/// Parses a text whose form this module guarantees.
fn form<T: std::str::FromStr<Err = NotOfForm>>(text: &str) -> T {
    text.parse().expect("the placeholder and the random number have the form of their members")
}
