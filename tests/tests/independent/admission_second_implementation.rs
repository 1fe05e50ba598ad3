//! A second implementation decides `vectors/admission` as ours does: see tests/python/admission_vectors.py.

use std::path::{Path, PathBuf};

#[test]
fn python_of_its_own_decides_the_same() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/admission");
    let told = black_box::run_python("admission_vectors.py", &[vectors.to_str().unwrap()]);
    for folder in ["arguments", "chain", "pattern", "rule", "signature", "verdict"] {
        assert_eq!(told[folder], count(vectors.join(folder)), "{folder}");
    }
    assert!(told["message"].as_u64().unwrap() > 0, "digests of what is accepted");
}

fn count(folder: PathBuf) -> usize {
    folder.read_dir().unwrap().count()
}
