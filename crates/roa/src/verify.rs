//! VerifyChain (section 5.3): from a presented chain to what it proves.
//!
//! The steps run in the order of the draft, and the first failure is the denial. The result does not depend on the
//! requested capability, so it can be kept until the chain ends or the registry changes.

use jiff::SignedDuration;

use crate::attestation::{Attestation, RefType};
use crate::chain::Chain;
use crate::denial::{Denial, DenialReason, Dimension};
use crate::envelope::Envelope;
use crate::registry::{KeyEntry, KeyRole, Registry, RegistryVersion, RevokedSubject};
use crate::scope::{Budget, Scope};
use crate::signed::{Document, Signed};
use crate::text::{AgentId, EnvelopeId, Sha256Digest, Text, UtcTime};

/// The operator's bounds on times.
#[derive(Clone, Copy, Debug)]
pub struct TimeBounds {
    /// The number of seconds by which `issued_at` may lie ahead of our clock.
    pub clock_skew_seconds: i64,
    /// The longest validity of an envelope in seconds.
    pub max_lifetime_seconds: i64,
}

/// The default of [`TimeBounds::clock_skew_seconds`]: five minutes.
pub const DEFAULT_CLOCK_SKEW: i64 = 5 * 60;
/// The default of [`TimeBounds::max_lifetime_seconds`]: one day.
pub const DEFAULT_MAX_LIFETIME: i64 = 24 * 60 * 60;

impl Default for TimeBounds {
    fn default() -> TimeBounds {
        TimeBounds { clock_skew_seconds: DEFAULT_CLOCK_SKEW, max_lifetime_seconds: DEFAULT_MAX_LIFETIME }
    }
}

/// A chain that was verified under one version of the registry.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedChain {
    root: Envelope,
    /// The digest of the root without its signatures.
    root_content: Sha256Digest,
    digest: Sha256Digest,
    holder: AgentId,
    scopes: Vec<Scope>,
    ledgers: Vec<ChainLedger>,
    authorizers: usize,
    /// The first hop whose policy is not that of the root.
    other_policy_at: Option<usize>,
    version: RegistryVersion,
}

/// A ledger that calls under a chain count against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLedger {
    /// The hop that declares the budget: 0 for the root.
    pub hop: usize,
    /// The digest of the object that declares it, without its signatures: all chains through this object share the ledger,
    /// whoever signed it besides.
    pub object: Sha256Digest,
    /// The budget.
    pub budget: Budget,
}

impl VerifiedChain {
    /// Returns the root envelope.
    pub fn root(&self) -> &Envelope {
        &self.root
    }

    /// Returns the digest of the root envelope without its signatures, which others may repeat or add to.
    pub fn root_content(&self) -> Sha256Digest {
        self.root_content
    }

    /// Returns the identifier of the root envelope.
    pub fn envelope_id(&self) -> &EnvelopeId {
        &self.root.envelope_id
    }

    /// Returns the digest of the chain.
    pub fn digest(&self) -> Sha256Digest {
        self.digest
    }

    /// Returns the agent that the last object names: the only one that may present the chain.
    pub fn holder(&self) -> &AgentId {
        &self.holder
    }

    /// Returns the number of delegations.
    pub fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    /// Returns the scope in effect.
    pub fn scope(&self) -> &Scope {
        self.scopes.last().expect("a chain has a root")
    }

    /// Returns the scope at each hop, from the root.
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Returns the ledgers that a call under the chain needs room in.
    pub fn ledgers(&self) -> &[ChainLedger] {
        &self.ledgers
    }

    /// Returns the number of different authorizers that signed the root.
    pub fn authorizers(&self) -> usize {
        self.authorizers
    }

    /// Returns the first hop whose policy digest is not that of the root.
    pub fn other_policy_at(&self) -> Option<usize> {
        self.other_policy_at
    }

    /// Returns the version of the registry under which the chain was verified.
    pub fn version(&self) -> RegistryVersion {
        self.version
    }
}

/// Verifies a chain: signatures and their roles, times, revocations, hash chain, continuity of holders, organisations,
/// and the narrowing of the scope at every hop.
///
/// # Errors
/// [`Denial`] with the hop of the first failure.
pub fn verify_chain(
    chain: &Chain,
    registry: &Registry,
    bounds: TimeBounds,
    now: UtcTime,
) -> Result<VerifiedChain, Denial> {
    let root = chain.root().document();
    let authorizers = verify_root(chain.root(), registry, bounds, now).map_err(|denial| denial.at_hop(0))?;
    let scope = Scope::of_root(&root.declared_scope(), registry.classifications());
    let mut walk = Walk {
        registry,
        now,
        skew: bounds.clock_skew_seconds,
        root,
        parent: Parent::of_root(chain.root()),
        scopes: vec![scope.map_err(|denial| denial.at_hop(0))?],
    };
    for (before, hop) in chain.hops().iter().enumerate() {
        walk.step(hop).map_err(|denial| denial.at_hop(before + 1))?;
    }
    let differs =
        |hop: &Signed<Attestation>| hop.document().policy.policy_digest != root.policy.policy_digest;
    Ok(VerifiedChain {
        root: root.clone(),
        root_content: chain.root().content_digest(),
        digest: chain.digest(),
        holder: walk.parent.holder.clone(),
        scopes: walk.scopes,
        ledgers: ledgers(chain),
        authorizers,
        other_policy_at: chain.hops().iter().position(differs).map(|before| before + 1),
        version: registry.version(),
    })
}

/// Returns whether a chain is signed throughout by those whose scopes it passes on: an authorizer signed the root, and the
/// holder of each object the attestation that refers to it. Anyone else can write a chain for which this is `false`. Times,
/// scopes, and revocations of envelopes and attestations do not matter; a revoked key signs for nobody.
pub fn is_signed_throughout(chain: &Chain, registry: &Registry) -> bool {
    let mut parent = Parent::of_root(chain.root());
    let is_by_holder = |hop: &Signed<Attestation>| {
        let is_delegated = parent.check_delegation(hop, registry).is_ok();
        parent = Parent::of_hop(hop);
        is_delegated
    };
    verify_authorizers(chain.root(), registry).is_ok() && chain.hops().iter().all(is_by_holder)
}

/// Returns a ledger for the root and each hop that declares a budget.
fn ledgers(chain: &Chain) -> Vec<ChainLedger> {
    let root = (chain.root().content_digest(), chain.root().document().declared_scope().budget);
    let hops = chain.hops().iter().map(|hop| (hop.content_digest(), hop.document().declared_scope().budget));
    let objects = std::iter::once(root).chain(hops).enumerate();
    objects.filter_map(|(hop, (object, budget))| Some(ChainLedger { hop, object, budget: budget? })).collect()
}

/// Verifies the root envelope, and returns the number of different authorizers that signed it.
fn verify_root(
    root: &Signed<Envelope>,
    registry: &Registry,
    bounds: TimeBounds,
    now: UtcTime,
) -> Result<usize, Denial> {
    let envelope = root.document();
    let authorizers = verify_authorizers(root, registry)?;
    if let Some(position) = registry.revocation(&RevokedSubject::Envelope(envelope.envelope_id.clone())) {
        return Err(Denial::revoked(position, "the envelope"));
    }
    if now >= envelope.expires_at {
        let detail = format!("the envelope ended at {}", String::from(envelope.expires_at));
        return Err(Denial::new(DenialReason::EnvelopeExpired, "expired", detail));
    }
    let lifetime = envelope.expires_at.0.duration_since(envelope.issued_at.0);
    if lifetime > SignedDuration::from_secs(bounds.max_lifetime_seconds) {
        let (lifetime, most) = (lifetime.as_secs_f64(), bounds.max_lifetime_seconds);
        let detail = format!("a validity of {lifetime} s, at most {most}");
        return Err(Denial::new(DenialReason::ChainIntegrityViolation, "lifetime", detail));
    }
    not_from_the_future(envelope.issued_at, now, bounds.clock_skew_seconds)?;
    Ok(authorizers)
}

/// Verifies the signatures of the root envelope, and returns the number of different authorizers among the signers.
fn verify_authorizers(root: &Signed<Envelope>, registry: &Registry) -> Result<usize, Denial> {
    let envelope = root.document();
    let organization = envelope.session.agent_id.organization();
    let has_authority = |key: &KeyEntry| {
        key.role == KeyRole::Authorizer
            && key.organization.as_str() == organization
            && (key.policies.is_empty() || key.policies.contains(&envelope.policy.policy_id))
    };
    let signers = verify_signatures(root, registry, envelope.issued_at)?;
    let authorizers = signers.iter().filter(|key| has_authority(key)).map(|key| &key.signer);
    match registry.count_authorizers(authorizers) {
        0 => {
            let detail = format!("no signature is by an authorizer of {organization} for this policy");
            Err(Denial::new(DenialReason::InvalidSignature, "role", detail))
        }
        authorizers => Ok(authorizers),
    }
}

/// Verifies all signatures of an object with keys that were valid when it was issued, and returns the entries of these: a
/// key has several if it is an authorizer's of several organisations, or of several agents.
fn verify_signatures<'r, D: Document>(
    object: &Signed<D>,
    registry: &'r Registry,
    issued_at: UtcTime,
) -> Result<Vec<&'r KeyEntry>, Denial> {
    let mut signers = Vec::new();
    for signature in object.document().signatures().iter() {
        let keys: Vec<&KeyEntry> = registry.keys(&signature.signer, issued_at).collect();
        if keys.is_empty() {
            let detail = format!("no key of {} was valid at the time of issue", signature.signer);
            return Err(Denial::new(DenialReason::InvalidSignature, "unknown_signer", detail));
        }
        let Some(signing) = keys.iter().find(|key| object.is_by(signature, &key.public_key.0)) else {
            let detail = format!("not a signature of {} over this object", signature.signer);
            return Err(Denial::new(DenialReason::InvalidSignature, "signature", detail));
        };
        if let Some(position) = registry.key_revocation(&signing.public_key.0) {
            return Err(Denial::revoked(position, "a signing key"));
        }
        signers.extend(keys.iter().copied().filter(|key| key.public_key == signing.public_key));
    }
    Ok(signers)
}

/// Returns whether a time is further ahead of another clock than their allowed difference, in seconds.
pub(crate) fn is_ahead(time: UtcTime, now: UtcTime, skew: i64) -> bool {
    time.0.duration_since(now.0) > SignedDuration::from_secs(skew)
}

fn not_from_the_future(issued_at: UtcTime, now: UtcTime, skew: i64) -> Result<(), Denial> {
    match is_ahead(issued_at, now, skew) {
        true => {
            let ahead = issued_at.0.duration_since(now.0);
            let detail = format!("issued {} s ahead of the gateway's clock", ahead.as_secs_f64());
            Err(Denial::new(DenialReason::ChainIntegrityViolation, "not_yet_valid", detail))
        }
        false => Ok(()),
    }
}

/// The object before an attestation.
struct Parent {
    kind: RefType,
    id: String,
    digest: Sha256Digest,
    issued_at: UtcTime,
    holder: AgentId,
    /// The session of the holder; unknown for a delegate.
    session: Option<Text>,
}

impl Parent {
    fn of_root(root: &Signed<Envelope>) -> Parent {
        let envelope = root.document();
        Parent {
            kind: RefType::RoaEnvelope,
            id: envelope.envelope_id.to_string(),
            digest: root.digest(),
            issued_at: envelope.issued_at,
            holder: envelope.holder().clone(),
            session: Some(envelope.session.session_id.clone()),
        }
    }

    fn of_hop(hop: &Signed<Attestation>) -> Parent {
        let attestation = hop.document();
        Parent {
            kind: RefType::Ara,
            id: attestation.ara_id.to_string(),
            digest: hop.digest(),
            issued_at: attestation.issued_at,
            holder: attestation.holder().clone(),
            session: None,
        }
    }

    /// Checks that an attestation refers to this object, and that the agent that holds its scope signed it.
    fn check_delegation(&self, hop: &Signed<Attestation>, registry: &Registry) -> Result<(), Denial> {
        self.check_reference(hop.document())?;
        self.check_holder(hop.document())?;
        self.check_signatures(hop, registry)
    }

    /// Checks that the attestation refers to the object before it.
    fn check_reference(&self, attestation: &Attestation) -> Result<(), Denial> {
        let reference = &attestation.upstream_ref;
        let fits = reference.ref_digest == self.digest
            && reference.ref_type == self.kind
            && reference.ref_id.as_str() == self.id;
        match fits {
            true => Ok(()),
            false => {
                let detail = "upstream_ref is not the object before it in the chain";
                Err(Denial::new(DenialReason::ChainIntegrityViolation, "upstream_ref", detail))
            }
        }
    }

    /// Checks that the scope is delegated by the agent that holds it.
    fn check_holder(&self, attestation: &Attestation) -> Result<(), Denial> {
        let agent = &attestation.delegating_agent;
        let same_session = self.session.as_ref().is_none_or(|session| agent.session_id == *session);
        match agent.agent_id == self.holder && same_session {
            true => Ok(()),
            false => {
                let detail = format!("delegated by {}, but held by {}", agent.agent_id, self.holder);
                Err(Denial::new(DenialReason::ChainIntegrityViolation, "holder", detail))
            }
        }
    }

    fn check_signatures(&self, hop: &Signed<Attestation>, registry: &Registry) -> Result<(), Denial> {
        let signers = verify_signatures(hop, registry, hop.document().issued_at)?;
        let holder = &self.holder;
        match signers.iter().any(|key| key.role == KeyRole::Agent && key.agent_id.as_ref() == Some(holder)) {
            true => Ok(()),
            false => {
                let detail = format!("no signature is by {holder}");
                Err(Denial::new(DenialReason::InvalidSignature, "role", detail))
            }
        }
    }
}

/// The state of a verification between two hops.
struct Walk<'c> {
    registry: &'c Registry,
    now: UtcTime,
    skew: i64,
    root: &'c Envelope,
    parent: Parent,
    scopes: Vec<Scope>,
}

impl Walk<'_> {
    fn step(&mut self, hop: &Signed<Attestation>) -> Result<(), Denial> {
        let attestation = hop.document();
        self.parent.check_delegation(hop, self.registry)?;
        self.check_revocation(attestation)?;
        self.check_times(attestation)?;
        self.check_organization(attestation)?;
        let scope = self.scopes.last().expect("a chain has a root");
        self.scopes.push(scope.narrowed(&attestation.declared_scope(), self.registry.classifications())?);
        self.parent = Parent::of_hop(hop);
        Ok(())
    }

    fn check_revocation(&self, attestation: &Attestation) -> Result<(), Denial> {
        match self.registry.revocation(&RevokedSubject::Attestation(attestation.ara_id.clone())) {
            Some(position) => Err(Denial::revoked(position, "the attestation")),
            None => Ok(()),
        }
    }

    /// Checks that the attestation was issued after its parent and before the root's end.
    fn check_times(&self, attestation: &Attestation) -> Result<(), Denial> {
        let issued_at = attestation.issued_at;
        not_from_the_future(issued_at, self.now, self.skew)?;
        match self.parent.issued_at <= issued_at && issued_at < self.root.expires_at {
            true => Ok(()),
            false => {
                let detail = "issued before the object before it, or after the end of the envelope";
                Err(Denial::new(DenialReason::ChainIntegrityViolation, "window", detail))
            }
        }
    }

    /// Checks that the delegate is of the same organisation, unless the root permits others.
    fn check_organization(&self, attestation: &Attestation) -> Result<(), Denial> {
        let delegate = &attestation.delegated_agent.agent_id;
        let same = delegate.organization() == self.root.session.agent_id.organization();
        match same || self.root.authorized_scope.cross_org_permitted {
            true => Ok(()),
            false => {
                let detail =
                    format!("{delegate} is of another organisation, which the envelope does not permit");
                Err(Denial::new(DenialReason::ScopeExpansionViolation, "cross_org", detail)
                    .on(Dimension::Organization))
            }
        }
    }
}
