//! The files that a service's configuration refers to.

use std::path::Path;

use scitt::SignedStatement;
use verifier::TrustStore;
use verifier::trust::MAX_TRUST_BYTES;

use super::BadService;

pub fn trust(path: &Path) -> Result<TrustStore, BadService> {
    let bad = |why: String| BadService::File { path: path.to_owned(), why };
    let text = String::from_utf8(read(path)?).map_err(|why| bad(why.to_string()))?;
    let trust = TrustStore::from_toml(&text).map_err(|why| bad(why.to_string()))?;
    match trust.logs.is_empty() {
        true => Err(bad("no log is trusted in it: no receipt could be verified".into())),
        false => Ok(trust),
    }
}

pub fn statement(path: &Path) -> Result<SignedStatement, BadService> {
    SignedStatement::parse(read(path)?)
        .map_err(|why| BadService::File { path: path.to_owned(), why: why.to_string() })
}

pub fn read(path: &Path) -> Result<Vec<u8>, BadService> {
    let most = (MAX_TRUST_BYTES.max(scitt::limits::TRANSPARENT_BYTES)) as u64;
    let bad = |why: String| BadService::File { path: path.to_owned(), why };
    let bytes = durable::read(path, most).map_err(|why| bad(why.to_string()))?;
    bytes.ok_or_else(|| bad("there is no such file".into()))
}
