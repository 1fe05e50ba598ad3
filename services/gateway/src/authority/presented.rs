//! The chain that a request presents, with the checks that need no stored state.

use std::sync::Arc;

use admission::arguments::CallArguments;
use admission::principal::Caller;
use moka::sync::Cache;
use roa::capability::Capability;
use roa::chain::Chain;
use roa::denial::{Denial, DenialReason};
use roa::proof::{Proof, ProvenCall, verify_proof};
use roa::registry::{OAuthClient, Presenter, Registry, RegistryVersion};
use roa::text::{Sha256Digest, UtcTime};
use roa::verify::{VerifiedChain, verify_chain};

use super::{AgentRoa, CurrentRegistry};
use crate::limits::VERIFIED_CHAINS;

/// The AgentROA material of a request, as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainMaterial {
    /// The JSON text of the chain in `_meta`.
    pub meta: Option<String>,
    /// The JSON text of the chain in the header `AgentROA`; an error if the header is not base64url.
    pub header: Option<Result<String, ()>>,
    /// The compact JWS of the proof of possession in the message.
    pub proof: Option<String>,
    /// The compact JWS in the header `AgentROA-Proof`.
    pub header_proof: Option<String>,
}

impl ChainMaterial {
    /// Returns the text of the chain.
    fn text(&self) -> Option<&str> {
        let header = || self.header.as_ref()?.as_deref().ok();
        self.meta.as_deref().or_else(header)
    }

    /// Returns the proof of possession. If it is in the message and in the header, both must be equal, as for the chain.
    fn proof(&self) -> Result<Option<&str>, Denial> {
        match (&self.proof, &self.header_proof) {
            (Some(proof), Some(header)) if proof != header => {
                Err(Denial::malformed("the message and the header AgentROA-Proof have different proofs"))
            }
            (proof, header) => Ok(proof.as_deref().or(header.as_deref())),
        }
    }

    /// Returns `true` if the request has a chain or a proof.
    #[must_use]
    pub fn is_present(&self) -> bool {
        *self != Self::default()
    }
}

/// A chain that was verified under the registry at its arrival.
#[derive(Clone, Debug)]
pub struct PresentedChain {
    /// The chain; an error if there is none, or it is malformed.
    pub chain: Result<Arc<Chain>, Denial>,
    /// The verified chain.
    pub verified: Result<Arc<VerifiedChain>, Denial>,
    /// The version of the registry under which it was verified; `None` if it was not.
    pub version: Option<RegistryVersion>,
    /// `true` if the chain may be registered although it is denied.
    pub is_registrable: bool,
    /// The identity of the caller, if one is proven.
    pub presenter: Result<Option<Presenter>, Denial>,
    /// The proof of possession, of which the `jti` may be used once.
    pub proof: Option<Proof>,
}

/// The call that a chain is presented for.
#[derive(Clone, Copy, Debug)]
pub struct PresentedFor<'a> {
    /// The capability of the called tool; `None` if it has none.
    pub capability: Option<&'a Capability>,
    /// The arguments.
    pub arguments: &'a CallArguments,
    /// The caller.
    pub caller: &'a Caller,
}

/// Verified chains by their digest, until they end or the registry changes. The texts that presented them lead to them, which
/// saves reading a text again; a text is remembered by its digest alone, since one chain has any number of them.
pub(super) struct VerifiedChains {
    chains: Cache<Sha256Digest, KnownChain>,
    texts: Cache<Sha256Digest, Sha256Digest>,
}

/// A chain, as read and as verified.
#[derive(Clone)]
struct KnownChain {
    chain: Arc<Chain>,
    verified: Arc<VerifiedChain>,
}

impl Default for VerifiedChains {
    fn default() -> Self {
        Self { chains: Cache::new(VERIFIED_CHAINS), texts: Cache::new(VERIFIED_CHAINS) }
    }
}

impl VerifiedChains {
    /// Reads a text, unless it presented a chain that was verified before.
    fn read(&self, text: &str) -> Result<Arc<Chain>, Denial> {
        let digest = self.texts.get(&Sha256Digest::of(text.as_bytes()));
        match digest.and_then(|digest| self.chains.get(&digest)) {
            Some(known) => Ok(known.chain),
            None => Chain::parse(text.as_bytes()).map(Arc::new),
        }
    }

    /// Remembers the text of a chain that was verified.
    fn remember(&self, material: &ChainMaterial, chain: &Chain) {
        if let Some(text) = material.text() {
            self.texts.entry(Sha256Digest::of(text.as_bytes())).or_insert_with(|| chain.digest());
        }
    }
}

impl PresentedChain {
    /// Returns the presentation of no chain.
    #[must_use]
    pub fn absent() -> Self {
        let (chain, verified) = (Err(Denial::no_envelope()), Err(Denial::no_envelope()));
        let (version, is_registrable) = (None, false);
        Self { chain, verified, version, is_registrable, presenter: Ok(None), proof: None }
    }
}

impl AgentRoa {
    /// Reads and verifies the material of a call.
    #[must_use]
    pub fn presented(&self, material: &ChainMaterial, call: PresentedFor<'_>) -> PresentedChain {
        let now = UtcTime(self.now());
        let chain = self.read(material);
        let current = self.registry.current();
        let verified = match (&chain, &current) {
            (Err(denial), _) => Err(denial.clone()),
            (Ok(_), None) => Err(registry_unavailable()),
            (Ok(chain), Some(current)) => self.verified(chain, &current.registry, now),
        };
        if let (Ok(chain), Ok(_)) = (&chain, &verified) {
            self.verified.remember(material, chain);
        }
        let (version, is_registrable) = match (&chain, &current) {
            (Ok(chain), Some(current)) => {
                let registry = &current.registry;
                (Some(registry.version()), self.is_registrable(chain, &verified, registry))
            }
            _ => (None, false),
        };
        let proof = match (&chain, &current, material.proof()) {
            (Ok(chain), Some(current), Ok(Some(text))) => {
                Some(self.proof(text, chain, call, &current.registry, now))
            }
            (Ok(_), Some(_), Err(denial)) => Some(Err(denial)),
            _ => None,
        };
        let (presenter, proof) = match proof {
            Some(Ok(proof)) => (Ok(Some(Presenter::Proof(proof.agent.clone()))), Some(proof)),
            Some(Err(denial)) => (Err(denial), None),
            None => (Ok(presenter_of(call.caller, &chain, current.as_deref())), None),
        };
        PresentedChain { chain, verified, version, is_registrable, presenter, proof }
    }

    /// Reads the chain. If it is in the message and in the header, both must be equal.
    fn read(&self, material: &ChainMaterial) -> Result<Arc<Chain>, Denial> {
        let header = match &material.header {
            Some(Err(())) => return Err(Denial::malformed("the header AgentROA is not base64url")),
            Some(Ok(text)) => Some(self.verified.read(text)?),
            None => None,
        };
        let meta = material.meta.as_ref().map(|text| self.verified.read(text)).transpose()?;
        match (meta, header) {
            (Some(meta), Some(header)) if meta.digest() != header.digest() => {
                Err(Denial::malformed("the message and the header AgentROA have different chains"))
            }
            (Some(chain), _) | (None, Some(chain)) => Ok(chain),
            (None, None) => Err(Denial::no_envelope()),
        }
    }

    /// Verifies a chain under a version of the registry, unless it was verified under this one before.
    pub(super) fn verified(
        &self,
        chain: &Arc<Chain>,
        registry: &Registry,
        now: UtcTime,
    ) -> Result<Arc<VerifiedChain>, Denial> {
        let digest = chain.digest();
        let known = self.verified.chains.get(&digest).map(|known| known.verified);
        if let Some(known) = known.filter(|known| known.version() == registry.version()) {
            return not_ended(&known, now).map(|()| known);
        }
        let verified = Arc::new(verify_chain(chain, registry, self.bounds, now)?);
        self.verified.chains.insert(digest, KnownChain { chain: chain.clone(), verified: verified.clone() });
        Ok(verified)
    }

    fn proof(
        &self,
        text: &str,
        chain: &Chain,
        call: PresentedFor<'_>,
        registry: &Registry,
        now: UtcTime,
    ) -> Result<Proof, Denial> {
        let Some(capability) = call.capability else { return Err(no_capability()) };
        let input_hash = Sha256Digest::of(&call.arguments.canonical().bytes);
        let proven = ProvenCall {
            chain_digest: chain.digest(),
            holder: chain.holder(),
            capability,
            input_hash,
            audience: &self.audience,
        };
        verify_proof(text, proven, registry, self.bounds.clock_skew_seconds, now)
    }
}

/// Checks that the root envelope has not ended since the chain was verified.
pub(super) fn not_ended(chain: &VerifiedChain, now: UtcTime) -> Result<(), Denial> {
    match now < chain.root().expires_at {
        true => Ok(()),
        false => {
            Err(Denial::new(DenialReason::EnvelopeExpired, "expired", "the envelope has ended").at_hop(0))
        }
    }
}

/// Returns the denial while no registry was ever read, or the one in force is out of date.
pub(super) fn registry_unavailable() -> Denial {
    let detail = "there is no current version of the registry";
    Denial::new(DenialReason::InvalidSignature, "registry_unavailable", detail)
}

/// Returns the denial of a tool that no capability can name.
pub(super) fn no_capability() -> Denial {
    Denial::new(
        DenialReason::CapabilityNotInScope,
        "no_capability",
        "the tool belongs to no server of the route",
    )
}

/// Returns the identity by which the transport knows the caller. If it has several, the one that the registry knows for
/// the holder of the chain comes first.
fn presenter_of(
    caller: &Caller,
    chain: &Result<Arc<Chain>, Denial>,
    current: Option<&CurrentRegistry>,
) -> Option<Presenter> {
    let identities: Vec<Presenter> = oauth_client(caller).into_iter().chain(certificate(caller)).collect();
    let is_holder = |identity: &&Presenter| match (chain, current) {
        (Ok(chain), Some(current)) => current.registry.is_presenter(identity, chain.holder()),
        _ => false,
    };
    identities.iter().find(is_holder).or(identities.first()).cloned()
}

/// Returns the caller's client certificate.
fn certificate(caller: &Caller) -> Option<Presenter> {
    caller.certificate.as_ref()?.parse().ok().map(Presenter::Certificate)
}

/// Returns the OAuth client of the caller's access token.
fn oauth_client(caller: &Caller) -> Option<Presenter> {
    let token = caller.token.as_ref()?;
    let client =
        OAuthClient { issuer: token.iss.parse().ok()?, client_id: token.client_id.as_ref()?.parse().ok()? };
    Some(Presenter::OAuthClient(client))
}
