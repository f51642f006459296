//! ClickHouse type names, as far as the layout of their values in the Native format goes.

/// How a column's values lie in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each value has this many bytes.
    Fixed(usize),
    /// Each value is a length and that many bytes.
    Text,
    /// One flag per row, then the values.
    Nullable(Box<Layout>),
    /// One end offset per row, then the elements.
    Array(Box<Layout>),
    /// One column after the other.
    Tuple(Vec<Layout>),
    /// A dictionary of the inner values and a key per row.
    LowCardinality(Box<Layout>),
}

/// Deeper types are refused, so that a hostile name cannot exhaust the stack.
const DEPTH_MAX: usize = 32;

/// The layout of the type called `name`; `None` for types whose values only the engine can delimit.
pub(crate) fn layout(name: &str) -> Option<Layout> {
    parse(name, DEPTH_MAX)
}

fn parse(name: &str, depth: usize) -> Option<Layout> {
    let depth = depth.checked_sub(1)?;
    let name = name.trim();
    let (family, arguments) = match name.split_once('(') {
        Some((family, rest)) => (family.trim(), split_arguments(rest.strip_suffix(')')?)),
        None => (name, Vec::new()),
    };
    let inner = |text: &str| parse(text, depth);
    let only = || match arguments.as_slice() {
        [one] => inner(one),
        _ => None,
    };
    let point = || Layout::Tuple(vec![Layout::Fixed(8), Layout::Fixed(8)]);
    let array = |of: Layout| Layout::Array(Box::new(of));
    Some(match family {
        "String" => Layout::Text,
        "FixedString" => Layout::Fixed(arguments.first()?.trim().parse().ok()?),
        "Nullable" => Layout::Nullable(Box::new(only()?)),
        "Array" => array(only()?),
        "Tuple" => Layout::Tuple(arguments.iter().map(|part| element(part, depth)).collect::<Option<_>>()?),
        "Nested" => array(Layout::Tuple(arguments.iter().map(|part| element(part, depth)).collect::<Option<_>>()?)),
        "Map" => array(Layout::Tuple(arguments.iter().map(|part| inner(part)).collect::<Option<_>>()?)),
        "LowCardinality" => Layout::LowCardinality(Box::new(match only()? {
            Layout::Nullable(inner) => *inner,
            plain => plain,
        })),
        "SimpleAggregateFunction" => inner(arguments.last()?)?,
        "Point" => point(),
        "Ring" | "LineString" => array(point()),
        "Polygon" | "MultiLineString" => array(array(point())),
        "MultiPolygon" => array(array(array(point()))),
        "Decimal" => Layout::Fixed(match arguments.first()?.trim().parse::<u32>().ok()? {
            0..=9 => 4,
            10..=18 => 8,
            19..=38 => 16,
            _ => 32,
        }),
        _ => Layout::Fixed(fixed_width(family)?),
    })
}

fn fixed_width(family: &str) -> Option<usize> {
    Some(match family {
        "UInt8" | "Int8" | "Bool" | "Enum8" | "Nothing" => 1,
        "UInt16" | "Int16" | "Date" | "Enum16" | "BFloat16" => 2,
        "UInt32" | "Int32" | "Float32" | "Date32" | "DateTime" | "Time" | "IPv4" | "Decimal32" => 4,
        "UInt64" | "Int64" | "Float64" | "DateTime64" | "Time64" | "Decimal64" => 8,
        "UInt128" | "Int128" | "UUID" | "IPv6" | "Decimal128" => 16,
        "UInt256" | "Int256" | "Decimal256" => 32,
        _ if family.starts_with("Interval") => 8,
        _ => return None,
    })
}

/// A part of a tuple: a type, or a name and a type.
fn element(part: &str, depth: usize) -> Option<Layout> {
    let part = part.trim();
    parse(part, depth).or_else(|| {
        let after_name = match part.strip_prefix('`') {
            Some(rest) => &rest[rest.find('`')? + 1..],
            None => &part[part.find(' ')?..],
        };
        parse(after_name, depth)
    })
}

/// The type's name without its low-cardinality parts, as a server sends it to a client that wants none.
pub(crate) fn without_low_cardinality(name: &str) -> String {
    const WRAPPER: &str = "LowCardinality(";
    let Some(at) = name.find(WRAPPER) else { return name.to_owned() };
    let after = at + WRAPPER.len();
    let inner = until_close(&name[after..]);
    let rest = &name[after + inner.len()..];
    let plain = format!("{}{inner}{}", &name[..at], rest.strip_prefix(')').unwrap_or(rest));
    without_low_cardinality(&plain)
}

/// The text up to the parenthesis that closes it.
fn until_close(text: &str) -> &str {
    let mut nesting = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '(' => nesting += 1,
            ')' if nesting == 0 => return &text[..at],
            ')' => nesting -= 1,
            _ => {}
        }
    }
    text
}

/// Splits at commas outside parentheses and quotes.
fn split_arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut nesting, mut quote, mut escaped) = (Vec::new(), 0, 0_usize, None, false);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '`' | '"') => quote = Some(character),
            (None, '(') => nesting += 1,
            (None, ')') => nesting = nesting.saturating_sub(1),
            (None, ',') if nesting == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Layout, layout, without_low_cardinality};

    #[test]
    fn type_names_give_their_layout() {
        let fixed = Layout::Fixed;
        let boxed = |inner: Layout| Box::new(inner);
        for (name, expected) in [
            ("UInt8", fixed(1)),
            ("DateTime64(6, 'UTC')", fixed(8)),
            ("DateTime('Europe/Berlin')", fixed(4)),
            ("Decimal(38, 10)", fixed(16)),
            ("Decimal(9, 2)", fixed(4)),
            ("Enum8('a, (b' = 1, 'it\\'s' = 2)", fixed(1)),
            ("FixedString(12)", fixed(12)),
            ("Nullable(Nothing)", Layout::Nullable(boxed(fixed(1)))),
            ("Array(Nullable(String))", Layout::Array(boxed(Layout::Nullable(boxed(Layout::Text))))),
            ("LowCardinality(Nullable(String))", Layout::LowCardinality(boxed(Layout::Text))),
            ("Map(String, UInt64)", Layout::Array(boxed(Layout::Tuple(vec![Layout::Text, fixed(8)])))),
            ("Tuple(a UInt8, `b c` String, Date)", Layout::Tuple(vec![fixed(1), Layout::Text, fixed(2)])),
            ("SimpleAggregateFunction(sum, UInt64)", fixed(8)),
        ] {
            assert_eq!(layout(name), Some(expected), "{name}");
        }
        for name in
            ["AggregateFunction(uniq, UInt64)", "JSON", "Dynamic", "Variant(UInt8, String)", "", "Array(", "Nullable()"]
        {
            assert_eq!(layout(name), None, "{name}");
        }
        assert_eq!(layout(&format!("{}UInt8{}", "Array(".repeat(10_000), ")".repeat(10_000))), None);
    }

    #[test]
    fn low_cardinality_is_taken_off() {
        for (name, plain) in [
            ("LowCardinality(Nullable(String))", "Nullable(String)"),
            ("Array(LowCardinality(String))", "Array(String)"),
            (
                "Map(LowCardinality(String), Array(LowCardinality(FixedString(3))))",
                "Map(String, Array(FixedString(3)))",
            ),
            ("UInt8", "UInt8"),
        ] {
            assert_eq!(without_low_cardinality(name), plain);
        }
    }

    proptest! {
        #[test]
        fn random_names_never_panic(name in "[A-Za-z0-9(),'`\\\\ ]{0,60}") {
            let _ = layout(&name);
            let _ = without_low_cardinality(&name);
        }
    }
}
