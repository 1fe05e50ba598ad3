//! Golden vectors that Python makes again, byte for byte, without our code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[test]
fn python_of_its_own_makes_the_vectors_of_merkle() {
    assert_made_again("merkle", &["merkle_vectors.py"]);
}

#[test]
fn python_of_its_own_makes_the_vectors_of_consistency() {
    assert_made_again("consistency", &["consistency_vectors.py"]);
}

#[test]
fn python_of_its_own_makes_the_vectors_of_tlog() {
    assert_made_again("tlog", &["tlog_vectors.py", "tlog_text_vectors.py"]);
}

/// Asserts that these scripts write exactly the files of a family.
#[track_caller]
fn assert_made_again(family: &str, scripts: &[&str]) {
    let made = tempfile::tempdir().unwrap();
    for script in scripts {
        black_box::run_python(script, &[made.path().to_str().unwrap()]);
    }
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors").join(family);
    let (made, stored) = (files(made.path()), files(&stored));
    assert!(!stored.is_empty());
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&made), names(&stored), "{family}");
    let differ: Vec<&PathBuf> = stored.keys().filter(|name| made[*name] != stored[*name]).collect();
    assert!(differ.is_empty(), "{family}: {differ:#?}");
}

/// Returns the content of all files below a folder, by their paths in it.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_owned();
                    files.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
    }
    files
}
