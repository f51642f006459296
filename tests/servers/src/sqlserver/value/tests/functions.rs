//! Known answers of the built-in functions, from the examples of their pages in the Transact-SQL reference.

use std::sync::atomic::AtomicU64;

use super::super::{Argument, DateFormat, DateTime2, FunctionContext, SqlType, Value, ValueError, resolve_function};
use super::{expression, show};

fn context() -> FunctionContext {
    // 2013-07-04 12:34:56.789, local time two hours ahead.
    FunctionContext {
        now_utc: DateTime2 { days: 735_052, ticks: 452_967_890_000 },
        offset_minutes: 120,
        date_first: 7,
        date_format: DateFormat::Mdy,
        random_state: AtomicU64::new(1),
    }
}

/// `NAME(arg; arg)`; a bare word is a datepart.
fn call(text: &str) -> (Result<Value, ValueError>, SqlType) {
    let (name, arguments) = text.split_once('(').unwrap();
    let arguments = arguments.strip_suffix(')').unwrap();
    let is_word = |argument: &str| {
        argument.starts_with(|c: char| c.is_ascii_alphabetic())
            && !argument.starts_with("NULL")
            && !argument.contains('\'')
    };
    let split: Vec<&str> = if arguments.is_empty() { Vec::new() } else { arguments.split("; ").collect() };
    let (mut given, mut values) = (Vec::new(), Vec::new());
    for argument in split {
        if is_word(argument) {
            given.push(Argument::Keyword(argument));
        } else {
            let (value, ty) = expression(argument);
            given.push(Argument::Typed { ty, nullable: true });
            values.push(value);
        }
    }
    match resolve_function(name, &given) {
        Ok(function) => (function.call(&values, &context()), function.result),
        Err(error) => (Err(error), SqlType::Int),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let (result, ty) = call(text);
        assert_eq!(show(&result, &ty), *expected, "{text} gave {result:?} of {ty}");
    }
}

#[test]
fn texts() {
    check(&[
        ("LEN('abc   ')", "3"),
        ("LEN(N'')", "0"),
        ("LEN(12345)", "5"),
        ("DATALENGTH(N'a ')", "4"),
        ("DATALENGTH(N'\u{1F600}')", "4"),
        ("DATALENGTH(N'')", "0"),
        ("DATALENGTH(NULL)", "NULL"),
        ("DATALENGTH('abc')", "3"),
        ("DATALENGTH(1 : bigint)", "8"),
        ("DATALENGTH(1.5 : decimal(20,2))", "13"),
        ("LEFT('abcdefg'; 2)", "ab"),
        ("LEFT('abc'; -1)", "error 537"),
        ("RIGHT('abcdefg'; 2)", "fg"),
        ("RIGHT('abc'; -1)", "error 536"),
        ("SUBSTRING('abcdef'; 2; 3)", "bcd"),
        ("SUBSTRING('abcdef'; 0; 3)", "ab"),
        ("SUBSTRING('abcdef'; -1; 1)", ""),
        ("SUBSTRING('abcdef'; 1; -1)", "error 537"),
        ("SUBSTRING(0x010203; 2; 1)", "0x02"),
        ("SUBSTRING(123; 1; 1)", "error 8116"),
        ("STUFF('abcdef'; 2; 3; 'ijklmn')", "aijklmnef"),
        ("STUFF('abc'; 0; 1; 'x')", "NULL"),
        ("STUFF('abc'; 4; 1; 'x')", "NULL"),
        ("REPLICATE('0'; 4)", "0000"),
        ("REPLICATE('0'; -1)", "NULL"),
        ("REVERSE('abc')", "cba"),
        ("UPPER(N'aé')", "AÉ"),
        ("LOWER(N'AÉ')", "aé"),
        ("LTRIM('  a ')", "a "),
        ("RTRIM(' a  ')", " a"),
        ("TRIM('  test  ')", "test"),
        ("TRIM('.,! '; '     #     test    .')", "#     test"),
        ("LTRIM('123abc.'; '123.')", "abc."),
        ("RTRIM('.123abc.'; 'abc.')", ".123"),
        ("SOUNDEX('Smith')", "S530"),
        ("SOUNDEX('Smythe')", "S530"),
        ("DIFFERENCE('Green'; 'Greene')", "4"),
        ("CONCAT('a'; NULL; 1; 2.50)", "a12.50"),
        ("CONCAT('a')", "error 189"),
        ("CONCAT_WS(','; '1 Microsoft Way'; NULL; NULL; 'Redmond'; 'WA'; 98052)", "1 Microsoft Way,Redmond,WA,98052"),
        ("SPACE(3)", "   "),
        ("CHAR(65)", "A"),
        ("CHAR(256)", "NULL"),
        ("NCHAR(8364)", "€"),
        ("ASCII('P')", "80"),
        ("ASCII('')", "NULL"),
        ("UNICODE(N'Åkergatan')", "197"),
        ("LEN('a'; 'b')", "error 174"),
        ("NOSUCH('a')", "error 195"),
        ("CHECKSUM('a')", "error 195"),
    ]);
    let (value, ty) = call("REPLICATE('ab'; 5000)");
    assert!(matches!(value, Ok(Value::String(text)) if text.len() == 8000), "cut at 8000 bytes, {ty}");
    let (value, _) = call("REPLICATE('ab' : varchar(max); 5000)");
    assert!(matches!(value, Ok(Value::String(text)) if text.len() == 10_000));
    let error = resolve_function("nosuch", &[]).unwrap_err();
    assert_eq!(
        (error.number, error.class, error.message.as_str()),
        (195, 15, "'nosuch' is not a recognized built-in function name.")
    );
}

#[test]
fn searching_and_names() {
    check(&[
        ("CHARINDEX('is'; 'This is a string')", "3"),
        ("CHARINDEX('IS'; 'This is a string'; 4)", "6"),
        ("CHARINDEX('x'; 'abc')", "0"),
        ("PATINDEX('%ter%'; 'interesting data')", "3"),
        ("PATINDEX('%[^ 0-9A-Za-z]%'; 'Please ensure the door is locked!')", "33"),
        ("PATINDEX('abc'; 'xabc')", "0"),
        ("REPLACE('abcdefghicde'; 'cde'; 'xxx')", "abxxxfghixxx"),
        ("REPLACE('abc'; 'B'; '')", "ac"),
        ("REPLACE('abc'; 'x'; NULL)", "NULL"),
        ("TRANSLATE('2*[3+4]/{7-2}'; '[]{}'; '()()')", "2*(3+4)/(7-2)"),
        ("TRANSLATE('abc'; 'ab'; 'x')", "error 9828"),
        ("QUOTENAME('abc[]def')", "[abc[]]def]"),
        ("QUOTENAME('a''b'; '''')", "'a''b'"),
        ("QUOTENAME('a'; 'x')", "NULL"),
        ("PARSENAME('AdventureWorks2022.dbo.Customer'; 1)", "Customer"),
        ("PARSENAME('AdventureWorks2022.dbo.Customer'; 2)", "dbo"),
        ("PARSENAME('[a.b].[c]]d]'; 2)", "a.b"),
        ("PARSENAME('[a.b].[c]]d]'; 1)", "c]d"),
        ("PARSENAME('a.b'; 3)", "NULL"),
        ("STRING_ESCAPE('\\   /  \"'; 'json')", "\\\\   \\/  \\\""),
    ]);
}

#[test]
fn json() {
    let info =
        r#"'{"info": {"type": 1, "address": {"town": "Bristol", "a b": null}, "tags": ["Sport", "Water \u0041"]}}'"#;
    for (path, value, query) in [
        (
            "$",
            "NULL",
            r#"{"info": {"type": 1, "address": {"town": "Bristol", "a b": null}, "tags": ["Sport", "Water \u0041"]}}"#,
        ),
        ("$.info.type", "1", "NULL"),
        ("$.info.address.town", "Bristol", "NULL"),
        ("$.info.address", "NULL", r#"{"town": "Bristol", "a b": null}"#),
        ("$.info.address.\"a b\"", "NULL", "NULL"),
        ("$.info.tags[1]", "Water A", "NULL"),
        ("$.info.tags", "NULL", r#"["Sport", "Water \u0041"]"#),
        ("$.info.nothing", "NULL", "NULL"),
        ("strict $.info.nothing", "error 13608", "error 13608"),
        (
            "strict $.info",
            "error 13623",
            r#"{"type": 1, "address": {"town": "Bristol", "a b": null}, "tags": ["Sport", "Water \u0041"]}"#,
        ),
        ("strict $.info.type", "1", "error 13624"),
        ("info", "error 13607", "error 13607"),
    ] {
        check(&[(&format!("JSON_VALUE({info}; '{path}')"), value), (&format!("JSON_QUERY({info}; '{path}')"), query)]);
    }
    check(&[
        ("ISJSON('{\"a\": [1, 2.5e3, true]}')", "1"),
        ("ISJSON('{\"a\": 01}')", "0"),
        ("ISJSON('1')", "0"),
        ("ISJSON(NULL)", "NULL"),
        ("JSON_VALUE('{\"a\": '; '$.a')", "error 13609"),
    ]);
}

#[test]
fn mathematics() {
    check(&[
        ("ABS(-1.0)", "1.0"),
        ("ABS(-2147483648 : int)", "error 8115"),
        ("CEILING($123.45)", "124.00"),
        ("CEILING($0)", "0.00"),
        ("CEILING(-123.45)", "-123"),
        ("FLOOR(-123.45)", "-124"),
        ("FLOOR($123.45)", "123.00"),
        ("ROUND(123.9994; 3)", "123.9990"),
        ("ROUND(123.9995; 3)", "124.0000"),
        ("ROUND(123.4545; 2)", "123.4500"),
        ("ROUND(123.45; -2)", "100.00"),
        ("ROUND(748.58; -1)", "750.00"),
        ("ROUND(748.58; -2)", "700.00"),
        ("ROUND(748.58; -3)", "error 8115"),
        ("ROUND(748.58; -4)", "0.00"),
        ("ROUND(150.75; 0)", "151.00"),
        ("ROUND(150.75; 0; 1)", "150.00"),
        ("POWER(2; 10)", "1024"),
        ("POWER(2; 31)", "error 8115"),
        ("POWER(2.0; -100.0)", "0.0"),
        ("SQRT(4)", "2.0000000000000000e+000"),
        ("SQRT(-1)", "error 3623"),
        ("SQUARE(3)", "9.0000000000000000e+000"),
        ("LOG(0)", "error 3623"),
        ("LOG(8; 2)", "3.0000000000000000e+000"),
        ("LOG10(1000)", "3.0000000000000000e+000"),
        ("SIGN(-5)", "-1"),
        ("SIGN(0.5 : decimal(3,1))", "1.0"),
        ("DEGREES(3.14159265358979323846e0)", "1.8000000000000000e+002"),
        ("PI()", "3.1415926535897931e+000"),
    ]);
}

#[test]
fn dates() {
    let moment = "'2007-10-30 12:15:32.1234567 +05:10' : datetimeoffset";
    for (part, expected) in [
        ("year", "2007"),
        ("qq", "4"),
        ("mm", "10"),
        ("dayofyear", "303"),
        ("d", "30"),
        ("wk", "44"),
        ("dw", "3"),
        ("hh", "12"),
        ("n", "15"),
        ("ss", "32"),
        ("ms", "123"),
        ("mcs", "123456"),
        ("ns", "123456700"),
        ("tz", "310"),
        ("iso_week", "44"),
    ] {
        check(&[(&format!("DATEPART({part}; {moment})"), expected)]);
    }
    for part in [
        "year",
        "quarter",
        "month",
        "dayofyear",
        "day",
        "week",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    ] {
        let text = format!("DATEDIFF({part}; '2005-12-31 23:59:59.9999999'; '2006-01-01 00:00:00.0000000')");
        check(&[(&text, "1")]);
    }
    check(&[
        ("DATEADD(month; 1; '20060830')", "Sep 30 2006 12:00AM"),
        ("DATEADD(month; 1; '20060831')", "Sep 30 2006 12:00AM"),
        ("DATEADD(year; 1; '2004-02-29' : date)", "2005-02-28"),
        ("DATEADD(hour; 1; '2004-02-29' : date)", "error 9810"),
        ("DATEADD(microsecond; 1; '2004-02-29' : datetime)", "error 9810"),
        ("DATEADD(year; 8000; '2004-02-29' : datetime)", "error 517"),
        ("DATEADD(second; -1; '00:00:00' : time(0))", "23:59:59"),
        ("DATEADD(microsecond; 1; '2013-07-04' : datetime2(6))", "2013-07-04 00:00:00.000001"),
        ("DATEADD(fortnight; 1; '20060830')", "error 155"),
        ("DATEDIFF(nanosecond; '2000-01-01'; '2013-01-01')", "error 535"),
        ("DATEDIFF_BIG(microsecond; '1970-01-01'; '2023-11-14 22:13:20.123456')", "1700000000123456"),
        ("DATEDIFF_BIG(microsecond; '1970-01-01'; '0001-01-01')", "-62135596800000000"),
        ("DATEDIFF_BIG(microsecond; '1970-01-01'; '9999-12-31T23:59:59.999999')", "253402300799999999"),
        ("DATENAME(month; '2007-10-30')", "October"),
        ("DATENAME(weekday; '2007-10-30')", "Tuesday"),
        ("DATENAME(year; '2007-10-30')", "2007"),
        ("DATEPART(hour; '2007-10-30' : date)", "error 9810"),
        ("DAY('2007-04-30')", "30"),
        ("MONTH('2007-04-30')", "4"),
        ("YEAR(0)", "1900"),
        ("EOMONTH('12/1/2011')", "2011-12-31"),
        ("EOMONTH('2012-01-31'; 1)", "2012-02-29"),
        ("DATEFROMPARTS(2010; 12; 31)", "2010-12-31"),
        ("DATEFROMPARTS(2010; 2; 30)", "error 289"),
        ("DATETIME2FROMPARTS(2011; 8; 15; 14; 23; 44; 500; 3)", "2011-08-15 14:23:44.5000000"),
        ("DATETIMEFROMPARTS(2010; 12; 31; 23; 59; 59; 0)", "Dec 31 2010 11:59PM"),
        ("TIMEFROMPARTS(14; 23; 44; 5; 1)", "14:23:44.5000000"),
        ("SMALLDATETIMEFROMPARTS(2010; 12; 31; 23; 59)", "Dec 31 2010 11:59PM"),
        ("DATETIMEOFFSETFROMPARTS(2010; 12; 31; 14; 23; 23; 0; 12; 0; 7)", "2010-12-31 14:23:23.0000000 +12:00"),
        ("ISDATE('2013-02-30')", "0"),
        ("ISDATE('2013-02-28')", "1"),
        ("SWITCHOFFSET('1998-09-20 7:45:50.71345 -5:00'; '-08:00')", "1998-09-20 04:45:50.7134500 -08:00"),
        ("TODATETIMEOFFSET('2013-07-04 12:00' : datetime2(0); '-07:00')", "2013-07-04 12:00:00 -07:00"),
        ("AT TIME ZONE('2013-07-04 12:00' : datetime2(0); 'UTC')", "2013-07-04 12:00:00 +00:00"),
        ("AT TIME ZONE('2013-07-04 12:00' : datetime2(0); 'Mars')", "error 9820"),
        ("GETDATE()", "Jul  4 2013  2:34PM"),
        ("SYSUTCDATETIME()", "2013-07-04 12:34:56.7890000"),
        ("SYSDATETIMEOFFSET()", "2013-07-04 14:34:56.7890000 +02:00"),
    ]);
}

#[test]
fn hashes() {
    // FIPS 180-4 and RFC 1321 test vectors; tds-observed.md 1.
    check(&[
        ("HASHBYTES('SHA2_256'; 0x)", "0xE3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"),
        ("HASHBYTES('sha2_256'; 'abc')", "0xBA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
        ("HASHBYTES('SHA1'; 'abc')", "0xA9993E364706816ABA3E25717850C26C9CD0D89D"),
        ("HASHBYTES('MD5'; 'abc')", "0x900150983CD24FB0D6963F7D28E17F72"),
        // SHA-256 of the bytes 61 00 62 00 63 00, computed with coreutils.
        ("HASHBYTES('SHA2_256'; N'abc')", "0x13E228567E8249FCE53337F25D7970DE3BD68AB2653424C7B8F9FD05E33CAEDF"),
        ("HASHBYTES('SHA2_256'; NULL)", "NULL"),
        ("HASHBYTES('NOSUCH'; 'abc')", "NULL"),
        ("HASHBYTES('SHA2_256'; 1)", "error 8116"),
        ("HASHBYTES('SHA2_256'; '2013-07-04' : datetime2)", "error 8116"),
    ]);
}

#[test]
fn choosing_and_formatting() {
    check(&[
        ("COALESCE(NULL; 1; 2.5)", "1.0"),
        ("COALESCE(NULL; NULL)", "error 4127"),
        ("ISNULL(NULL : varchar(2); 'abc')", "ab"),
        ("ISNULL('a'; 'b')", "a"),
        ("NULLIF(4; 4)", "NULL"),
        ("NULLIF(4; 5)", "4"),
        ("NULLIF(NULL; 5)", "error 4151"),
        ("CHOOSE(3; 'Manager'; 'Director'; 'Developer'; 'Tester')", "Developer"),
        ("CHOOSE(0; 'a')", "NULL"),
        ("GREATEST('6.62'; 3.1415; 'x' : varchar(1))", "error 8114"),
        ("GREATEST(1; NULL; 3)", "3"),
        ("LEAST(6.62; 3.1415; 7)", "3.1415"),
        ("ISNUMERIC('$1,234.5')", "1"),
        ("ISNUMERIC('1e5')", "1"),
        ("ISNUMERIC('abc')", "0"),
        ("ISNUMERIC('')", "0"),
        ("STR(123.45; 6; 1)", " 123.5"),
        ("STR(123.45; 2; 2)", "**"),
        ("STR(123.45)", "       123"),
        ("FORMAT(123456789; '###-##-####')", "123-45-6789"),
        ("FORMAT(1234567.891; 'N2')", "1,234,567.89"),
        ("FORMAT(5; '000')", "005"),
        ("FORMAT(1234.5; '#,##0.00')", "1,234.50"),
        ("FORMAT('2011-08-01' : date; 'yyyy-MM-dd')", "2011-08-01"),
        ("FORMAT('2011-08-01 13:05' : datetime; 'd')", "8/1/2011"),
        (
            "FORMATMESSAGE('This is the %s and this is the %s, %d%%.'; 'first variable'; 'second variable'; 7)",
            "This is the first variable and this is the second variable, 7%.",
        ),
    ]);
}

#[test]
fn guids_and_random_numbers_differ_from_call_to_call() {
    let context = context();
    let newid = resolve_function("NEWID", &[]).unwrap();
    let (first, second) = (newid.call(&[], &context).unwrap(), newid.call(&[], &context).unwrap());
    assert_ne!(first, second);
    assert_eq!(show(&Ok(first), &SqlType::UniqueIdentifier).as_bytes()[14], b'4', "version 4");
    let rand = resolve_function("RAND", &[]).unwrap();
    let Value::Float(number) = rand.call(&[], &context).unwrap() else { panic!("no float") };
    assert!((0.0..1.0).contains(&number));
    assert!(!rand.deterministic && !newid.deterministic);
}
