//! The deterministic writer.

/// Appends items in the core deterministic encoding.
///
/// Heads are always shortest and lengths definite; the order of a map's keys is the caller's. Use
/// [`Value::encode`](super::Value::encode) for a map that should be put in order.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// An unsigned integer.
    pub fn unsigned(&mut self, value: u64) -> &mut Self {
        self.head(0, value)
    }

    /// The integer -1 - `value`.
    pub fn negative(&mut self, value: u64) -> &mut Self {
        self.head(1, value)
    }

    /// An integer.
    pub fn int(&mut self, value: i64) -> &mut Self {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(value),
            Err(_) => self.negative(!value as u64),
        }
    }

    /// A byte string.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.head(2, bytes.len() as u64).raw(bytes)
    }

    /// A text string.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.head(3, text.len() as u64).raw(text.as_bytes())
    }

    /// The head of an array whose `length` elements follow.
    pub fn array(&mut self, length: usize) -> &mut Self {
        self.head(4, length as u64)
    }

    /// The head of a map whose `length` entries follow.
    pub fn map(&mut self, length: usize) -> &mut Self {
        self.head(5, length as u64)
    }

    /// A tag, to be followed by its content.
    pub fn tag(&mut self, number: u64) -> &mut Self {
        self.head(6, number)
    }

    /// A simple value: 20 false, 21 true, 22 null, 23 undefined.
    pub fn simple(&mut self, number: u8) -> &mut Self {
        self.head(7, u64::from(number))
    }

    /// A boolean.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.simple(20 + u8::from(value))
    }

    /// Null, COSE's nil.
    pub fn null(&mut self) -> &mut Self {
        self.simple(22)
    }

    /// A float in its shortest form.
    pub fn float(&mut self, value: f64) -> &mut Self {
        super::float::write(&mut self.out, value);
        self
    }

    /// Bytes that are encoded already.
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
