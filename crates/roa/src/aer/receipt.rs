//! The contents of execution receipts, and their making from a decision (section 6.1; ).

use std::fmt;
use std::str::FromStr;

use jose::json::CheckedJson;

use crate::chain::Chain;
use crate::denial::{Denial, DenialReason, NO_ENVELOPE, RevocationPosition};
use crate::envelope::Envelope;
use crate::limits::MAX_RECORDED_TOOL;
use crate::placeholder::{EMPTY_CHAIN, NO_POLICY, NO_POLICY_DIGEST, NO_ROOT, NO_SESSION, UNKNOWN_AGENT};
use crate::text::{AerId, AgentId, Code, EnvelopeId, NotOfForm, Reference, Sha256Digest, Text, UtcTime};
use crate::verify::VerifiedChain;

/// An execution receipt (AER) without its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionReceipt {
    /// The receipt's identifier.
    pub aer_id: AerId,
    /// The time of the decision, not before 1970.
    pub produced_at: UtcTime,
    /// The decision.
    pub outcome: Outcome,
    /// The mode of operation: normal, or with cached data.
    pub mode: Mode,
    /// The session and agent that made the call.
    pub session: Session,
    /// The tool call.
    pub action: CalledTool,
    /// The policy that applied to the call.
    pub policy: PolicyBinding,
    /// The delegation chain that authorized the call; `None` if the request had no usable root envelope. Session and
    /// policy have placeholders then.
    pub chain: Option<ChainSummary>,
    /// The gateway that decided.
    pub gateway: GatewayIdentity,
    /// The digest of the frozen artifacts of the decision, as stated by the gateway; it cannot be verified.
    pub plan_hash: Option<Sha256Digest>,
}

/// The parts of a receipt that do not depend on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedCall {
    /// The receipt's identifier.
    pub aer_id: AerId,
    /// The time of the decision.
    pub produced_at: UtcTime,
    /// The mode of operation.
    pub mode: Mode,
    /// The tool call.
    pub action: CalledTool,
    /// The gateway that decided.
    pub gateway: GatewayIdentity,
    /// The digest of the frozen artifacts of the decision.
    pub plan_hash: Option<Sha256Digest>,
}

/// The parts of a receipt that a chain determines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptSubject {
    /// The session of the root, and the agent that holds the chain.
    pub session: Session,
    /// The policy of the root.
    pub policy: PolicyBinding,
    /// The chain.
    pub chain: ChainSummary,
}

/// The mode of operation of a decision: `enforcement_mode`, with `degraded_reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Decided with current data of the registry.
    Normal,
    /// Decided with cached data.
    Degraded {
        /// The reason for degraded operation. Section 8.4.3 c) recommends it, so it may be absent.
        reason: Option<Code>,
    },
}

/// The decision about a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call was forwarded.
    Permit,
    /// The call was denied.
    Deny(RecordedDenial),
}

/// A denial as a receipt states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDenial {
    /// The reason.
    pub reason: DenialReason,
    /// Details that the draft's list of reasons does not cover.
    pub detail: Option<DenialDetail>,
    /// The revocation, only with [`DenialReason::EnvelopeRevoked`].
    pub revocation: Option<RevocationPosition>,
}

/// Details of a denial (`denial_detail`, R-17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialDetail {
    /// The gateway's code, such as `no_envelope` or `registry_unavailable`.
    pub code: Code,
    /// The failing hop of the chain, counted from the root.
    pub hop: Option<u64>,
    /// The failing dimension of the scope. Another gateway's names may differ from ours.
    pub dimension: Option<Code>,
}

/// The session that the root was issued for, and the agent that presented the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The session's identifier.
    pub id: Text,
    /// The agent.
    pub agent: AgentId,
    /// A reference to a device attestation.
    pub device_attestation: Option<Reference>,
}

/// The tool call that was decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledTool {
    /// The identifier of the MCP server, without a dot.
    pub server: Text,
    /// The name of the tool. In a denial it is unrestricted: empty, long, or with control characters.
    pub tool: String,
    /// The SHA-256 digest of the canonical arguments.
    pub input_hash: Sha256Digest,
}

/// The policy that the envelope was bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyBinding {
    /// The name of the policy.
    pub id: Text,
    /// The digest of the policy.
    pub digest: Sha256Digest,
}

/// A summary of the delegation chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSummary {
    /// Number of delegations; 0 for the root alone.
    pub depth: u64,
    /// The identifier of the root envelope.
    pub root: EnvelopeId,
    /// The SHA-256 digest of the canonical chain.
    pub digest: Sha256Digest,
}

/// The gateway that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayIdentity {
    /// The identifier of the gateway's instance.
    pub id: Text,
    /// The version of the gateway's software.
    pub version: Text,
}

impl ExecutionReceipt {
    /// Creates the receipt of a permit under a verified chain.
    pub fn permit(call: DecidedCall, chain: impl Into<ReceiptSubject>) -> ExecutionReceipt {
        ExecutionReceipt::new(call, Outcome::Permit, chain.into())
    }

    /// Creates the receipt of a denial of a call that presented this chain, verified or not.
    pub fn denial(call: DecidedCall, chain: impl Into<ReceiptSubject>, denial: &Denial) -> ExecutionReceipt {
        ExecutionReceipt::new(call, Outcome::Deny(denial.into()), chain.into())
    }

    /// Creates the receipt of a denial of a call without a readable root envelope, with all placeholders. The code
    /// is `no_envelope` if the denial has that code, and `malformed` otherwise.
    pub fn denial_without_root(call: DecidedCall, denial: &Denial) -> ExecutionReceipt {
        let malformed = "a chain without a readable root envelope";
        let stated = match denial.code == NO_ENVELOPE {
            true => Denial::no_envelope(),
            false => Denial { hop: denial.hop, ..Denial::malformed(malformed) },
        };
        let receipt = ExecutionReceipt::new(call, Outcome::Deny((&stated).into()), ReceiptSubject::missing());
        ExecutionReceipt { chain: None, ..receipt }
    }

    fn new(call: DecidedCall, outcome: Outcome, subject: ReceiptSubject) -> ExecutionReceipt {
        let DecidedCall { aer_id, produced_at, mode, action, gateway, plan_hash } = call;
        let ReceiptSubject { session, policy, chain } = subject;
        let chain = Some(chain);
        ExecutionReceipt {
            aer_id,
            produced_at,
            outcome,
            mode,
            session,
            action,
            policy,
            chain,
            gateway,
            plan_hash,
        }
    }
}

impl From<&VerifiedChain> for ReceiptSubject {
    fn from(chain: &VerifiedChain) -> ReceiptSubject {
        ReceiptSubject::of(chain.root(), chain.holder(), chain.depth(), chain.digest())
    }
}

impl From<&Chain> for ReceiptSubject {
    fn from(chain: &Chain) -> ReceiptSubject {
        ReceiptSubject::of(chain.root().document(), chain.holder(), chain.hops().len(), chain.digest())
    }
}

impl ReceiptSubject {
    /// Returns the placeholders.
    fn missing() -> ReceiptSubject {
        fn fixed<T: FromStr<Err = NotOfForm>>(text: &str) -> T {
            text.parse().expect("a placeholder has the form of its member")
        }
        ReceiptSubject {
            session: Session { id: fixed(NO_SESSION), agent: fixed(UNKNOWN_AGENT), device_attestation: None },
            policy: PolicyBinding { id: fixed(NO_POLICY), digest: NO_POLICY_DIGEST },
            chain: ChainSummary { depth: 0, root: fixed(NO_ROOT), digest: EMPTY_CHAIN },
        }
    }

    fn of(root: &Envelope, holder: &AgentId, depth: usize, digest: Sha256Digest) -> ReceiptSubject {
        ReceiptSubject {
            session: Session {
                id: root.session.session_id.clone(),
                agent: holder.clone(),
                device_attestation: root.session.device_attestation_ref.clone(),
            },
            policy: PolicyBinding { id: root.policy.policy_id.clone(), digest: root.policy.policy_digest },
            chain: ChainSummary { depth: depth as u64, root: root.envelope_id.clone(), digest },
        }
    }
}

impl From<&Denial> for RecordedDenial {
    fn from(denial: &Denial) -> RecordedDenial {
        let code = denial.code.parse().ok();
        RecordedDenial {
            reason: denial.reason,
            detail: code.map(|code| DenialDetail {
                code,
                hop: denial.hop.map(|hop| hop as u64),
                dimension: denial.dimension.and_then(|dimension| dimension.as_str().parse().ok()),
            }),
            revocation: denial.revocation.filter(|_| denial.reason == DenialReason::EnvelopeRevoked),
        }
    }
}

impl CalledTool {
    /// Describes a requested call. A tool's name of more than [`MAX_RECORDED_TOOL`] characters is cut, and ends with `…`.
    ///
    /// # Errors
    /// [`NotOfForm`] if the server's name has a dot.
    pub fn new(server: Text, tool: &str, input_hash: Sha256Digest) -> Result<CalledTool, NotOfForm> {
        let tool = match tool.char_indices().nth(MAX_RECORDED_TOOL) {
            Some((end, _)) => format!("{}…", &tool[..end]),
            None => tool.to_owned(),
        };
        let fits = !server.as_str().contains('.');
        fits.then_some(CalledTool { server, tool, input_hash })
            .ok_or(NotOfForm("the name of a server without a dot"))
    }

    /// Returns the capability, `mcp:<server>.<tool>`.
    pub fn capability(&self) -> String {
        format!("mcp:{}.{}", self.server, self.tool)
    }
}

/// Computes `input_hash`: the digest of the canonical arguments, or of `{}` for a call without arguments. If a
/// number would lose digits in the canonical form, it is the digest of the text itself, without blanks around it.
pub fn input_hash(arguments: Option<CheckedJson<'_>>) -> Sha256Digest {
    let Some(arguments) = arguments else { return Sha256Digest::of(b"{}") };
    match jose::jcs::canonical_of_text(arguments) {
        Ok(bytes) => Sha256Digest::of(&bytes),
        Err(text) => Sha256Digest::of(text.as_bytes()),
    }
}

impl Mode {
    /// Returns the value of `enforcement_mode`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Mode::Normal => "normal",
            Mode::Degraded { .. } => "degraded",
        }
    }

    /// Returns the reason for degraded operation, if given.
    pub fn reason(&self) -> Option<&Code> {
        match self {
            Mode::Normal => None,
            Mode::Degraded { reason } => reason.as_ref(),
        }
    }

    /// Returns whether a degraded decision has no reason.
    pub fn lacks_reason(&self) -> bool {
        matches!(self, Mode::Degraded { reason: None })
    }
}

impl Outcome {
    /// Returns the value of `enforcement_outcome`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::Permit => "permit",
            Outcome::Deny(_) => "deny",
        }
    }

    /// Returns the denial, or `None` for a permit.
    pub fn denial(&self) -> Option<&RecordedDenial> {
        match self {
            Outcome::Permit => None,
            Outcome::Deny(denial) => Some(denial),
        }
    }
}

impl RecordedDenial {
    /// Returns the gateway's code, if the receipt has one.
    pub fn code(&self) -> Option<&str> {
        self.detail.as_ref().map(|detail| detail.code.as_str())
    }
}

impl fmt::Display for RecordedDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.as_str())?;
        let Some(detail) = &self.detail else { return Ok(()) };
        write!(f, " ({})", detail.code)?;
        if let Some(hop) = detail.hop {
            write!(f, " at hop {hop}")?;
        }
        match &detail.dimension {
            Some(dimension) => write!(f, ", {dimension}"),
            None => Ok(()),
        }
    }
}
