//! The files that a log is started with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use scitt::{Algorithm, SigningKey};

use crate::keys::operator;

/// Writes the files that `transparency::Config::in_folder` names: fresh keys of a log, the operator's key, and a policy.
pub fn write_log_files(folder: &Path, policy: &str) {
    let generate = |algorithm| SigningKey::generate(algorithm).expect("a key");
    for (name, key) in [
        ("receipt.pem", generate(Algorithm::Es256)),
        ("checkpoint.pem", generate(Algorithm::EdDsa)),
        ("operator.pem", operator()),
    ] {
        let file = folder.join(name);
        fs::write(&file, key.to_pkcs8_pem().expect("PKCS#8")).expect("a folder of the test");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a file of the test");
    }
    fs::write(folder.join("policy.toml"), policy).expect("a folder of the test");
}
