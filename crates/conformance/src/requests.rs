//! Requests of the probes, from the samples and from earlier answers, and which probe comes next.
//!
//! A `Location` of an entry on another origin is mapped to the same entry below the tested URL, as for a service behind a
//! proxy that does not know its public name: no request leaves for an address that only the tested service named.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;
use http::header::LOCATION;
use scitt::key::{kid_segment, kid_segment_matches};
use scitt::media;
use url::Url;

use crate::check::ConformanceCheck;
use crate::exchange::ProbeRequest;
use crate::observations::Observations;
use crate::probe::Probe;
use crate::samples::Samples;

/// Path of the key set (SCRAPI, section 2.1).
const KEYS: &str = ".well-known/scitt-keys";
/// Path of the registration resource (SCRAPI, section 2.3).
const ENTRIES: &str = "entries";
/// Name of a key that no service has.
const NO_KID: &[u8] = b"no key has this kid";
/// Media type of a statement, with the optional parameter (RFC 9052, section 12.3).
const WITH_PARAMETER: &str = "application/cose; cose-type=\"cose-sign1\"";
/// A value of `Accept` that excludes nothing.
const ANY_TYPE: &str = "*/*";

/// Returns the next probe that these checks need, with its request. `None` if they have every answer that can be had.
///
/// The checks are decided with the answers so far; what they miss is needed, and so is what its request depends on.
pub fn next_probe(
    checks: &[&ConformanceCheck],
    base: &Url,
    samples: &Samples,
    observations: &Observations,
) -> Option<(Probe, ProbeRequest)> {
    observations.take_missing();
    checks.iter().for_each(|check| drop((check.judge)(observations)));
    let mut tried = BTreeSet::new();
    loop {
        let needed = observations.take_missing();
        let new: Vec<_> = needed.difference(&tried).copied().collect();
        if new.is_empty() {
            return None;
        }
        let request = |probe: &Probe| Some((*probe, next_request(*probe, base, samples, observations)?));
        if let Some(found) = new.iter().find_map(request) {
            return Some(found);
        }
        tried.extend(new);
    }
}

/// Returns the request of a probe. `None` if an answer that it depends on is missing.
///
/// `base` is the URL of the service, with a slash at its end.
pub fn next_request(
    probe: Probe,
    base: &Url,
    samples: &Samples,
    observations: &Observations,
) -> Option<ProbeRequest> {
    let key = |name: &str| get(base.join(&format!("{KEYS}/{name}")).ok()?, media::CBOR);
    let keys = || get(base.join(KEYS).ok()?, media::CBOR);
    let statement = || post(base, samples.message().clone(), Some(media::COSE));
    match probe {
        Probe::Keys | Probe::KeysAgain => keys(),
        Probe::KeyByKid => key(&kid_segment(&observations.tested_kid()?)),
        Probe::KeyByRawKid => key(path_safe(&observations.tested_kid()?)?),
        Probe::UnknownKey => key(&kid_segment(NO_KID)),
        Probe::Registration | Probe::Resubmission => statement(),
        Probe::Running => None,
        Probe::Receipt => get(receipt_url(base, observations)?, media::COSE),
        Probe::ReceiptOfAnyType => get(receipt_url(base, observations)?, ANY_TYPE),
        Probe::Transparent => {
            let body = samples.transparent(observations.receipt_bytes().ok()?)?;
            Some(ProbeRequest { body, ..statement()? })
        }
        Probe::TypeWithParameter => Some(ProbeRequest { content_type: Some(WITH_PARAMETER), ..statement()? }),
        Probe::NoType => Some(ProbeRequest { content_type: None, ..statement()? }),
        Probe::WrongType => Some(ProbeRequest { content_type: Some("application/json"), ..statement()? }),
        Probe::SlowBody => Some(ProbeRequest { slow: true, ..statement()? }),
        Probe::UnknownEntry => get(other_entry(&receipt_url(base, observations)?)?, media::COSE),
        Probe::InvalidLocator => get(base.join(&format!("{ENTRIES}/%7E%21")).ok()?, media::COSE),
        Probe::UnknownPath => get(base.join(&format!("no-such-{ENTRIES}")).ok()?, media::COSE),
        Probe::WrongMethod => {
            Some(ProbeRequest { method: Method::DELETE, ..get(base.join(ENTRIES).ok()?, media::COSE)? })
        }
        Probe::Hostile(input) => post(base, samples.hostile(input)?, Some(media::COSE)),
    }
}

fn get(url: Url, accept: &'static str) -> Option<ProbeRequest> {
    let (method, body) = (Method::GET, Bytes::new());
    Some(ProbeRequest { method, url, accept, content_type: None, body, slow: false })
}

fn post(base: &Url, body: Bytes, content_type: Option<&'static str>) -> Option<ProbeRequest> {
    let url = base.join(ENTRIES).ok()?;
    Some(ProbeRequest { method: Method::POST, url, accept: media::COSE, content_type, body, slow: false })
}

/// Returns a `kid` as a path segment, if it needs no percent-encoding and is not a dot segment (SCRAPI, section 2.2).
fn path_safe(kid: &[u8]) -> Option<&str> {
    let text = str::from_utf8(kid).ok()?;
    (!text.is_empty() && kid_segment_matches(kid, text)).then_some(text)
}

/// Returns the URL of the receipt on the tested service.
fn receipt_url(base: &Url, observations: &Observations) -> Option<Url> {
    let accepted = observations.response(Probe::Registration).ok()?;
    let location = base.join(accepted.header(LOCATION)?).ok()?;
    if location.origin() == base.origin() {
        return Some(location);
    }
    let (_, entry) = location.path().rsplit_once("/entries/")?;
    base.join(&format!("{ENTRIES}/{entry}")).ok().filter(|url| url.origin() == base.origin())
}

/// Returns the URL of an entry of the same form that does not exist.
fn other_entry(url: &Url) -> Option<Url> {
    let (folder, id) = url.path().rsplit_once('/')?;
    let is_number = id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let other = match is_number {
        true => format!("{id}00000000"),
        false => with_other_character(id)?,
    };
    let mut unknown = url.clone();
    unknown.set_path(&format!("{folder}/{other}"));
    Some(unknown)
}

/// Changes the last letter or digit but one of an ID: the last one of a base64url text cannot be any character.
///
/// The new character is one that hex, base32, base58 and base64url have.
fn with_other_character(id: &str) -> Option<String> {
    let mut places = id.char_indices().rev().filter(|(_, character)| character.is_ascii_alphanumeric());
    let last = places.next()?;
    let (place, character) = places.next().unwrap_or(last);
    let other = match character {
        '2' => '3',
        '0'..='9' => '2',
        'a' => 'b',
        'a'..='z' => 'a',
        'A' => 'B',
        _ => 'A',
    };
    Some(format!("{}{other}{}", &id[..place], &id[place + 1..]))
}
