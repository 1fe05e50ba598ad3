//! The strict CBOR reader.

use std::borrow::Cow;

use half::f16;

use super::{Error, ErrorKind, Item, Value};

/// Limits on the cost of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum nesting of arrays, maps and tags.
    pub depth: usize,
    /// Maximum number of data items, keys included.
    pub items: usize,
}

/// The major types of RFC 8949, section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    /// 0: an unsigned integer.
    Unsigned,
    /// 1: a negative integer.
    Negative,
    /// 2: a byte string.
    Bytes,
    /// 3: a text string.
    Text,
    /// 4: an array.
    Array,
    /// 5: a map.
    Map,
    /// 6: a tag.
    Tag,
    /// 7: simple values, floats and the break.
    Simple,
}

/// Initial byte of an item, with its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemHead {
    /// Byte offset of the initial byte.
    pub offset: usize,
    /// Major type: the three high bits of the initial byte.
    pub major: Major,
    /// Additional information: the five low bits of the initial byte.
    pub info: u8,
    /// Argument; 0 for an indefinite length.
    pub argument: u64,
}

impl ItemHead {
    const INDEFINITE: u8 = 31;

    /// Returns `true` if the length is indefinite: a break ends the item.
    pub fn is_indefinite(&self) -> bool {
        self.info == Self::INDEFINITE
    }

    /// Returns `true` if the argument uses as few bytes as possible.
    pub fn is_shortest(&self) -> bool {
        match self.info {
            24 => self.argument >= 24,
            25 => self.argument > u64::from(u8::MAX),
            26 => self.argument > u64::from(u16::MAX),
            27 => self.argument > u64::from(u32::MAX),
            _ => true,
        }
    }

    /// Returns the value if this is the head of a float of any width.
    pub fn as_float(&self) -> Option<f64> {
        match (self.major, self.info) {
            (Major::Simple, 25) => Some(f16::from_bits(self.argument as u16).to_f64()),
            (Major::Simple, 26) => Some(f64::from(f32::from_bits(self.argument as u32))),
            (Major::Simple, 27) => Some(f64::from_bits(self.argument)),
            _ => None,
        }
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error { offset: self.offset, kind }
    }
}

/// Parses exactly one item that fills `input`.
///
/// # Errors
/// Returns an [`Error`] with the offset of the first refused item.
pub fn parse(input: &[u8], limits: Limits) -> Result<Item<'_>, Error> {
    let mut reader = ItemReader::new(input, limits);
    let item = reader.item()?;
    reader.finish()?;
    Ok(item)
}

/// Reads items and single heads from a byte slice, front to back.
#[derive(Clone, Debug)]
pub struct ItemReader<'a> {
    input: &'a [u8],
    position: usize,
    depth: usize,
    items_left: usize,
    /// `true` while a map key, or an item within one, is read.
    in_key: bool,
}

impl<'a> ItemReader<'a> {
    /// Creates a reader at the start of `input`.
    pub fn new(input: &'a [u8], limits: Limits) -> Self {
        Self { input, position: 0, depth: limits.depth, items_left: limits.items, in_key: false }
    }

    /// Creates a reader at `position`, so that offsets count from the start of `input`.
    pub fn starting_at(input: &'a [u8], position: usize, limits: Limits) -> Self {
        Self { position, ..Self::new(input, limits) }
    }

    /// Returns the offset of the next byte.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Reads one complete item.
    pub fn item(&mut self) -> Result<Item<'a>, Error> {
        self.item_within(self.depth)
    }

    /// Checks that no input is left.
    ///
    /// # Errors
    /// Returns [`ErrorKind::TrailingBytes`] otherwise.
    pub fn finish(self) -> Result<(), Error> {
        if self.position < self.input.len() {
            return Err(Error { offset: self.position, kind: ErrorKind::TrailingBytes });
        }
        Ok(())
    }

    /// Reads an initial byte and its argument, and checks that the input can hold the announced length.
    pub fn head(&mut self) -> Result<ItemHead, Error> {
        let offset = self.position;
        let [initial] = *self.array::<1>(offset)?;
        let info = initial & 0x1f;
        let argument = match info {
            0..24 => u64::from(info),
            24 => u64::from(u8::from_be_bytes(*self.array(offset)?)),
            25 => u64::from(u16::from_be_bytes(*self.array(offset)?)),
            26 => u64::from(u32::from_be_bytes(*self.array(offset)?)),
            27 => u64::from_be_bytes(*self.array(offset)?),
            ItemHead::INDEFINITE => 0,
            _ => return Err(Error { offset, kind: ErrorKind::ReservedHead }),
        };
        let head = ItemHead { offset, major: major(initial), info, argument };
        self.check(&head)?;
        Ok(head)
    }

    /// Reads the bytes of a definite-length string after its head.
    pub fn take(&mut self, head: &ItemHead) -> Result<&'a [u8], Error> {
        let length = usize::try_from(head.argument).unwrap_or(usize::MAX);
        let rest = self.input.get(self.position..).unwrap_or_default();
        let bytes = rest.get(..length).ok_or(head.error(ErrorKind::LengthBeyondInput))?;
        self.position += length;
        Ok(bytes)
    }

    fn check(&self, head: &ItemHead) -> Result<(), Error> {
        let left = (self.input.len() - self.position) as u64;
        let needed = match head.major {
            Major::Unsigned | Major::Negative | Major::Tag if head.is_indefinite() => {
                return Err(head.error(ErrorKind::ReservedHead));
            }
            Major::Bytes | Major::Text | Major::Array => head.argument,
            Major::Map => head.argument.saturating_mul(2),
            Major::Simple if head.info == 24 && head.argument < 32 => {
                return Err(head.error(ErrorKind::ReservedSimple));
            }
            _ => 0,
        };
        if needed > left { Err(head.error(ErrorKind::LengthBeyondInput)) } else { Ok(()) }
    }

    fn array<const N: usize>(&mut self, offset: usize) -> Result<&'a [u8; N], Error> {
        let rest = self.input.get(self.position..).unwrap_or_default();
        let bytes = rest.first_chunk().ok_or(Error { offset, kind: ErrorKind::UnexpectedEnd })?;
        self.position += N;
        Ok(bytes)
    }

    /// Reads one item. `depth` is the number of further containers that may be opened.
    fn item_within(&mut self, depth: usize) -> Result<Item<'a>, Error> {
        let head = self.counted_head()?;
        let deeper = || depth.checked_sub(1).ok_or(head.error(ErrorKind::TooDeep));
        let value = match head.major {
            Major::Unsigned => Value::Unsigned(head.argument),
            Major::Negative => Value::Negative(head.argument),
            Major::Bytes => Value::Bytes(self.bytes(&head)?),
            Major::Text => Value::Text(self.text(&head)?),
            Major::Array => Value::Array(self.elements(&head, deeper()?)?),
            Major::Map => Value::Map(self.entries(&head, deeper()?)?),
            Major::Tag => Value::Tag(head.argument, Box::new(self.item_within(deeper()?)?)),
            Major::Simple => simple(&head)?,
        };
        Ok(Item { offset: head.offset, end: self.position, value })
    }

    /// Reads the head of an item that counts against the limit.
    fn counted_head(&mut self) -> Result<ItemHead, Error> {
        let head = self.head()?;
        self.items_left = self.items_left.checked_sub(1).ok_or(head.error(ErrorKind::TooManyItems))?;
        Ok(head)
    }

    /// Skips one well-formed item (RFC 8949, section 5.3), and returns its bytes. What only validity forbids (a label
    /// twice, text that is not UTF-8) is not noticed.
    pub fn skip(&mut self) -> Result<&'a [u8], Error> {
        let start = self.position;
        self.skip_within(self.depth)?;
        Ok(self.input.get(start..self.position).unwrap_or_default())
    }

    fn skip_within(&mut self, depth: usize) -> Result<(), Error> {
        let head = self.counted_head()?;
        let deeper = || depth.checked_sub(1).ok_or(head.error(ErrorKind::TooDeep));
        match head.major {
            Major::Unsigned | Major::Negative => {}
            Major::Bytes | Major::Text => self.skip_string(&head)?,
            Major::Array => self.skip_elements(&head, 1, deeper()?)?,
            Major::Map => self.skip_elements(&head, 2, deeper()?)?,
            Major::Tag => self.skip_within(deeper()?)?,
            Major::Simple => drop(simple(&head)?),
        }
        Ok(())
    }

    fn skip_string(&mut self, head: &ItemHead) -> Result<(), Error> {
        if !head.is_indefinite() {
            return self.take(head).map(drop);
        }
        while let Some(chunk) = self.chunk(head.major)? {
            self.take(&chunk)?;
        }
        Ok(())
    }

    /// Skips the elements of an array, or the entries of a map, which have two items each.
    fn skip_elements(&mut self, head: &ItemHead, items: usize, depth: usize) -> Result<(), Error> {
        let mut left = head.argument;
        while self.more(head, &mut left) {
            for _ in 0..items {
                self.skip_within(depth)?;
            }
        }
        Ok(())
    }

    /// Reads the byte string that this head begins, joining the chunks of an indefinite-length string.
    pub fn bytes(&mut self, head: &ItemHead) -> Result<Cow<'a, [u8]>, Error> {
        if !head.is_indefinite() {
            return self.take(head).map(Cow::Borrowed);
        }
        let mut joined = Vec::new();
        while let Some(chunk) = self.chunk(head.major)? {
            joined.extend_from_slice(self.take(&chunk)?);
        }
        Ok(Cow::Owned(joined))
    }

    /// Reads the text string that this head begins, joining the chunks of an indefinite-length string.
    pub fn text(&mut self, head: &ItemHead) -> Result<Cow<'a, str>, Error> {
        if !head.is_indefinite() {
            return self.utf8(head).map(Cow::Borrowed);
        }
        let mut joined = String::new();
        while let Some(chunk) = self.chunk(head.major)? {
            joined.push_str(self.utf8(&chunk)?);
        }
        Ok(Cow::Owned(joined))
    }

    fn utf8(&mut self, head: &ItemHead) -> Result<&'a str, Error> {
        std::str::from_utf8(self.take(head)?).map_err(|_| head.error(ErrorKind::NotUtf8))
    }

    /// Reads the head of the next chunk of an indefinite-length string; `None` at its break.
    fn chunk(&mut self, major: Major) -> Result<Option<ItemHead>, Error> {
        if self.at_break() {
            return Ok(None);
        }
        let head = self.head()?;
        if head.major != major || head.is_indefinite() {
            return Err(head.error(ErrorKind::BadChunk));
        }
        Ok(Some(head))
    }

    fn elements(&mut self, head: &ItemHead, depth: usize) -> Result<Vec<Item<'a>>, Error> {
        let mut elements = Vec::new();
        let mut left = head.argument;
        while self.more(head, &mut left) {
            elements.push(self.item_within(depth)?);
        }
        Ok(elements)
    }

    fn entries(&mut self, head: &ItemHead, depth: usize) -> Result<Vec<(Item<'a>, Item<'a>)>, Error> {
        let mut entries = Vec::new();
        let mut left = head.argument;
        while self.more(head, &mut left) {
            entries.push((self.key(depth)?, self.item_within(depth)?));
        }
        refuse_duplicates(&entries)?;
        Ok(entries)
    }

    /// Reads a map key. Maps within a key may not have containers as keys: keys are encoded to be compared, and keys
    /// nested in keys would be encoded once per level.
    fn key(&mut self, depth: usize) -> Result<Item<'a>, Error> {
        let depth = if self.in_key { 0 } else { depth };
        let outer = std::mem::replace(&mut self.in_key, true);
        let key = self.item_within(depth);
        self.in_key = outer;
        key
    }

    /// Returns `true` if the array or map that this head begins has another element or entry. `left` counts down from
    /// the head's argument. Consumes the break that ends an indefinite-length item.
    pub fn more(&mut self, head: &ItemHead, left: &mut u64) -> bool {
        if head.is_indefinite() {
            return !self.at_break();
        }
        let more = *left > 0;
        *left = left.saturating_sub(1);
        more
    }

    /// Consumes a break if it is the next byte, and returns `true` in that case.
    fn at_break(&mut self) -> bool {
        let found = self.input.get(self.position) == Some(&0xff);
        self.position += usize::from(found);
        found
    }
}

fn major(initial: u8) -> Major {
    match initial >> 5 {
        0 => Major::Unsigned,
        1 => Major::Negative,
        2 => Major::Bytes,
        3 => Major::Text,
        4 => Major::Array,
        5 => Major::Map,
        6 => Major::Tag,
        _ => Major::Simple,
    }
}

fn simple(head: &ItemHead) -> Result<Value<'static>, Error> {
    if let Some(number) = head.as_float() {
        return Ok(Value::Float(number));
    }
    Ok(match (head.info, head.argument) {
        (20, _) => Value::Bool(false),
        (21, _) => Value::Bool(true),
        (22, _) => Value::Null,
        (23, _) => Value::Undefined,
        (ItemHead::INDEFINITE, _) => return Err(head.error(ErrorKind::UnexpectedBreak)),
        (_, number) => Value::Simple(number as u8),
    })
}

/// Refuses equal keys. Keys are equal if their deterministic encodings are, and sorting finds them in O(n log n).
fn refuse_duplicates(entries: &[(Item<'_>, Item<'_>)]) -> Result<(), Error> {
    if entries.len() < 2 {
        return Ok(());
    }
    let mut keys: Vec<(Vec<u8>, usize)> =
        entries.iter().map(|(key, _)| (key.value.encode(), key.offset)).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Error { offset: pair[1].1, kind: ErrorKind::DuplicateKey }),
        None => Ok(()),
    }
}
