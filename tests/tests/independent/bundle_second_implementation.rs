//! A second implementation verifies `vectors/bundle` as ours does: see tests/python/bundle_vectors.py.

use std::path::Path;

#[test]
fn bundles_are_verified_alike_with_nothing_but_the_documentation() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/bundle");
    let decided = black_box::run_python("bundle_vectors.py", &[vectors.to_str().unwrap()]);
    for outcome in ["verified", "failed", "not-verified", "malformed"] {
        let cases = vectors.join(outcome).read_dir().unwrap().count();
        assert_eq!(decided[outcome], cases, "{outcome}");
    }
}
