//! Short-inline, long-shared byte strings, and texts of UTF-16 code units over them.

use std::sync::Arc;

const INLINE_BYTES: usize = 22;

/// An immutable byte string of 24 bytes: up to 22 bytes inline, longer ones shared.
///
/// Most binaries of a query are short (`CAST(x AS binary(8))`, one byte of SUBSTRING, a hash is 32),
/// so the common case costs no allocation, and cloning never copies a long one.
#[derive(Clone)]
pub struct Bytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline { length: u8, data: [u8; INLINE_BYTES] },
    Shared(Arc<[u8]>),
}

impl Bytes {
    /// The empty byte string.
    pub const EMPTY: Self = Self(Repr::Inline { length: 0, data: [0; INLINE_BYTES] });

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { length, data } => &data[..usize::from(*length)],
            Repr::Shared(bytes) => bytes,
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline { length, .. } => usize::from(*length),
            Repr::Shared(bytes) => bytes.len(),
        }
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Two byte strings after each other.
    #[must_use]
    pub fn concat(&self, other: &Self) -> Self {
        let (left, right) = (self.as_slice(), other.as_slice());
        let length = left.len() + right.len();
        if length <= INLINE_BYTES {
            let mut data = [0; INLINE_BYTES];
            data[..left.len()].copy_from_slice(left);
            data[left.len()..length].copy_from_slice(right);
            return Self::inline(length, data);
        }
        let mut joined = Vec::with_capacity(length);
        joined.extend_from_slice(left);
        joined.extend_from_slice(right);
        Self(Repr::Shared(joined.into()))
    }

    #[allow(clippy::cast_possible_truncation, reason = "length <= INLINE_BYTES")]
    fn inline(length: usize, data: [u8; INLINE_BYTES]) -> Self {
        debug_assert!(length <= INLINE_BYTES);
        Self(Repr::Inline { length: length as u8, data })
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() <= INLINE_BYTES {
            let mut data = [0; INLINE_BYTES];
            data[..bytes.len()].copy_from_slice(bytes);
            Self::inline(bytes.len(), data)
        } else {
            Self(Repr::Shared(bytes.into()))
        }
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(bytes: [u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE_BYTES { Self::from(bytes.as_slice()) } else { Self(Repr::Shared(bytes.into())) }
    }
}

impl From<Arc<[u8]>> for Bytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        if bytes.len() <= INLINE_BYTES { Self::from(&*bytes) } else { Self(Repr::Shared(bytes)) }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Bytes {}

impl std::hash::Hash for Bytes {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("0x")?;
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// A text as UTF-16LE code units, the form in which SQL Server stores `nvarchar` and TDS carries it.
///
/// U+0000 and lone surrogates are allowed, as in SQL Server. `varchar` values have the same form;
/// their code page is applied when they are converted ([`super::Collation::encode`]).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(Bytes);

impl Text {
    /// The empty text.
    pub const EMPTY: Self = Self(Bytes::EMPTY);

    /// A text from UTF-16LE bytes; an odd last byte is padded with 0, as a conversion from `varbinary` does.
    #[must_use]
    pub fn from_utf16le(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        if bytes.len() % 2 == 0 { Self(bytes) } else { Self(bytes.concat(&Bytes::from([0]))) }
    }

    /// A text from code units.
    #[must_use]
    pub fn from_units(units: &[u16]) -> Self {
        Self(Bytes::from(units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>()))
    }

    /// The UTF-16LE bytes.
    #[must_use]
    pub fn as_utf16le(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The UTF-16LE bytes, shared.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Length in code units (byte pairs).
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Whether there is no code unit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The code units.
    pub fn units(&self) -> impl DoubleEndedIterator<Item = u16> + ExactSizeIterator + Clone + '_ {
        self.0.as_slice().chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
    }

    /// The code units as a vector, for work that needs random access.
    #[must_use]
    pub fn to_units(&self) -> Vec<u16> {
        self.units().collect()
    }

    /// Code units `start..end`; both are cut to the length.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        let end = end.min(self.len());
        if start == 0 && end == self.len() {
            return self.clone();
        }
        let start = start.min(end);
        Self(Bytes::from(&self.0.as_slice()[2 * start..2 * end]))
    }

    /// Two texts after each other.
    #[must_use]
    pub fn concat(&self, other: &Self) -> Self {
        Self(self.0.concat(&other.0))
    }

    /// Whether all characters are ASCII; then the text is the ASCII characters.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.0.as_slice().chunks_exact(2).all(|pair| pair[1] == 0 && pair[0] < 0x80)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::from(text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()))
    }
}

/// For messages and names: lone surrogates become U+FFFD.
impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        char::decode_utf16(self.units()).try_for_each(|unit| f.write_char(unit.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}
