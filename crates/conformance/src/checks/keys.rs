//! Published keys (SCRAPI, sections 2.1 and 2.2).

use display::counted;
use http::StatusCode;
use scitt::{CoseKey, KeyError, KeySet, media};

use crate::check::{ConformanceCheck, must, should};
use crate::judgement::{Judgement, not_applicable, require, violated};
use crate::observations::Observations;
use crate::probe::Probe;

/// The checks of this module.
pub const CHECKS: &[ConformanceCheck] = &[
    must("keys-status", "SCRAPI-11, 2.1", "GET /.well-known/scitt-keys answers 200", |observations| {
        status_ok(observations, Probe::Keys)
    }),
    must(
        "keys-content-type",
        "SCRAPI-11, 2.1",
        "The key set has the type application/cbor",
        |observations| cbor_type(observations, Probe::Keys),
    ),
    must(
        "keys-set",
        "SCRAPI-11, 2.1; RFC 9052, 7",
        "The body is a COSE_KeySet with a usable key",
        usable_set,
    ),
    must("keys-public", "RFC 9943, 9.4", "No published key contains a secret key", no_secret_key),
    should("keys-kid", "SCRAPI-11, 2.2", "Every key has a kid, and no two keys share one", distinct_kids),
    should(
        "keys-thumbprint",
        "SCRAPI-11, 2.2; RFC 9679",
        "The kid is the key's COSE Key Thumbprint",
        thumbprints,
    ),
    must(
        "key-status",
        "SCRAPI-11, 2.2",
        "A key is found by the unpadded base64url of its kid",
        |observations| status_ok(observations, Probe::KeyByKid),
    ),
    must(
        "key-content-type",
        "SCRAPI-11, 2.2",
        "A single key has the type application/cbor",
        |observations| cbor_type(observations, Probe::KeyByKid),
    ),
    must(
        "key-body",
        "SCRAPI-11, 2.2",
        "The body is one COSE_Key map, the key with this kid",
        |observations| same_key(observations, Probe::KeyByKid),
    ),
    must(
        "key-raw-kid",
        "SCRAPI-11, 2.2",
        "A kid that is safe in a path also names its key in raw form",
        raw_kid,
    ),
    must("key-unknown", "SCRAPI-11, 2.2", "An unknown kid is answered with 404", |observations| {
        observations.require_status(Probe::UnknownKey, |status| status == StatusCode::NOT_FOUND)
    }),
];

fn status_ok(observations: &Observations, probe: Probe) -> Judgement {
    observations.require_status(probe, |status| status == StatusCode::OK)
}

fn cbor_type(observations: &Observations, probe: Probe) -> Judgement {
    let response = observations.with_status(probe, StatusCode::OK)?;
    require(response.has_type(media::CBOR), response.type_text())
}

fn usable_set(observations: &Observations) -> Judgement {
    match KeySet::parse(&observations.response(Probe::Keys)?.body) {
        Ok(keys) => {
            let (usable, skipped) = (keys.keys().len(), keys.skipped().len());
            require(usable > 0, format!("usable keys: {usable}, others: {skipped}"))
        }
        Err(error) => violated(error.to_string()),
    }
}

fn no_secret_key(observations: &Observations) -> Judgement {
    let keys = observations.keys()?;
    let secret = keys.skipped().iter().filter(|(_, error)| matches!(error, KeyError::Secret)).count();
    require(secret == 0, counted(secret, "secret key", "secret keys"))
}

fn distinct_kids(observations: &Observations) -> Judgement {
    let keys = observations.keys()?;
    let without = keys.keys().iter().filter(|key| key.kid.is_none()).count();
    let shared = |key: &&CoseKey| key.kid.as_ref().is_some_and(|kid| keys.with_kid(kid).count() > 1);
    let shared = keys.keys().iter().filter(shared).count();
    require(
        without + shared == 0,
        format!("keys without a kid: {without}, with the kid of another key: {shared}"),
    )
}

fn thumbprints(observations: &Observations) -> Judgement {
    let keys = observations.keys()?;
    let named = |key: &&CoseKey| key.kid.as_deref() == Some(&key.key.thumbprint()[..]);
    let count = keys.keys().iter().filter(named).count();
    require(count == keys.keys().len(), format!("{count} of {}", counted(keys.keys().len(), "key", "keys")))
}

fn same_key(observations: &Observations, probe: Probe) -> Judgement {
    let response = observations.with_status(probe, StatusCode::OK)?;
    match CoseKey::parse(&response.body) {
        Ok(key) => {
            let kid = observations.first_kid().unwrap_or_default();
            let listed = observations.keys()?.with_kid(&kid).any(|listed| listed.key == key.key);
            let same = listed && key.kid.is_none_or(|found| found == kid);
            require(
                same,
                if same { "the key of the set" } else { "a key that the set does not have under this kid" },
            )
        }
        Err(_) if KeySet::parse(&response.body).is_ok() => violated("an array of keys, as drafts before 09"),
        Err(error) => violated(error.to_string()),
    }
}

fn raw_kid(observations: &Observations) -> Judgement {
    if observations.was_not_sent(Probe::KeyByRawKid) {
        return not_applicable("no kid, or one that is not safe in a path");
    }
    status_ok(observations, Probe::KeyByRawKid)?;
    same_key(observations, Probe::KeyByRawKid)
}
