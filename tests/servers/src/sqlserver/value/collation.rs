//! Collations: names, TDS form, code pages.
//!
//! Two families with every sensitivity: `SQL_Latin1_General_CP1` (sort orders 51, 52, 54) and
//! `Latin1_General` (versions 80 and 100, `BIN`, `BIN2`, `SC`, `UTF8`). Other names are error 448.

use super::{Bytes, Text, ValueError};

/// A collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Collation {
    family: Family,
    sensitivity: Sensitivity,
    supplementary: bool,
    utf8: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Family {
    SqlLatin1GeneralCp1,
    Latin1General,
    Latin1General100,
}

/// What a comparison distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sensitivity {
    /// First code unit as a word, the rest as bytes (`BIN`).
    Binary,
    /// Code points (`BIN2`).
    Binary2,
    /// Letters, then accents, then case.
    Linguistic { case: bool, accent: bool, kana: bool, width: bool },
}

/// How a collation came to an expression ("Collation precedence").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coercibility {
    /// Variable, parameter, literal, function of such.
    CoercibleDefault,
    /// Column.
    Implicit,
    /// Two implicit collations that differ; an error as soon as a comparison needs one.
    NoCollation,
    /// COLLATE clause.
    Explicit,
}

impl Collation {
    /// `SQL_Latin1_General_CP1_CI_AS`, the default of a server with US English.
    pub const DEFAULT: Self = Self {
        family: Family::SqlLatin1GeneralCp1,
        sensitivity: Sensitivity::Linguistic { case: false, accent: true, kana: false, width: false },
        supplementary: false,
        utf8: false,
    };

    /// `Latin1_General_BIN2`.
    pub const LATIN1_BIN2: Self =
        Self { family: Family::Latin1General, sensitivity: Sensitivity::Binary2, supplementary: false, utf8: false };

    /// `Latin1_General_100_BIN2_UTF8`.
    pub const LATIN1_100_BIN2_UTF8: Self =
        Self { family: Family::Latin1General100, sensitivity: Sensitivity::Binary2, supplementary: false, utf8: true };

    /// A collation by name, any case.
    ///
    /// # Errors
    /// 448 for a name that is not known.
    pub fn from_name(name: &str) -> Result<Self, ValueError> {
        parse_name(name).ok_or_else(|| ValueError::new(448, 1, format!("Invalid collation '{name}'.")))
    }

    /// The name, as SERVERPROPERTY and sys.columns give it.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = String::from(match self.family {
            Family::SqlLatin1GeneralCp1 => "SQL_Latin1_General_CP1",
            Family::Latin1General => "Latin1_General",
            Family::Latin1General100 => "Latin1_General_100",
        });
        match self.sensitivity {
            Sensitivity::Binary => name.push_str("_BIN"),
            Sensitivity::Binary2 => name.push_str("_BIN2"),
            Sensitivity::Linguistic { case, accent, kana, width } => {
                name.push_str(if case { "_CS" } else { "_CI" });
                name.push_str(if accent { "_AS" } else { "_AI" });
                name.push_str(if kana { "_KS" } else { "" });
                name.push_str(if width { "_WS" } else { "" });
            }
        }
        name.push_str(if self.supplementary { "_SC" } else { "" });
        name.push_str(if self.utf8 { "_UTF8" } else { "" });
        name
    }

    /// The five bytes of a COLLATION (MS-TDS 2.2.5.1.2): LCID, flags, version, sort id.
    #[must_use]
    pub fn to_tds(&self) -> [u8; 5] {
        let mut flags = 0_u8;
        let mut high = match self.family {
            Family::Latin1General100 => 0x20,
            _ => 0,
        };
        match self.sensitivity {
            Sensitivity::Binary => high |= 0x01,
            Sensitivity::Binary2 => high |= 0x02,
            Sensitivity::Linguistic { case, accent, kana, width } => {
                flags |= if case { 0 } else { 0x10 };
                flags |= if accent { 0 } else { 0x20 };
                flags |= if kana { 0 } else { 0x40 };
                flags |= if width { 0 } else { 0x80 };
            }
        }
        high |= if self.utf8 { 0x04 } else { 0 };
        let sort_id = match (self.family, self.sensitivity) {
            (Family::SqlLatin1GeneralCp1, Sensitivity::Linguistic { case: true, .. }) => 51,
            (Family::SqlLatin1GeneralCp1, Sensitivity::Linguistic { accent: true, .. }) => 52,
            (Family::SqlLatin1GeneralCp1, _) => 54,
            _ => 0,
        };
        [0x09, 0x04, flags, high, sort_id]
    }

    /// Whether `varchar` holds UTF-8.
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        self.utf8
    }

    /// `BIN` or `BIN2`.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        matches!(self.sensitivity, Sensitivity::Binary | Sensitivity::Binary2)
    }

    pub(super) fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// The bytes of a text in a `varchar` of this collation: UTF-8 or code page 1252 with Windows' best fit,
    /// `?` for what the code page does not have. A lone surrogate is U+FFFD in UTF-8.
    #[must_use]
    pub fn encode(&self, text: &Text) -> Bytes {
        if text.is_ascii() {
            return Bytes::from(text.as_utf16le().iter().step_by(2).copied().collect::<Vec<u8>>());
        }
        if self.utf8 {
            return Bytes::from(text.to_string().into_bytes());
        }
        let mut encoded = Vec::with_capacity(text.len());
        // A surrogate pair becomes two question marks, one per unit.
        encoded.extend(text.units().map(encode_unit));
        Bytes::from(encoded)
    }

    /// The text of `varchar` bytes.
    #[must_use]
    pub fn decode(&self, bytes: &[u8]) -> Text {
        if self.utf8 {
            return Text::from(&*String::from_utf8_lossy(bytes));
        }
        let units = bytes.iter().flat_map(|byte| decode_byte(*byte).to_le_bytes());
        Text::from_utf16le(units.collect::<Vec<u8>>())
    }

    /// Bytes that a text takes in a `varchar` of this collation.
    #[must_use]
    pub fn encoded_len(&self, text: &Text) -> usize {
        if self.utf8 && !text.is_ascii() { self.encode(text).len() } else { text.len() }
    }

    /// The collation of an expression of two character operands.
    ///
    /// # Errors
    /// 468 for two different explicit or implicit collations.
    pub fn resolve(
        left: (Self, Coercibility),
        right: (Self, Coercibility),
        operation: &str,
    ) -> Result<(Self, Coercibility), ValueError> {
        let conflict = || {
            let (left, right) = (left.0.name(), right.0.name());
            let text = format!(
                "Cannot resolve the collation conflict between \"{right}\" and \"{left}\" in the {operation} operation."
            );
            ValueError::new(468, 9, text)
        };
        if left.0 == right.0 {
            return Ok((left.0, left.1.max(right.1)));
        }
        match (left.1, right.1) {
            (Coercibility::Explicit, Coercibility::Explicit)
            | (
                Coercibility::Implicit | Coercibility::NoCollation,
                Coercibility::Implicit | Coercibility::NoCollation,
            ) => Err(conflict()),
            (l, r) if l > r => Ok(left),
            (l, r) if r > l => Ok(right),
            _ => Ok(left),
        }
    }
}

impl Default for Collation {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn parse_name(name: &str) -> Option<Collation> {
    let upper = name.to_ascii_uppercase();
    let (family, rest) = if let Some(rest) = upper.strip_prefix("SQL_LATIN1_GENERAL_CP1_") {
        (Family::SqlLatin1GeneralCp1, rest)
    } else if let Some(rest) = upper.strip_prefix("LATIN1_GENERAL_100_") {
        (Family::Latin1General100, rest)
    } else {
        (Family::Latin1General, upper.strip_prefix("LATIN1_GENERAL_")?)
    };
    let mut words = rest.split('_').peekable();
    let sensitivity = match words.next()? {
        "BIN" => Sensitivity::Binary,
        "BIN2" => Sensitivity::Binary2,
        first @ ("CI" | "CS") => {
            let accent = match words.next()? {
                "AS" => true,
                "AI" => false,
                _ => return None,
            };
            let kana = words.next_if_eq(&"KS").is_some();
            let width = words.next_if_eq(&"WS").is_some();
            Sensitivity::Linguistic { case: first == "CS", accent, kana, width }
        }
        _ => return None,
    };
    let supplementary = words.next_if_eq(&"SC").is_some();
    let utf8 = words.next_if_eq(&"UTF8").is_some();
    let binary2 = sensitivity == Sensitivity::Binary2;
    let linguistic = matches!(sensitivity, Sensitivity::Linguistic { .. });
    let exists = match family {
        Family::SqlLatin1GeneralCp1 => {
            matches!(
                sensitivity,
                Sensitivity::Linguistic { case, accent, kana: false, width: false } if accent || !case
            ) && !supplementary
                && !utf8
        }
        Family::Latin1General => !supplementary && !utf8,
        Family::Latin1General100 => (!supplementary || linguistic) && (!utf8 || supplementary || binary2),
    };
    (words.next().is_none() && exists).then_some(Collation { family, sensitivity, supplementary, utf8 })
}

/// Code page 1252 from 0x80 to 0x9F; the five undefined bytes map to the control of the same number.
const CP1252_HIGH: [u16; 32] = [
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x008D,
    0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A,
    0x0153, 0x009D, 0x017E, 0x0178,
];

fn decode_byte(byte: u8) -> u16 {
    match byte {
        0x80..=0x9F => CP1252_HIGH[usize::from(byte - 0x80)],
        _ => u16::from(byte),
    }
}

fn encode_unit(unit: u16) -> u8 {
    if let Ok(byte @ (0..=0x7F | 0xA0..=0xFF)) = u8::try_from(unit) {
        return byte;
    }
    if let Some(position) = CP1252_HIGH.iter().position(|known| *known == unit) {
        return 0x80 + u8::try_from(position).unwrap_or(0);
    }
    match unit {
        // Full-width forms fit their ASCII originals, Latin Extended-A its base letters (bestfit1252.txt).
        0xFF01..=0xFF5E => u8::try_from(unit - 0xFEE0).unwrap_or(b'?'),
        0x0100..=0x017F => LATIN_EXTENDED_A_BASE[usize::from(unit - 0x0100)],
        _ => b'?',
    }
}

/// Base letters of U+0100 to U+017F, `?` where there is none in ASCII.
pub(super) const LATIN_EXTENDED_A_BASE: &[u8; 128] =
    b"AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIi??JjKk?LlLlLl??LlNnNnNn???OoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZz?";
