//! Published keys (SCRAPI, sections 2.1 and 2.2).

use display::counted;
use http::StatusCode;
use scitt::{CoseKey, KeyError, KeySet, SkippedKey, media};

use crate::check::{ConformanceCheck, must, should};
use crate::judgement::{Judgement, Shortfall, not_applicable, require, violated};
use crate::observations::{Observations, published_kids};
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
        |observations| status_ok(observations, single_key(observations, Probe::KeyByKid)?),
    ),
    must(
        "key-content-type",
        "SCRAPI-11, 2.2",
        "A single key has the type application/cbor",
        |observations| cbor_type(observations, single_key(observations, Probe::KeyByKid)?),
    ),
    must(
        "key-body",
        "SCRAPI-11, 2.2",
        "The body is one COSE_Key map, the key with this kid",
        |observations| same_key(observations, single_key(observations, Probe::KeyByKid)?),
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

/// Requires 200. A refusal (401, 403, 429) is a violation too, because every client needs the keys.
fn status_ok(observations: &Observations, probe: Probe) -> Judgement {
    let status = observations.any_response(probe)?.status;
    require(status == StatusCode::OK, status.to_string())
}

/// Returns the probe of a single key, if the service publishes one with a `kid`.
fn single_key(observations: &Observations, probe: Probe) -> Result<Probe, Shortfall> {
    observations.keys()?;
    match observations.tested_kid() {
        Some(_) => Ok(probe),
        None => not_applicable("the service publishes no key with a kid"),
    }
}

fn cbor_type(observations: &Observations, probe: Probe) -> Judgement {
    let response = observations.with_status(probe, StatusCode::OK)?;
    require(response.has_type(media::CBOR), response.type_text())
}

fn usable_set(observations: &Observations) -> Judgement {
    let keys = KeySet::parse(&observations.response(Probe::Keys)?.body)
        .map_err(|error| Shortfall::Violated(error.to_string()))?;
    require_known_type(&keys)?;
    let (usable, skipped) = (keys.keys().len(), keys.skipped().len());
    require(usable > 0, format!("usable keys: {usable}, others: {skipped}"))
}

/// Returns [`Shortfall::Unsupported`] for a set in which every key is of a type that the suite does not know.
fn require_known_type(keys: &KeySet) -> Result<(), Shortfall> {
    let is_unknown = keys.keys().is_empty() && keys.skipped().iter().all(SkippedKey::is_unsupported);
    match keys.skipped().first().filter(|_| is_unknown) {
        Some(first) => Err(Shortfall::Unsupported(first.error.to_string())),
        None => Ok(()),
    }
}

fn no_secret_key(observations: &Observations) -> Judgement {
    let keys = observations.keys()?;
    let secret = keys.skipped().iter().filter(|skipped| skipped.error == KeyError::Secret).count();
    require(secret == 0, counted(secret, "secret key", "secret keys"))
}

fn distinct_kids(observations: &Observations) -> Judgement {
    let keys = observations.keys()?;
    let kids: Vec<_> = published_kids(&keys).collect();
    let without = kids.iter().filter(|kid| kid.is_none()).count();
    let is_shared = |kid: &&Option<&[u8]>| kids.iter().filter(|other| other == kid).count() > 1;
    let shared = kids.iter().filter(|kid| kid.is_some()).filter(is_shared).count();
    require(
        without + shared == 0,
        format!("keys without a kid: {without}, with the kid of another key: {shared}"),
    )
}

fn thumbprints(observations: &Observations) -> Judgement {
    let keys = observations.keys()?;
    require_known_type(&keys)?;
    let named = |key: &&CoseKey| key.kid.as_deref() == Some(&key.key.thumbprint()[..]);
    let count = keys.keys().iter().filter(named).count();
    require(count == keys.keys().len(), format!("{count} of {}", counted(keys.keys().len(), "key", "keys")))
}

fn same_key(observations: &Observations, probe: Probe) -> Judgement {
    let response = observations.with_status(probe, StatusCode::OK)?;
    let (keys, kid) = (observations.keys()?, observations.tested_kid().unwrap_or_default());
    let mut listed = keys.with_kid(&kid).peekable();
    match CoseKey::parse(&response.body) {
        Ok(key) => {
            let same = listed.any(|listed| listed.key == key.key) && key.kid.is_none_or(|found| found == kid);
            require(
                same,
                if same { "the key of the set" } else { "a key that the set does not have under this kid" },
            )
        }
        Err(error @ KeyError::Unsupported(_)) if listed.peek().is_none() => {
            Err(Shortfall::Unsupported(error.to_string()))
        }
        Err(_) if KeySet::parse(&response.body).is_ok() => violated("an array of keys, as drafts before 09"),
        Err(error) => violated(error.to_string()),
    }
}

fn raw_kid(observations: &Observations) -> Judgement {
    let probe = single_key(observations, Probe::KeyByRawKid)?;
    if observations.was_not_sent(probe) {
        return not_applicable("the kid is not safe in a path");
    }
    status_ok(observations, probe)?;
    same_key(observations, probe)
}
