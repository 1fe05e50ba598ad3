//! `vectors/<family>`: for every rule a statement that keeps it and statements that break it and nothing else.
//!
//! The files are the contract, readable by any implementation. `vectors/sources` describes how they are made; after a change
//! there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test vectors`.

#![allow(clippy::unwrap_used)]

/// Name, reading and section of every rule of these types.
macro_rules! rules_of {
    ($($rules:ty),+) => {{
        let mut all = Vec::new();
        $(all.extend(<$rules>::ALL.iter().map(|rule| (rule.name(), rule.reading(), rule.section())));)+
        all
    }};
}

/// The tests of these families, with these rules, of which each vector is registered like this.
macro_rules! tests_of_vectors {
    ($families:expr, $rules:expr, $register:expr) => {
        #[test]
        fn every_vector_is_admitted_or_refused_by_the_rule_it_names() {
            $crate::decided::must_fare_as_they_say($families, $register);
        }

        #[test]
        fn every_rule_has_a_vector_that_keeps_it_and_one_that_breaks_it() {
            $crate::decided::must_show_every_rule($families, &$rules);
        }

        #[test]
        fn the_files_are_those_the_sources_describe() {
            $crate::decided::must_match_their_sources($families, &$rules);
        }
    };
}

mod aer;
mod agentroa;
mod conversation;
mod decided;
mod vap;
mod vrf;
