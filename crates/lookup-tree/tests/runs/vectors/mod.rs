//! `vectors/lookup-tree`: one file per case, and every case gets what it expects.
//!
//! `WRITE_VECTORS=1` writes the files anew.

mod answers;
mod heads;
mod proofs;
mod roots;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The content of a family of cases, by their names.
type Cases = BTreeMap<&'static str, Value>;

#[test]
fn the_vectors_are_what_the_cases_describe() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/lookup-tree");
    let families = [
        ("key", roots::keys()),
        ("root", roots::roots()),
        ("schedule", heads::schedules()),
        ("head", heads::heads()),
        ("proof", proofs::proofs()),
        ("answer", answers::answers()),
    ];
    for (family, cases) in families {
        let folder = folder.join(family);
        if std::env::var_os("WRITE_VECTORS").is_some() {
            write(&folder, &cases);
        }
        assert_eq!(files(&folder), cases.keys().map(|name| format!("{name}.json")).collect());
        for (name, case) in &cases {
            let path = folder.join(name).with_extension("json");
            assert_eq!(fs::read_to_string(&path).unwrap(), text(case), "{}", path.display());
        }
    }
}

fn write(folder: &Path, cases: &Cases) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    for (name, case) in cases {
        fs::write(folder.join(name).with_extension("json"), text(case)).unwrap();
    }
}

fn files(folder: &Path) -> BTreeSet<String> {
    folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn text(case: &Value) -> String {
    serde_json::to_string_pretty(case).unwrap() + "\n"
}
