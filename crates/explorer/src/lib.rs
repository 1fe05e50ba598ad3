//! The explorer: web pages of a log, for people. View models in, HTML out.
//!
//! A page is a plain struct of texts and numbers, and a function that renders it in a `PageFrame`. Texts come from
//! statements of untrusted parties: `text` escapes what is invisible or reorders other text, and the templates escape
//! HTML. No text becomes a link, except names that lead to a page of this explorer. All pages work without JavaScript.
//!
//! Not here: reading the log, roles and HTTP (`transparency`), and verification.

mod layout;
mod pages;
mod rows;
mod text;

pub use layout::{PageFrame, STYLE, session_address, static_page};
pub use pages::alarms::{AlarmsPage, IssuerContradiction, SignatureState, TreeConflict, TreeView};
pub use pages::chain::{ChainItem, ChainPage};
pub use pages::checkpoints::{CheckpointRow, CheckpointsPage, WitnessRow};
pub use pages::consistency::{CheckpointNote, ConsistencyPage, ProvenTree};
pub use pages::delegation::{DelegationChain, DelegationHop, HopLimit, NameList, ReceiptChain};
pub use pages::entry::{EntryBody, EntryPage, PayloadText, RelatedEntries};
pub use pages::growth::{GrowthPage, GrowthPoint};
pub use pages::home::HomePage;
pub use pages::issuer::{DatedLeaf, IssuerPage};
pub use pages::policy::{PolicyPage, PolicyRow};
pub use pages::problem::ProblemPage;
pub use pages::proof::{ProofLevel, ProofPage};
pub use pages::search::{SearchField, SearchPage};
pub use pages::session::{PreviousRecord, SessionPage, SessionStream, TimelineItem};
pub use pages::status::{LatencyRow, StatusPage};
pub use rows::EntryRow;
pub use text::{EXCERPT_BYTES, Excerpt};
