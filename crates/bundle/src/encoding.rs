//! Byte strings and hashes as JSON strings: unpadded base64url, and lowercase hexadecimal for hashes.

/// Byte strings in unpadded base64url (RFC 4648, section 5).
pub(crate) mod base64url {
    use data_encoding::BASE64URL_NOPAD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64URL_NOPAD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64URL_NOPAD
            .decode(text.as_bytes())
            .map_err(|error| D::Error::custom(format!("no unpadded base64url: {error}")))
    }
}

/// An optional byte string; a missing member is `None`, `null` is refused.
pub(crate) mod optional_base64url {
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => super::base64url::serialize(bytes, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        super::base64url::deserialize(deserializer).map(Some)
    }
}

/// Lists of 32-byte hashes in lowercase hexadecimal.
pub(crate) mod hex_list {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<T: Display, S: Serializer>(
        hashes: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(hashes.iter().map(T::to_string))
    }

    pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let parse = |(number, text): (usize, &String)| {
            let wrong =
                |_| D::Error::custom(format!("item {number} is not 32 bytes in lowercase hexadecimal"));
            text.parse().map_err(wrong)
        };
        texts.iter().enumerate().map(parse).collect()
    }
}
