//! The OpenAPI description.

#[test]
fn the_checked_in_description_is_that_of_the_routes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/verification.json");
    let now = verification::openapi_json();
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == now,
        "openapi/verification.json drifted: run the tests with UPDATE_OPENAPI=1 and look at the difference"
    );
}
