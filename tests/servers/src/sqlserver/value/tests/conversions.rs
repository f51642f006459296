//! Known answers of CAST and CONVERT.

use super::super::{
    CastOptions, Collation, DateFormat, SqlType, Strictness, Value, assign, cast, check_conversion, try_cast,
};
use super::{expression, show, sql_type};

/// Each case: expression, target type, style or nothing, expected text or `error number`.
fn check(source: &str, cases: &[(&str, &str, Option<i32>, &str)]) {
    for (text, target, style, expected) in cases {
        let ((value, from), to) = (expression(text), sql_type(target));
        let result = cast(&value, &from, &to, &CastOptions { style: *style, ..CastOptions::EXPLICIT });
        assert_eq!(show(&result, &to), *expected, "{source}: CONVERT({target}, {text}, {style:?}) gave {result:?}");
    }
}

#[test]
fn bytes_of_numbers_in_binary() {
    // tds-observed.md 1 (rows that hold on SQL Server), transfer.md 5; "binary and varbinary (Transact-SQL)".
    check(
        "storage bytes",
        &[
            ("1 : bigint", "binary(8)", None, "0x0000000000000001"),
            ("-2 : bigint", "varbinary(8)", None, "0xFFFFFFFFFFFFFFFE"),
            ("9223372036854775807 : bigint", "varbinary(max)", None, "0x7FFFFFFFFFFFFFFF"),
            ("-9223372036854775808 : bigint", "binary(8)", None, "0x8000000000000000"),
            ("258", "binary(8)", None, "0x0000000000000102"),
            ("66051", "binary(2)", None, "0x0203"),
            ("258 : smallint", "varbinary(8)", None, "0x0102"),
            ("200 : tinyint", "varbinary(8)", None, "0xC8"),
            ("0x0102", "binary(4)", None, "0x01020000"),
            ("0x01020304", "binary(2)", None, "0x0102"),
            ("1.1e0", "binary(8)", None, "0x3FF199999999999A"),
            ("-0e0", "binary(8)", None, "0x8000000000000000"),
            ("5e-324", "binary(8)", None, "0x0000000000000001"),
            ("1.7976931348623157e308", "binary(8)", None, "0x7FEFFFFFFFFFFFFF"),
            ("1.1e0 : real", "binary(4)", None, "0x3F8CCCCD"),
            ("1.0 : decimal(2,1)", "varbinary(20)", None, "0x020100010A000000"),
            ("-1 : decimal(38,0)", "varbinary(30)", None, "0x2600000001000000000000000000000000000000"),
            ("1 : bit", "varbinary(4)", None, "0x01"),
            ("$1", "varbinary(8)", None, "0x0000000000002710"),
        ],
    );
}

#[test]
fn bytes_of_dates_in_binary() {
    // transfer.md 5 (K. Toth; MS-TDS 2.2.5.5.1.8); 1900-01-01 is day 693595 = 0x0A955B.
    check(
        "storage bytes",
        &[
            ("'0001-01-02' : datetime2(7)", "varbinary(9)", None, "0x070000000000010000"),
            ("'1900-01-01T00:00:00.000001' : datetime2(6)", "varbinary(max)", None, "0x0601000000005B950A"),
            ("'1900-01-01' : date", "varbinary(3)", None, "0x5B950A"),
            ("'00:00:01' : time(0)", "varbinary(10)", None, "0x00010000"),
            ("'00:00:01' : time(7)", "varbinary(10)", None, "0x078096980000"),
            ("'1900-01-02 00:00:00.010' : datetime", "varbinary(8)", None, "0x0000000100000003"),
            ("'1900-01-02 00:02' : smalldatetime", "varbinary(8)", None, "0x00010002"),
            ("'1900-01-01 01:00 +01:00' : datetimeoffset(0)", "varbinary(20)", None, "0x000000005B950A3C00"),
            (
                "'0E984725-C51C-4BF4-9960-E1C80E27ABA0' : uniqueidentifier",
                "binary(16)",
                None,
                "0x2547980E1CC5F44B9960E1C80E27ABA0",
            ),
        ],
    );
}

#[test]
fn numbers_of_binary() {
    // tds-observed.md 1; "CAST and CONVERT", example of the decimal in a varbinary.
    check(
        "bytes to numbers",
        &[
            ("0xFFFFFFFF", "bigint", None, "4294967295"),
            ("0xFFFFFFFF", "int", None, "-1"),
            ("0xFF", "tinyint", None, "255"),
            ("0xFFFFFFFFFFFFFFFF", "bigint", None, "-1"),
            ("0x00000000FFFFFFFF", "bigint", None, "4294967295"),
            ("0x0100000002", "int", None, "2"),
            ("193.57 : decimal(5,2) : varbinary(20)", "decimal(10,5)", None, "193.57000"),
            ("0x3FF199999999999A", "float", None, "error 529"),
            ("0x2547980E1CC5F44B9960E1C80E27ABA0", "uniqueidentifier", None, "0E984725-C51C-4BF4-9960-E1C80E27ABA0"),
        ],
    );
}

#[test]
fn texts_of_binary_and_back() {
    // "CAST and CONVERT", binary styles and their example.
    check(
        "binary styles",
        &[
            ("0x4E616d65", "char(8)", Some(0), "Name    "),
            ("0x4E616d65", "char(8)", Some(1), "0x4E616D"),
            ("0x4E616d65", "char(8)", Some(2), "4E616D65"),
            ("'Name'", "binary(8)", Some(0), "0x4E616D6500000000"),
            ("'0x4E616D65'", "binary(4)", Some(1), "0x4E616D65"),
            ("'4E616D65'", "binary(4)", Some(2), "0x4E616D65"),
            ("'4E616D65'", "binary(4)", Some(1), "error 8114"),
            ("'4E6'", "binary(4)", Some(2), "error 8114"),
            ("N'a\u{20AC}'", "varbinary(max)", None, "0x6100AC20"),
            ("'a\u{20AC}'", "varbinary(max)", None, "0x6180"),
            ("0x6100AC20", "nvarchar(10)", None, "a\u{20AC}"),
        ],
    );
}

#[test]
fn rounding_and_cutting() {
    // "CAST and CONVERT", section "Truncating and rounding results".
    check(
        "rounding",
        &[
            ("10.6496", "int", None, "10"),
            ("-10.6496", "int", None, "-10"),
            ("10.6496", "numeric", None, "11"),
            ("-10.6496", "numeric", None, "-11"),
            ("10.3496847", "money", None, "10.35"),
            ("$10.6496", "int", None, "11"),
            ("1.5e0", "int", None, "1"),
            ("1234567", "char(3)", None, "*  "),
            ("1234567", "nvarchar(3)", None, "error 8115"),
            ("'1.999'", "decimal(3,1)", None, "2.0"),
            ("'abc'", "char(2)", None, "ab"),
            ("'true'", "bit", None, "1"),
            ("'FALSE'", "bit", None, "0"),
            ("''", "int", None, "0"),
            ("' 12 '", "int", None, "12"),
        ],
    );
}

#[test]
fn texts_of_numbers() {
    // "CAST and CONVERT", float and money styles.
    check(
        "number styles",
        &[
            ("123456789e0", "varchar(30)", None, "1.23457e+008"),
            ("0.1e0", "varchar(30)", None, "0.1"),
            ("100e0", "varchar(30)", None, "100"),
            ("0.00001e0", "varchar(30)", None, "1e-005"),
            ("1.5e0", "varchar(30)", Some(1), "1.5000000e+000"),
            ("1.5e0", "varchar(30)", Some(2), "1.500000000000000e+000"),
            ("0.1e0", "varchar(30)", Some(3), "1.0000000000000001e-001"),
            ("$4235.9819", "varchar(30)", Some(0), "4235.98"),
            ("$3510.92", "varchar(30)", Some(1), "3,510.92"),
            ("$4235.9819", "varchar(30)", Some(2), "4235.9819"),
            ("1.50", "varchar(30)", None, "1.50"),
            ("-0.05", "varchar(30)", None, "-0.05"),
        ],
    );
}

#[test]
fn texts_of_dates() {
    // "CAST and CONVERT", date and time styles; "PRINT" and the datetime page for the defaults.
    let day = "'2013-07-04 13:05:09.120' : datetime";
    check(
        "date styles",
        &[
            ("'2013-07-04' : datetime", "varchar(30)", None, "Jul  4 2013 12:00AM"),
            (day, "varchar(30)", Some(1), "07/04/13"),
            (day, "varchar(30)", Some(101), "07/04/2013"),
            (day, "varchar(30)", Some(102), "2013.07.04"),
            (day, "varchar(30)", Some(103), "04/07/2013"),
            (day, "varchar(30)", Some(104), "04.07.2013"),
            (day, "varchar(30)", Some(105), "04-07-2013"),
            (day, "varchar(30)", Some(106), "04 Jul 2013"),
            (day, "varchar(30)", Some(107), "Jul 04, 2013"),
            (day, "varchar(30)", Some(108), "13:05:09"),
            (day, "varchar(30)", Some(109), "Jul  4 2013  1:05:09:120PM"),
            (day, "varchar(30)", Some(110), "07-04-2013"),
            (day, "varchar(30)", Some(111), "2013/07/04"),
            (day, "varchar(30)", Some(112), "20130704"),
            (day, "varchar(30)", Some(113), "04 Jul 2013 13:05:09:120"),
            (day, "varchar(30)", Some(114), "13:05:09:120"),
            (day, "varchar(30)", Some(120), "2013-07-04 13:05:09"),
            (day, "varchar(30)", Some(121), "2013-07-04 13:05:09.120"),
            (day, "varchar(30)", Some(126), "2013-07-04T13:05:09.120"),
            ("'2013-07-04' : datetime", "varchar(30)", Some(126), "2013-07-04T00:00:00"),
            (day, "varchar(30)", Some(999), "error 281"),
            ("'2013-07-04 13:05:09.1234567' : datetime2", "varchar(30)", None, "2013-07-04 13:05:09.1234567"),
            ("'2013-07-04 13:05:09.1234567' : datetime2(3)", "varchar(30)", None, "2013-07-04 13:05:09.123"),
            ("'2013-07-04' : date", "varchar(30)", None, "2013-07-04"),
            ("'13:05:09' : time(0)", "varchar(30)", None, "13:05:09"),
            ("'2013-07-04 13:05:09 +02:00' : datetimeoffset(0)", "varchar(40)", None, "2013-07-04 13:05:09 +02:00"),
            ("'2013-07-04 13:05:09 +02:00' : datetimeoffset(0)", "varchar(40)", Some(127), "2013-07-04T11:05:09Z"),
        ],
    );
}

#[test]
fn dates_of_texts() {
    // "datetime (Transact-SQL)": rounding to .000, .003, .007; "Supported string literal formats for datetime".
    check(
        "date literals",
        &[
            ("'01/01/98 23:59:59.999'", "datetime", Some(1), "Jan  2 1998 12:00AM"),
            ("'1998-01-01 23:59:59.995' : datetime", "varchar(30)", Some(121), "1998-01-01 23:59:59.997"),
            ("'1998-01-01 23:59:59.992' : datetime", "varchar(30)", Some(121), "1998-01-01 23:59:59.993"),
            ("'1998-01-01 23:59:59.990' : datetime", "varchar(30)", Some(121), "1998-01-01 23:59:59.990"),
            ("'20130704'", "date", None, "2013-07-04"),
            ("'April 15, 1996'", "date", None, "1996-04-15"),
            ("'15 April 1996'", "date", None, "1996-04-15"),
            ("'4/15/96'", "date", None, "1996-04-15"),
            ("'14:30'", "time(0)", None, "14:30:00"),
            ("'4PM'", "time(0)", None, "16:00:00"),
            ("'04:30 AM'", "time(0)", None, "04:30:00"),
            ("'2012-06-18T10:34:09.1234567'", "datetime2", None, "2012-06-18 10:34:09.1234567"),
            ("''", "datetime", None, "Jan  1 1900 12:00AM"),
            ("'abc'", "datetime", None, "error 241"),
            ("'2013-02-30'", "datetime", None, "error 242"),
            ("'1752-12-31'", "datetime", None, "error 242"),
            ("'2013-02-30'", "datetime2", None, "error 241"),
            ("'2013-01-01 00:00:00.1234'", "datetime", None, "error 241"),
            ("'abc'", "smalldatetime", None, "error 295"),
            ("'abc'", "date", Some(103), "error 9807"),
            ("'2000-05-08 12:35:29.998' : datetime", "smalldatetime", None, "May  8 2000 12:35PM"),
            ("'2013-07-04 12:00' : datetime", "int", None, "41458"),
            ("1", "datetime", None, "Jan  2 1900 12:00AM"),
            ("1", "date", None, "error 529"),
            ("'2013-07-04' : date", "int", None, "error 529"),
            ("'2013-07-04' : date", "time(0)", None, "error 529"),
        ],
    );
}

#[test]
fn errors_of_values() {
    // sys.messages; "Database engine events and errors".
    check(
        "error numbers",
        &[
            ("'abc'", "int", None, "error 245"),
            ("'1.5'", "int", None, "error 245"),
            ("'abc'", "bigint", None, "error 8114"),
            ("'abc'", "decimal(5,2)", None, "error 8114"),
            ("'abc'", "float", None, "error 8114"),
            ("'abc'", "money", None, "error 235"),
            ("'abc'", "smallmoney", None, "error 293"),
            ("'abc'", "uniqueidentifier", None, "error 8169"),
            ("'99999999999'", "int", None, "error 248"),
            ("'99999'", "smallint", None, "error 244"),
            ("99999", "smallint", None, "error 220"),
            ("300", "tinyint", None, "error 220"),
            ("3000000000", "int", None, "error 8115"),
            ("1e30", "int", None, "error 8115"),
            ("300e0", "tinyint", None, "error 232"),
            ("1000", "decimal(3,1)", None, "error 8115"),
            ("'1000'", "decimal(3,1)", None, "error 8115"),
            ("'0E984725-C51C-4BF4-9960-E1C80E27ABA0' : uniqueidentifier", "varchar(10)", None, "error 8170"),
        ],
    );
    let (value, from) = expression("'abc'");
    let error = cast(&value, &from, &SqlType::Int, &CastOptions::EXPLICIT).unwrap_err();
    assert_eq!(error.message, "Conversion failed when converting the varchar value 'abc' to data type int.");
    assert_eq!((error.class, error.state), (16, 1));
}

#[test]
fn implicit_conversions() {
    // "Data type conversion (Database Engine)", the chart.
    let cases = [
        ("varchar(10)", "varbinary(10)", 257),
        ("nvarchar(10)", "varbinary(max)", 257),
        ("datetime", "int", 257),
        ("money", "varchar(10)", 257),
        ("int", "date", 206),
        ("date", "int", 206),
        ("varbinary(8)", "float", 206),
        ("uniqueidentifier", "int", 206),
        ("sql_variant", "int", 257),
        ("nvarchar(max)", "sql_variant", 206),
    ];
    for (from, to, number) in cases {
        let error = check_conversion(&sql_type(from), &sql_type(to), Strictness::Implicit).unwrap_err();
        assert_eq!(error.number, number, "{from} to {to}");
    }
    for (from, to) in [
        ("int", "varchar(10)"),
        ("varchar(10)", "int"),
        ("varbinary(8)", "bigint"),
        ("int", "datetime"),
        ("date", "datetime"),
    ] {
        check_conversion(&sql_type(from), &sql_type(to), Strictness::Implicit).unwrap();
    }
}

#[test]
fn try_cast_keeps_errors_of_types() {
    let (value, from) = expression("'abc'");
    assert_eq!(try_cast(&value, &from, &SqlType::Int, &CastOptions::EXPLICIT), Ok(Value::Null));
    let number = try_cast(&Value::binary(&[1]), &SqlType::varbinary(1), &SqlType::Float, &CastOptions::EXPLICIT);
    assert_eq!(number.unwrap_err().number, 529);
}

#[test]
fn assignment_refuses_to_cut() {
    let (value, from) = expression("N'abc'");
    let assigned = |to: &str| assign(&value, &from, &sql_type(to), DateFormat::Mdy);
    assert_eq!(assigned("varchar(2)").unwrap_err().number, 8152);
    assert_eq!(assigned("nvarchar(2)").unwrap_err().number, 8152);
    assert_eq!(assigned("nvarchar(3)"), Ok(Value::text("abc")));
    let (spaces, from) = expression("N'ab  '");
    assert_eq!(assign(&spaces, &from, &sql_type("nvarchar(2)"), DateFormat::Mdy), Ok(Value::text("ab")));
    assert_eq!(
        assign(&Value::binary(&[1, 2]), &SqlType::varbinary(2), &sql_type("binary(1)"), DateFormat::Mdy)
            .unwrap_err()
            .number,
        8152
    );
}

#[test]
fn utf8_collations_change_bytes_of_varchar() {
    // "Collation and Unicode support": UTF-8 enabled collations.
    let utf8 = SqlType::VARCHAR_MAX.with_collation(Collation::LATIN1_100_BIN2_UTF8);
    let text = cast(&Value::text("é\u{1F600}"), &SqlType::nvarchar(10), &utf8, &CastOptions::EXPLICIT).unwrap();
    let bytes = cast(&text, &utf8, &SqlType::VARBINARY_MAX, &CastOptions::EXPLICIT);
    assert_eq!(show(&bytes, &SqlType::VARBINARY_MAX), "0xC3A9F09F9880");
    let cut = SqlType::VarChar(super::super::Length::Sized(5), Collation::LATIN1_100_BIN2_UTF8);
    assert_eq!(cast(&text, &utf8, &cut, &CastOptions::EXPLICIT), Ok(Value::text("é")), "cut between characters");
}

#[test]
fn names_and_tds_forms_of_collations() {
    // MS-TDS 2.2.5.1.2; the names of sys.fn_helpcollations.
    let cases = [
        ("SQL_Latin1_General_CP1_CI_AS", [0x09, 0x04, 0xD0, 0x00, 0x34]),
        ("Latin1_General_CI_AS", [0x09, 0x04, 0xD0, 0x00, 0x00]),
        ("Latin1_General_BIN2", [0x09, 0x04, 0x00, 0x02, 0x00]),
        ("Latin1_General_100_BIN2_UTF8", [0x09, 0x04, 0x00, 0x26, 0x00]),
        ("Latin1_General_100_CS_AS_KS_WS_SC_UTF8", [0x09, 0x04, 0x00, 0x24, 0x00]),
    ];
    for (name, tds) in cases {
        let collation = Collation::from_name(name).unwrap();
        assert_eq!((collation.name(), collation.to_tds()), (name.to_owned(), tds));
    }
    for name in ["Latin1_General", "Latin1_General_CI_AS_UTF8", "Nowhere_CI_AS", "SQL_Latin1_General_CP1_BIN2"] {
        assert_eq!(Collation::from_name(name).unwrap_err().number, 448, "{name}");
    }
}
