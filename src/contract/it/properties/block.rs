//! Generated blocks: every form of column, with values at the edges of what the form takes.

use contract::block::{Block, Column, StringColumn, Values};
use contract::encode::{Decimal, Value};
use contract::layout::WireLayout;
use contract::source_type::SourceType;

/// Source type and target declaration of every form.
pub(super) const FORMS: [(&str, &str); 31] = [
    ("Int64", "bigint"),
    ("Nullable(Int64)", "bigint nullable"),
    ("Float64", "float(53)"),
    ("Nullable(Float64)", "float(53) nullable"),
    ("String", "nvarchar(max)"),
    ("Nullable(String)", "nvarchar(max) nullable"),
    ("DateTime64(6, 'UTC')", "datetime2(6)"),
    ("Nullable(DateTime64(6))", "datetime2(6) nullable"),
    ("Int8", "smallint"),
    ("Nullable(Int16)", "bigint nullable"),
    ("Int32", "smallint"),
    ("UInt8", "tinyint"),
    ("Nullable(UInt16)", "int nullable"),
    ("UInt32", "bigint nullable"),
    ("UInt64", "decimal(20,0)"),
    ("Nullable(UInt64)", "bigint nullable"),
    ("Int64", "decimal(19,2)"),
    ("Nullable(Bool)", "bit nullable"),
    ("Bool", "bit"),
    ("Float32", "real"),
    ("Nullable(Float32)", "float(53) nullable"),
    ("Float64", "real"),
    ("UUID", "uniqueidentifier"),
    ("Nullable(Date)", "date nullable"),
    ("Date32", "date"),
    ("Decimal(20, 4)", "decimal(18,4)"),
    ("Nullable(Decimal(9, 2))", "decimal(38,10) nullable"),
    ("DateTime64(3)", "datetime2(3)"),
    ("String", "nvarchar(5)"),
    ("Nullable(String)", "varchar(8) nullable"),
    ("Nullable(String)", "bigint nullable"),
];

/// The last of [`FORMS`] has no native form; it stands for a pair that the encoder refuses to be built for.
pub(super) const GOOD_FORMS: usize = FORMS.len() - 1;

/// The first of [`FORMS`] are those that the target can digest.
pub(super) const P1_FORMS: usize = 8;

/// SplitMix64: a reproducible stream of numbers from the seed that a property draws.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Numbers(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A layout and the sources of chosen forms.
pub(super) fn layout(forms: &[usize]) -> (WireLayout, Vec<SourceType>) {
    let names: Vec<String> = (0..forms.len()).map(|index| format!("c{index}")).collect();
    let columns = names.iter().zip(forms).map(|(name, form)| (name.as_str(), FORMS[*form].1));
    let sources = forms.iter().map(|form| SourceType::parse(FORMS[*form].0).expect("admitted")).collect();
    (WireLayout::new(columns).expect("layout"), sources)
}

/// A block of `rows` rows. `wild` is how many of 1,000 cells may be ones that no target takes.
pub(super) fn block(sources: &[SourceType], rows: usize, wild: u64, seed: u64) -> Block {
    let mut numbers = Numbers::new(seed);
    let columns = sources.iter().map(|source| column(source, rows, wild, &mut numbers)).collect();
    Block { rows, columns }
}

fn column(source: &SourceType, rows: usize, wild: u64, numbers: &mut Numbers) -> Column {
    let odd = |numbers: &mut Numbers| numbers.below(1000) < wild;
    let nulls = source.nullable.then(|| (0..rows).map(|_| u8::from(numbers.below(4) == 0)).collect());
    let text = source.as_str().trim_start_matches("Nullable(");
    let name = text.split(['(', ')']).next().unwrap_or_default();
    let values = match name {
        "Int8" => collect(Values::Int8, rows, numbers, |n| n.next() as i8),
        "Int16" => collect(Values::Int16, rows, numbers, |n| n.next() as i16),
        "Int32" => collect(Values::Int32, rows, numbers, |n| if odd(n) { i32::MIN } else { n.next() as i16 as i32 }),
        "Int64" => collect(Values::Int64, rows, numbers, |n| if odd(n) { i64::MIN } else { n.next() as i64 / 1000 }),
        "UInt8" => collect(Values::UInt8, rows, numbers, |n| n.next() as u8),
        "UInt16" => collect(Values::UInt16, rows, numbers, |n| n.next() as u16),
        "UInt32" => collect(Values::UInt32, rows, numbers, |n| n.next() as u32),
        "UInt64" => collect(Values::UInt64, rows, numbers, |n| if odd(n) { u64::MAX } else { n.next() >> 1 }),
        "Bool" => collect(Values::Bool, rows, numbers, |n| if odd(n) { 2 } else { n.below(2) as u8 }),
        "Float32" => collect(Values::Float32, rows, numbers, |n| {
            if odd(n) { f32::NAN } else { n.pick(&[0.0, -0.0, 1.5, -3.25e7, f32::MIN_POSITIVE, 1e-45]) }
        }),
        "Float64" => collect(Values::Float64, rows, numbers, |n| {
            if odd(n) { n.pick(&[f64::INFINITY, 0.1, f64::NAN]) } else { n.pick(&[0.0, -0.0, 1.5, -2.0, 65536.25]) }
        }),
        "UUID" => {
            collect(Values::Uuid, rows, numbers, |n| (u128::from(n.next()) << 64 | u128::from(n.next())).to_be_bytes())
        }
        "Date" => collect(Values::Date, rows, numbers, |n| n.next() as u16),
        "Date32" => {
            collect(Values::Date32, rows, numbers, |n| if odd(n) { i32::MAX } else { n.below(100_000) as i32 - 25_567 })
        }
        "Decimal" => collect(Values::Decimal, rows, numbers, |n| {
            if odd(n) { i128::MAX } else { n.next() as i64 as i128 / 10_000_000_000 }
        }),
        // Whole milliseconds, so that the coarser columns take them; a microsecond more is the odd one.
        "DateTime64" => collect(Values::Int64, rows, numbers, |n| {
            let millis = n.below(253_402_300_800_000 + 62_135_596_800_000) as i64 - 62_135_596_800_000;
            if odd(n) { n.pick(&[i64::MAX, i64::MIN, millis * 1000 + 1]) } else { millis * 1000 }
        }),
        "String" => Values::String(texts(rows, wild, numbers)),
        other => panic!("no generator for {other}"),
    };
    Column { values, nulls }
}

fn collect<T>(
    wrap: impl FnOnce(Vec<T>) -> Values,
    rows: usize,
    numbers: &mut Numbers,
    mut make: impl FnMut(&mut Numbers) -> T,
) -> Values {
    wrap((0..rows).map(|_| make(numbers)).collect())
}

fn texts(rows: usize, wild: u64, numbers: &mut Numbers) -> StringColumn {
    let mut texts = StringColumn::default();
    // Most columns of real data are plain ASCII, which has a path of its own.
    let ascii_only = numbers.below(2) == 0;
    for _ in 0..rows {
        if numbers.below(1000) < wild {
            texts.push(numbers.pick(&[
                b"\xC3" as &[u8],
                b"\xED\xA0\x80",
                b"\xF4\x90\x80\x80",
                b"far too long for five",
                b"\x80",
            ]));
        } else if ascii_only {
            texts.push(numbers.pick(&["", "a", "abcde", "NULL", "\0"]).as_bytes());
        } else {
            texts.push(numbers.pick(&["", "é", "漢字", "😀", "e\u{301}x", "\u{FEFF}", "plain"]).as_bytes());
        }
    }
    texts
}

/// The cell of a row as a single value: the test's own reading of a block.
pub(super) fn cell<'a>(column: &'a Column, source: &SourceType, row: usize) -> Value<'a> {
    const DAY: i64 = 86_400_000_000;
    const YEAR_1: i64 = 719_162;
    if column.nulls.as_ref().is_some_and(|nulls| nulls[row] != 0) {
        return Value::Null;
    }
    match &column.values {
        Values::Int64(v) if source.as_str().contains("DateTime") => Value::DateTime {
            days: i32::try_from(v[row].div_euclid(DAY) + YEAR_1).expect("days fit"),
            ticks: v[row].rem_euclid(DAY) * 10,
            offset_seconds: None,
        },
        Values::Int8(v) => Value::Int(v[row].into()),
        Values::Int16(v) => Value::Int(v[row].into()),
        Values::Int32(v) => Value::Int(v[row].into()),
        Values::Int64(v) => Value::Int(v[row].into()),
        Values::UInt8(v) => Value::Int(v[row].into()),
        Values::UInt16(v) => Value::Int(v[row].into()),
        Values::UInt32(v) => Value::Int(v[row].into()),
        Values::UInt64(v) => Value::Int(v[row].into()),
        Values::Bool(v) => match v[row] {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            other => Value::Int(other.into()),
        },
        Values::Float32(v) => Value::Float(v[row].into()),
        Values::Float64(v) => Value::Float(v[row]),
        Values::Uuid(v) => Value::Uuid(v[row]),
        Values::Date(v) => Value::Date(i32::from(v[row]) + YEAR_1 as i32),
        Values::Date32(v) => Value::Date(v[row].checked_add(YEAR_1 as i32).unwrap_or(i32::MAX)),
        Values::Decimal(v) => {
            let scale = source.as_str().trim_end_matches(')').rsplit(',').next().and_then(|s| s.trim().parse().ok());
            Value::Decimal(Decimal::from_unscaled(v[row], scale.expect("a scale")))
        }
        Values::String(v) => Value::SourceBytes(v.get(row)),
    }
}
