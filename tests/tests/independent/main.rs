//! Software of others, and second implementations in Python, against ours.
#![allow(clippy::unwrap_used)]

mod admission_second_implementation;
mod agentroa_second_implementation;
mod browser_verifier;
mod bundle_second_implementation;
mod c2sp_by_others;
mod ccf_ledgers;
mod independent_software;
mod lookup_tree_second_implementation;
mod proven_search;
mod sdk_python;
mod sdk_typescript;
mod search_terms_second_implementation;
mod vector_generators;
mod witnesses_by_others;
