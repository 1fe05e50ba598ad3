//! A second implementation decides `vectors/lookup-tree` as ours does: see tests/python/lookup_tree_vectors.py.

use std::path::Path;

#[test]
fn python_of_its_own_computes_the_same_roots_and_decides_the_same_about_heads_and_proofs() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/lookup-tree");
    let decided = black_box::run_python("lookup_tree_vectors.py", &[vectors.to_str().unwrap()]);
    for family in ["key", "root", "schedule", "head", "proof", "answer"] {
        let files = vectors.join(family).read_dir().unwrap().count();
        assert!(files > 5, "{family}");
        assert_eq!(decided[family], files, "{family}");
    }
}
