//! The deterministic CBOR writer.

/// Encodes items in the core deterministic encoding (RFC 8949, section 4.2.1).
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
        self.head(0, value)
    }

    /// Writes the negative integer -1 - `value`.
    pub fn negative(&mut self, value: u64) -> &mut Self {
        self.head(1, value)
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
        self.head(2, bytes.len() as u64).raw(bytes)
    }

    /// Writes a text string.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.head(3, text.len() as u64).raw(text.as_bytes())
    }

    /// Writes the head of an array; the caller writes its `length` elements.
    pub fn array(&mut self, length: usize) -> &mut Self {
        self.head(4, length as u64)
    }

    /// Writes the head of a map; the caller writes its `length` entries, each key before its value.
    pub fn map(&mut self, length: usize) -> &mut Self {
        self.head(5, length as u64)
    }

    /// Writes a tag; the caller writes its content.
    pub fn tag(&mut self, number: u64) -> &mut Self {
        self.head(6, number)
    }

    /// Writes a simple value: 20 `false`, 21 `true`, 22 `null`, 23 `undefined`.
    pub fn simple(&mut self, number: u8) -> &mut Self {
        self.head(7, u64::from(number))
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
        super::float::write(&mut self.out, value);
        self
    }

    /// Appends bytes that are already encoded CBOR.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    fn head(&mut self, major: u8, argument: u64) -> &mut Self {
        let major = major << 5;
        match argument {
            0..24 => self.out.push(major | argument as u8),
            24..0x100 => self.out.extend_from_slice(&[major | 24, argument as u8]),
            0x100..0x1_0000 => self.long(major | 25, &(argument as u16).to_be_bytes()),
            0x1_0000..0x1_0000_0000 => self.long(major | 26, &(argument as u32).to_be_bytes()),
            _ => self.long(major | 27, &argument.to_be_bytes()),
        }
        self
    }

    fn long(&mut self, initial: u8, argument: &[u8]) {
        self.out.push(initial);
        self.out.extend_from_slice(argument);
    }
}
