//! Bundles: their vectors, the schema, and the agreement with other crates.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cases;
mod log;
mod schema;
mod vectors;

/// What a verdict says about a bundle that somebody shortened, list included, must be true of it.
#[test]
fn a_list_that_somebody_shortened_is_not_told_as_the_word_of_the_log() {
    let mut bundle = log::TestLog::new().bundle();
    bundle.entries.remove(1);
    bundle.selections[0].entries.remove(1);
    let verdict = bundle.verify(&log::trust(), None, testkit::NOW);
    let told: Vec<&str> = verdict.checks.iter().map(|check| check.detail.as_str()).collect();
    let [listed, completeness] = told[..] else { panic!("{told:?}") };
    assert_eq!(listed, "all entries that the bundle lists of session \"session-1\": 2");
    assert!(completeness.starts_with("no signature shows that"), "{completeness}");
}

#[test]
fn the_content_type_of_a_policy_is_that_of_registration() {
    assert_eq!(bundle::POLICY_TYPE, registration::POLICY_CONTENT_TYPE);
}
