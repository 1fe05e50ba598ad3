//! Writes `vectors/merkle`: one file for each case.

#[path = "../tests/cases/mod.rs"]
mod cases;
#[path = "../tests/common/mod.rs"]
mod common;

use std::{fs, path::Path};

use serde::Serialize;

fn main() -> std::io::Result<()> {
    let cases = cases::Cases::all();
    cases.inclusion.iter().try_for_each(|(name, case)| write(name, case))?;
    cases.consistency.iter().try_for_each(|(name, case)| write(name, case))?;
    cases.roots.iter().try_for_each(|(name, case)| write(name, case))
}

fn write(name: &str, case: &impl Serialize) -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/merkle");
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(&folder))?;
    let mut text = serde_json::to_string_pretty(case)?;
    text.push('\n');
    fs::write(path, text)
}
