//! Types: declarations, catalog facets, literals, texts and bytes.

use super::super::{Bytes, Collation, SqlType, Text, Value, binary_literal, number_literal};
use super::{literal, sql_type};

#[test]
fn facets_of_the_catalog() {
    // sys.columns; tds-observed.md 4 (float, nvarchar(max), datetime2(6)); "date and time types": storage sizes.
    let cases = [
        ("bit", 1, 1, 0),
        ("bigint", 8, 19, 0),
        ("decimal(9,2)", 5, 9, 2),
        ("decimal(38,0)", 17, 38, 0),
        ("money", 8, 19, 4),
        ("float(53)", 8, 53, 0),
        ("float(24)", 4, 24, 0),
        ("nvarchar(max)", -1, 0, 0),
        ("nvarchar(30)", 60, 0, 0),
        ("varchar(30)", 30, 0, 0),
        ("varbinary(max)", -1, 0, 0),
        ("date", 3, 10, 0),
        ("time(7)", 5, 16, 7),
        ("time(0)", 3, 8, 0),
        ("datetime2(6)", 8, 26, 6),
        ("datetime2(0)", 6, 19, 0),
        ("datetimeoffset(7)", 10, 34, 7),
        ("datetime", 8, 23, 3),
        ("smalldatetime", 4, 16, 0),
        ("uniqueidentifier", 16, 0, 0),
        ("rowversion", 8, 0, 0),
        ("sysname", 256, 0, 0),
    ];
    for (text, length, precision, scale) in cases {
        let ty = sql_type(text);
        assert_eq!((ty.max_length_bytes(), ty.precision(), ty.scale()), (length, precision, scale), "{text}");
    }
}

#[test]
fn declarations() {
    let parse = |name: &str, facets: &[i64]| SqlType::from_name(name, facets, 1, Collation::DEFAULT);
    for text in
        ["decimal(38,0)", "nvarchar(max)", "datetime2(6)", "varbinary(8000)", "char(1)", "int", "uniqueidentifier"]
    {
        assert_eq!(sql_type(text).to_string(), text);
    }
    assert_eq!(parse("Character  Varying", &[5]).unwrap(), SqlType::varchar(5));
    assert_eq!(parse("varchar", &[]).unwrap(), SqlType::varchar(1), "1 in a declaration, 30 in CAST");
    assert_eq!(parse("NUMERIC", &[]).unwrap(), SqlType::decimal(18, 0));
    for (name, facets, number) in [
        ("nosuch", &[][..], 243),
        ("decimal", &[39], 2750),
        ("decimal", &[5, 6], 2751),
        ("varchar", &[8001], 131),
        ("nvarchar", &[4001], 131),
        ("varchar", &[0], 1001),
        ("datetime2", &[8], 1002),
        ("int", &[4], 2716),
    ] {
        assert_eq!(parse(name, facets).unwrap_err().number, number, "{name}{facets:?}");
    }
}

#[test]
fn types_of_literals() {
    // "Constants (Transact-SQL)" and "Data types": integers beyond int are numeric.
    let cases = [
        ("1", "int"),
        ("2147483647", "int"),
        ("2147483648", "decimal(10,0)"),
        ("1.0", "decimal(2,1)"),
        ("1894.1204", "decimal(8,4)"),
        (".5", "decimal(1,1)"),
        ("2.", "decimal(1,0)"),
        ("101.5E5", "float"),
        ("0.5E-2", "float"),
        ("1e", "float"),
        ("$542023.14", "money"),
        ("'abc'", "varchar(3)"),
        ("''", "varchar(1)"),
        ("N'abc'", "nvarchar(3)"),
        ("0xAE", "varbinary(1)"),
        ("0x123", "varbinary(2)"),
    ];
    for (text, ty) in cases {
        assert_eq!(literal(text).1, sql_type(ty), "{text}");
    }
    assert_eq!(binary_literal("123").unwrap().0, Value::binary(&[0x01, 0x23]));
    assert_eq!(number_literal("1e400").unwrap_err().number, 168);
    assert_eq!(number_literal(&"9".repeat(39)).unwrap_err().number, 1007);
    assert_eq!(number_literal("1.2.3").unwrap_err().number, 102);
}

#[test]
fn values_are_small_and_share_long_bytes() {
    assert_eq!(std::mem::size_of::<Value>(), 32);
    let long = Bytes::from(vec![7; 100]);
    assert!(std::ptr::eq(long.as_slice(), long.clone().as_slice()));
    for length in [0, 1, 21, 22, 23, 100] {
        let bytes = Bytes::from(vec![9; length]);
        assert_eq!((bytes.len(), bytes.concat(&Bytes::from([1])).len()), (length, length + 1));
        assert_eq!(bytes.concat(&Bytes::EMPTY), bytes);
    }
}

#[test]
fn texts_hold_any_code_unit() {
    let text = Text::from_units(&[0x61, 0, 0xD83D, 0x62]);
    assert_eq!((text.len(), text.as_utf16le().len()), (4, 8));
    assert_eq!(text.to_string(), "a\0\u{FFFD}b");
    assert_eq!(text.slice(1, 3).to_units(), [0, 0xD83D]);
    assert_eq!(text.slice(3, 99).to_units(), [0x62]);
    assert_eq!(Text::from_utf16le(vec![0x61, 0, 0x62]).to_units(), [0x61, 0x62], "an odd byte is padded");
}

#[test]
fn code_page_1252_fits_what_it_can() {
    // The Windows best-fit table bestfit1252.txt.
    let collation = Collation::DEFAULT;
    for (text, bytes) in
        [("é€", &[0xE9, 0x80][..]), ("āŽ", &[0x61, 0x8E]), ("Ａ", &[0x41]), ("漢", b"?"), ("😀", b"??")]
    {
        assert_eq!(collation.encode(&Text::from(text)).as_slice(), bytes, "{text}");
    }
    assert_eq!(collation.decode(&[0x80, 0x81, 0xE9]), Text::from("€\u{81}é"));
}
