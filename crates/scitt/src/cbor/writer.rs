//! The deterministic CBOR writer.

use ciborium_ll::{Encoder, Header};

/// Encoding of every NaN: the half-precision quiet NaN.
const NAN: [u8; 3] = [0xf9, 0x7e, 0x00];

/// Encodes items in the core deterministic encoding (RFC 8949, section 4.2.1), by ciborium.
///
/// Heads are always shortest and lengths definite. The caller orders the keys of a map;
/// [`Value::encode`](super::Value::encode) sorts them.
#[derive(Clone, Debug, Default)]
pub struct ItemWriter {
    out: Vec<u8>,
}

impl ItemWriter {
    /// Creates a writer with an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a writer with capacity for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    /// Returns the encoded bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes an unsigned integer.
    pub fn unsigned(&mut self, value: u64) -> &mut Self {
        self.push(Header::Positive(value))
    }

    /// Writes the negative integer -1 - `value`.
    pub fn negative(&mut self, value: u64) -> &mut Self {
        self.push(Header::Negative(value))
    }

    /// Writes an integer of either sign.
    pub fn int(&mut self, value: i64) -> &mut Self {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(value),
            Err(_) => self.negative(!value as u64),
        }
    }

    /// Writes a byte string.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.push(Header::Bytes(Some(bytes.len()))).raw(bytes)
    }

    /// Writes a text string.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.push(Header::Text(Some(text.len()))).raw(text.as_bytes())
    }

    /// Writes the head of an array; the caller writes its `length` elements.
    pub fn array(&mut self, length: usize) -> &mut Self {
        self.push(Header::Array(Some(length)))
    }

    /// Writes the head of a map; the caller writes its `length` entries, each key before its value.
    pub fn map(&mut self, length: usize) -> &mut Self {
        self.push(Header::Map(Some(length)))
    }

    /// Writes a tag; the caller writes its content.
    pub fn tag(&mut self, number: u64) -> &mut Self {
        self.push(Header::Tag(number))
    }

    /// Writes a simple value: 20 `false`, 21 `true`, 22 `null`, 23 `undefined`.
    pub fn simple(&mut self, number: u8) -> &mut Self {
        self.push(Header::Simple(number))
    }

    /// Writes a boolean.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.simple(20 + u8::from(value))
    }

    /// Writes `null`, which COSE calls `nil`.
    pub fn null(&mut self) -> &mut Self {
        self.simple(22)
    }

    /// Writes a float in the shortest form that keeps its value.
    pub fn float(&mut self, value: f64) -> &mut Self {
        match value.is_nan() {
            true => self.raw(&NAN),
            false => self.push(Header::Float(value)),
        }
    }

    /// Appends bytes that are already encoded CBOR.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    fn push(&mut self, header: Header) -> &mut Self {
        Encoder::from(&mut self.out).push(header).expect("a vector takes all bytes");
        self
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn float(value: f64) -> Vec<u8> {
        let mut writer = ItemWriter::new();
        writer.float(value);
        writer.into_bytes()
    }

    #[test]
    fn every_half_is_written_back_as_itself() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits).to_f64();
            let expected = if value.is_nan() { 0x7e00 } else { bits };
            assert_eq!(float(value), [&[0xf9][..], &expected.to_be_bytes()].concat(), "{value}");
        }
    }

    #[test]
    fn values_that_no_half_holds_keep_a_longer_form() {
        for (value, hex) in [
            (100_000.0, "fa47c35000"),
            (1.1, "fb3ff199999999999a"),
            (3.4028234663852886e38, "fa7f7fffff"),
            (1.0e300, "fb7e37e43c8800759c"),
            (5.960464477539063e-8, "f90001"),
            (2.9802322387695312e-8, "fa33000000"),
        ] {
            assert_eq!(data_encoding::HEXLOWER.encode(&float(value)), hex);
        }
    }
}
