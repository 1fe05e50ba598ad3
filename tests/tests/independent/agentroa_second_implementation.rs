//! A second implementation decides `vectors/agentroa` as ours does: see tests/python/agentroa_vectors.py.

use std::path::Path;

#[test]
fn python_of_its_own_decides_the_same_about_every_chain_proof_and_registry() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/agentroa");
    let decided = black_box::run_python("agentroa_vectors.py", &[vectors.to_str().unwrap()]);
    let folders = vectors.read_dir().unwrap().map(|folder| folder.unwrap().path());
    let files: usize = folders.map(|folder| folder.read_dir().unwrap().count()).sum();
    let count = |outcome: &str| usize::try_from(decided[outcome].as_u64().unwrap()).unwrap();
    let outcomes = ["permit", "deny", "accept", "sequence"].map(count);
    assert_eq!(outcomes.iter().sum::<usize>(), files);
    assert!(count("permit") > 10 && count("deny") > 100 && count("sequence") > 50, "{decided}");
    assert!(count("draft") > 30, "the draft's algorithm beside ours: {decided}");
}
