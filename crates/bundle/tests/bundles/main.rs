//! Bundles: their vectors, the schema, and the agreement with other crates.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cases;
mod log;
mod schema;
mod vectors;

#[test]
fn the_content_type_of_a_policy_is_that_of_registration() {
    assert_eq!(bundle::POLICY_TYPE, registration::POLICY_CONTENT_TYPE);
}
