//! Agent Route Origin Authorization (draft-nivalto-agentroa-route-authorization-00).
//!
//! | module | content |
//! |---|---|
//! | [`envelope`], [`attestation`], [`chain`] | the signed objects, each read and written by one type |
//! | [`registry`] | keys with roles, agents, servers, policies and revocations |
//! | [`scope`], [`capability`] | what a scope grants, and how it narrows from hop to hop |
//! | [`verify`] | VerifyChain (section 5.3): from a chain to what it proves |
//! | [`enforce`] | Enforce (section 7.4): from a verified chain to the decision about a call |
//! | [`aer`] | execution receipts (section 6): what a gateway decided, read and written |
//! | [`explain`] | the decision of a receipt, made again |
//! | [`outline`] | the scope that each hop of a chain declares, for people; nothing is verified |
//! | [`proof`] | an agent's proof that it makes a call (R-3) |
//! | [`usage`] | the use of an envelope so far: presenters, pinned manifests, spent budgets |
//! | [`denial`] | the reasons of the draft, with hop and dimension |
//!
//! The draft is ambiguous and in places unsafe; the readings say what is done instead.
//!
//! `examples/verify_chain.rs` measures what a chain costs, from one delegation to eight.
//!
//! Not here: storage of replay states and budgets, transport of the chain, and fetching of a registry. Time is an
//! argument.

pub mod aer;
mod amount;
pub mod attestation;
pub mod capability;
pub mod chain;
pub mod denial;
pub mod enforce;
pub mod envelope;
pub mod explain;
pub mod limits;
pub mod outline;
pub mod placeholder;
pub mod proof;
pub mod registry;
pub mod scope;
pub mod signed;
pub mod text;
pub mod usage;
pub mod verify;
