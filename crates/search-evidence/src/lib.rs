//! Evidence about searches of a log: answers that are verified offline to be complete, and accusations against the index.
//!
//! A [`SearchAnswer`] is one file: the terms and leaves of the question, the proofs of the log's index under one head, an
//! evidence bundle (`bundle`) with the entries of the answer, the head and the policy that describes the index, the erased
//! entries, and attestations of monitors. [`SearchAnswer::verify`] goes from the cosigned checkpoint to the head, from there
//! to the leaves with the terms, and reads each entry again: the answer is complete if it has every entry that the index
//! names, and each says what the index says of it.
//!
//! [`check_accusation`] verifies a file that accuses a log of a wrong index.
//!
//! Both read the terms of statements as the log's index does (`registration::SearchValues`). Pure: no I/O, no clock. Not
//! here: proofs (`lookup-tree`, `verifier::index`), gathering an answer (`tabellion entry search --prove`), printing.

mod accusation;
mod answer;
mod encoding;
mod entries;
mod index_policy;
pub mod limits;
mod pages;
mod statement_terms;
mod verdict;
mod verify;

pub use accusation::{AccusationFault, check_accusation};
pub use answer::{ErasedEntry, SearchAnswer, SearchQuestion};
pub use encoding::{MalformedAnswer, starts_like_an_answer};
pub use index_policy::{NoIndexPolicy, PolicyIndex};
pub use pages::{PagesVerdict, ProvenPages};
pub use statement_terms::search_term;
pub use verdict::{
    AnswerGap, AnswerOutcome, AnswerVerdict, FoundEntry, QuestionFacts, SearchedLeaves, TermFacts,
};
pub use verify::AnswerReader;
