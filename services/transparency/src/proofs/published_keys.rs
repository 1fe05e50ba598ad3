//! The keys that verify receipts, for relying parties (SCRAPI -11, 2.1 and 2.2).
//!
//! Every key that ever signed is listed and served for ever, because receipts outlive keys. An announced key is listed
//! before it signs. A retired key carries its retirement time and the first tree size of its successor; a compromised
//! key carries the tree size from which its signatures are invalid.
//!
//! A key's path segment is the unpadded base64url of its kid, or the raw kid where that is safe in a path. No segment
//! ever identifies two keys.

use std::collections::BTreeMap;

use bytes::Bytes;
use merkle::TreeSize;
use scitt::key::{KeyEnd, kid_segment, kid_segment_matches};
use scitt::{CoseKey, KeySet};
use serde_json::{Value, json};
use store::{KeyAnnouncement, LogKey};

use crate::keys::recorded::check_key;

/// The responses of the key resources, serialized once.
#[derive(Clone, Debug, Default)]
pub struct PublishedKeys {
    /// All keys as a COSE_KeySet.
    pub set: Bytes,
    /// All keys as a JWK Set (RFC 7517, section 5). Each `kid` is the base64url of the COSE one; the members
    /// `retired_at`, `retired_size` and `compromised_size` state the end of a key's signatures.
    pub jwk_set: Bytes,
    by_segment: BTreeMap<String, Bytes>,
}

impl PublishedKeys {
    /// Publishes the log's recorded keys, and then the announced ones. Damaged keys are logged and left out.
    pub fn sound((recorded, announced): &(Vec<LogKey>, Vec<KeyAnnouncement>)) -> Self {
        let announced =
            announced.iter().map(|key| LogKey::new(key.kid.clone(), key.public.clone(), TreeSize::EMPTY));
        let listed: Vec<LogKey> = recorded.iter().cloned().chain(announced).collect();
        let sound = listed.iter().filter(|key| match check_key(key) {
            Ok(()) => true,
            Err(why) => {
                let kid = data_encoding::BASE64URL_NOPAD.encode(&key.kid);
                tracing::error!(kid, why, "a key on record is damaged, and not served");
                false
            }
        });
        Self::of(&sound.cloned().collect::<Vec<_>>())
    }

    /// Publishes the given records; keys of other kinds are skipped.
    fn of(recorded: &[LogKey]) -> Self {
        let published =
            |key: &LogKey| Some(CoseKey { end: end_of(key), ..CoseKey::parse(&key.public).ok()? });
        let keys: Vec<CoseKey> = recorded.iter().filter_map(published).collect();
        let mut by_segment = BTreeMap::new();
        for key in &keys {
            if let Some(kid) = &key.kid {
                by_segment.insert(kid_segment(kid), Bytes::from(key.encode()));
            }
        }
        // Raw forms are added second, and never displace another key's base64url form.
        for key in &keys {
            let kid = key.kid.as_deref().unwrap_or_default();
            if let Some(raw) = std::str::from_utf8(kid).ok().filter(|raw| kid_segment_matches(kid, raw)) {
                by_segment.entry(raw.to_owned()).or_insert_with(|| Bytes::from(key.encode()));
            }
        }
        let jwk_set = json!({ "keys": keys.iter().map(jwk).collect::<Vec<_>>() });
        Self { jwk_set: jwk_set.to_string().into(), set: KeySet::new(keys).encode().into(), by_segment }
    }

    /// The COSE_Key for a path segment.
    pub fn find(&self, segment: &str) -> Option<&Bytes> {
        self.by_segment.get(segment)
    }
}

/// Converts a key to a JWK.
fn jwk(key: &CoseKey) -> Value {
    let mut jwk = key.key.to_jwk().to_value();
    let KeyEnd { retired_at, retired_size, compromised_size } = key.end;
    let end =
        [("retired_at", retired_at), ("retired_size", retired_size), ("compromised_size", compromised_size)];
    for (name, value) in end.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        jwk[name] = value.into();
    }
    jwk["kid"] = key.kid.as_deref().map(kid_segment).into();
    jwk["use"] = "sig".into();
    jwk
}

/// The published end of a key's signatures.
fn end_of(key: &LogKey) -> KeyEnd {
    KeyEnd {
        retired_at: key.retired_at,
        retired_size: key.retired_size.map(TreeSize::get),
        compromised_size: key.compromised_size.map(TreeSize::get),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scitt::{Algorithm, PublicKey, Signer, SigningKey};

    fn recorded(kid: &[u8]) -> LogKey {
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        let public = CoseKey { kid: Some(kid.to_vec()), ..CoseKey::bare(key.public_key().clone()) };
        LogKey::new(kid.to_vec(), public.encode().into(), TreeSize::EMPTY)
    }

    #[test]
    fn a_key_answers_to_base64url_and_to_its_raw_kid_where_that_is_safe() {
        let (plain, binary) = (recorded(b"key-1"), recorded(&[0xff, 0x00, 0x2f]));
        let keys = PublishedKeys::of(&[plain.clone(), binary.clone()]);
        assert_eq!(keys.find("a2V5LTE"), Some(&plain.public));
        assert_eq!(keys.find("key-1"), Some(&plain.public));
        assert_eq!(keys.find("_wAv"), Some(&binary.public));
        for wrong in ["a2V5LTE=", "", ".", "..", "KEY-1", "/wAv"] {
            assert_eq!(keys.find(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_name_stands_for_two_keys() {
        // "YQ" is a raw kid and the base64url of the kid "a".
        let (raw, encoded) = (recorded(b"YQ"), recorded(b"a"));
        let keys = PublishedKeys::of(&[raw.clone(), encoded.clone()]);
        assert_eq!(keys.find("YQ"), Some(&encoded.public));
        assert_eq!(keys.find("WVE"), Some(&raw.public));
    }

    #[test]
    fn retired_keys_stay_and_note_keys_are_not_listed() {
        let retired =
            LogKey { retired_at: Some(1), retired_size: Some(TreeSize::new(8)), ..recorded(b"old") };
        let note = LogKey { public: Bytes::from_static(b"log.example+00000000+AAAA"), ..recorded(b"note") };
        let keys = PublishedKeys::of(&[retired, note]);
        let end = KeyEnd { retired_at: Some(1), retired_size: Some(8), compromised_size: None };
        assert_eq!(CoseKey::parse(keys.find("old").unwrap()).unwrap().end, end);
        assert!(keys.find("note").is_none());
        let set = KeySet::parse(&keys.set).unwrap();
        assert_eq!(set.keys().iter().map(|key| key.end).collect::<Vec<_>>(), [end]);
        let jwks: Value = serde_json::from_slice(&keys.jwk_set).unwrap();
        let jwk = &jwks["keys"][0];
        assert_eq!(
            (&jwk["kid"], &jwk["retired_size"], jwks["keys"][1].is_null()),
            (&json!("b2xk"), &json!(8), true)
        );
        assert_eq!(PublicKey::from_jwk_json(jwk.to_string().as_bytes()).unwrap(), set.keys()[0].key);
    }
}
