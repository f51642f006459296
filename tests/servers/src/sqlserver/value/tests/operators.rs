//! Known answers of operators and comparisons.

use std::cmp::Ordering;

use super::super::{
    BinaryOperation, BinaryOperator, Collation, Comparison, SqlType, Text, Value, common_type, compare, like, sort_key,
};
use super::{expression, show, sql_type};

fn operator(symbol: &str) -> BinaryOperator {
    match symbol {
        "+" => BinaryOperator::Add,
        "-" => BinaryOperator::Subtract,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "&" => BinaryOperator::BitAnd,
        "|" => BinaryOperator::BitOr,
        _ => BinaryOperator::BitXor,
    }
}

#[test]
fn results_and_errors() {
    let cases = [
        // "/ (Division)": integers cut; "Precision, scale, and length" for the decimals.
        ("7", "/", "2", "int", "3"),
        ("1.0", "/", "3", "decimal(7,6)", "0.333333"),
        ("2.0", "/", "3", "decimal(7,6)", "0.666666"),
        ("1", "/", "0", "int", "error 8134"),
        ("1e0", "/", "0", "float", "error 8134"),
        ("2147483647", "+", "1", "int", "error 8115"),
        ("200 : tinyint", "+", "100 : tinyint", "tinyint", "error 8115"),
        ("5", "%", "3", "int", "2"),
        ("-5", "%", "3", "int", "-2"),
        ("5.5", "%", "2.0", "decimal(2,1)", "1.5"),
        ("170", "&", "75", "int", "10"),
        ("170", "|", "75", "int", "235"),
        ("170", "^", "75", "int", "225"),
        ("0x08", "+", "0xFF", "varbinary(2)", "0x08FF"),
        ("0x01", "+", "1", "int", "2"),
        ("'a'", "+", "N'b'", "nvarchar(2)", "ab"),
        ("'5'", "+", "6", "int", "11"),
        ("'a'", "+", "6", "int", "error 245"),
        ("'a'", "+", "NULL", "varchar(2)", "NULL"),
        ("1", "+", "$2", "money", "3.00"),
        ("$2", "/", "3", "money", "0.67"),
        ("'2013-07-04' : datetime", "+", "1", "datetime", "Jul  5 2013 12:00AM"),
        ("'2013-07-04' : datetime", "-", "1.5", "datetime", "Jul  2 2013 12:00PM"),
    ];
    for (left, symbol, right, ty, expected) in cases {
        let ((left_value, left_type), (right_value, right_type)) = (expression(left), expression(right));
        let literals = (!left.contains(':')).then_some(&left_value);
        let operation = BinaryOperation::resolve_literals(
            operator(symbol),
            (&left_type, literals),
            (&right_type, Some(&right_value)),
        )
        .unwrap();
        assert_eq!(operation.result(), sql_type(ty), "{left} {symbol} {right}");
        let result = operation.apply(&left_value, &right_value);
        assert_eq!(show(&result, &operation.result()), expected, "{left} {symbol} {right}: {result:?}");
    }
}

#[test]
fn types_that_do_not_go_together() {
    let cases = [
        ("varchar(1)", "-", "varchar(1)", 8117),
        ("varchar(1)", "+", "varbinary(1)", 402),
        ("bit", "+", "bit", 402),
        ("float", "%", "int", 402),
        ("date", "+", "int", 206),
        ("datetime2", "-", "datetime2", 8117),
        ("datetime", "+", "time", 402),
        ("text", "+", "varchar(1)", 402),
        ("uniqueidentifier", "+", "int", 206),
        ("decimal(5,2)", "&", "int", 402),
    ];
    for (left, symbol, right, number) in cases {
        let error = BinaryOperation::resolve(operator(symbol), &sql_type(left), &sql_type(right)).unwrap_err();
        assert_eq!(error.number, number, "{left} {symbol} {right}: {error}");
    }
}

#[test]
fn precision_and_scale() {
    // "Precision, scale, and length (Transact-SQL)", table and examples.
    let cases = [
        ("decimal(30,20)", "*", "decimal(30,20)", "decimal(38,17)"),
        ("decimal(30,10)", "*", "decimal(30,10)", "decimal(38,6)"),
        ("decimal(5,2)", "+", "decimal(8,4)", "decimal(9,4)"),
        ("decimal(38,0)", "+", "decimal(38,0)", "decimal(38,0)"),
        ("decimal(5,2)", "/", "decimal(8,4)", "decimal(18,11)"),
        ("decimal(5,2)", "%", "decimal(8,4)", "decimal(7,4)"),
        ("decimal(5,2)", "+", "int", "decimal(13,2)"),
        ("int", "+", "bigint", "bigint"),
        ("int", "+", "float", "float"),
        ("varchar(8000)", "+", "varchar(10)", "varchar(8000)"),
        ("varchar(max)", "+", "nvarchar(10)", "nvarchar(max)"),
        ("varbinary(max)", "+", "binary(8)", "varbinary(max)"),
        ("char(3)", "+", "char(2)", "char(5)"),
    ];
    for (left, symbol, right, expected) in cases {
        let operation = BinaryOperation::resolve(operator(symbol), &sql_type(left), &sql_type(right)).unwrap();
        assert_eq!(operation.result(), sql_type(expected), "{left} {symbol} {right}");
    }
    let scaled =
        BinaryOperation::resolve(BinaryOperator::Multiply, &sql_type("decimal(30,20)"), &sql_type("decimal(30,20)"))
            .unwrap();
    let ((left, _), (right, _)) = (expression("0.0000009 : decimal(30,20)"), expression("1 : decimal(30,20)"));
    assert_eq!(show(&scaled.apply(&left, &right), &scaled.result()), "0.00000090000000000");
}

#[test]
fn common_types() {
    let cases = [
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("varchar(5)", "nvarchar(3)", "nvarchar(5)"),
        ("varchar(max)", "nvarchar(3)", "nvarchar(max)"),
        ("date", "datetime2(3)", "datetime2(3)"),
        ("datetime", "datetime2(0)", "datetime2(3)"),
        ("varchar(10)", "int", "int"),
        ("binary(3)", "varbinary(2)", "varbinary(3)"),
        ("money", "decimal(10,2)", "decimal(19,4)"),
    ];
    for (left, right, expected) in cases {
        assert_eq!(common_type(&sql_type(left), &sql_type(right)), Ok(sql_type(expected)), "{left}, {right}");
        assert_eq!(common_type(&sql_type(right), &sql_type(left)), Ok(sql_type(expected)), "{right}, {left}");
    }
    assert_eq!(common_type(&SqlType::Date, &SqlType::Int).unwrap_err().number, 206);
}

#[test]
fn texts_compare_by_collation() {
    // tds-observed.md 1; "Collation and Unicode support"; trailing spaces: KB316626.
    let cases = [
        ("SQL_Latin1_General_CP1_CI_AS", "a", "A", Ordering::Equal),
        ("SQL_Latin1_General_CP1_CI_AS", "a", "a  ", Ordering::Equal),
        ("SQL_Latin1_General_CP1_CI_AS", "e", "é", Ordering::Less),
        ("SQL_Latin1_General_CP1_CI_AS", "éa", "eb", Ordering::Less),
        ("SQL_Latin1_General_CP1_CI_AS", "a1", "aa", Ordering::Less),
        ("SQL_Latin1_General_CP1_CI_AS", "a_", "a1", Ordering::Less),
        ("Latin1_General_CI_AI", "e", "É", Ordering::Equal),
        ("Latin1_General_CS_AS", "a", "A", Ordering::Less),
        ("Latin1_General_CS_AS", "A", "b", Ordering::Less),
        ("Latin1_General_CI_AS", "straße", "STRASSE", Ordering::Equal),
        ("Latin1_General_BIN2", "a", "A", Ordering::Greater),
        ("Latin1_General_BIN2", "a", "a ", Ordering::Equal),
        ("Latin1_General_BIN2", "a", "a\t", Ordering::Greater),
        ("Latin1_General_BIN2", "Z", "a", Ordering::Less),
    ];
    for (collation, left, right, expected) in cases {
        let ty = SqlType::nvarchar(20).with_collation(Collation::from_name(collation).unwrap());
        assert_eq!(compare(&Value::text(left), &Value::text(right), &ty), expected, "{collation}: '{left}', '{right}'");
    }
}

#[test]
fn values_of_different_types_compare() {
    let cases = [
        ("1", "1.0", Some(Ordering::Equal)),
        ("'2'", "10", Some(Ordering::Less)),
        ("0e0", "-0e0", Some(Ordering::Equal)),
        ("0x01", "0x0100", Some(Ordering::Equal)),
        ("NULL", "1", None),
        ("'2013-07-04' : date", "'20130704'", Some(Ordering::Equal)),
        (
            "'2013-07-04 02:00 +02:00' : datetimeoffset",
            "'2013-07-04 00:00 +00:00' : datetimeoffset",
            Some(Ordering::Equal),
        ),
        ("99999999999999999999999999999999999999", "0.00001", Some(Ordering::Greater)),
        // "Comparing GUID and uniqueidentifier values": the last group counts first.
        (
            "'FFFFFFFF-FFFF-FFFF-FFFF-000000000001' : uniqueidentifier",
            "'00000000-0000-0000-0000-000000000002' : uniqueidentifier",
            Some(Ordering::Less),
        ),
    ];
    for (left, right, expected) in cases {
        let ((left_value, left_type), (right_value, right_type)) = (expression(left), expression(right));
        let comparison = Comparison::resolve("equal to", &left_type, &right_type).unwrap();
        assert_eq!(comparison.apply(&left_value, &right_value), Ok(expected), "{left}, {right}");
    }
}

#[test]
fn patterns() {
    // "LIKE (Transact-SQL)" and its examples.
    let nvarchar = SqlType::nvarchar(50);
    let cases = [
        ("Cheryl", "Che%", None, true),
        ("Barley", "_arley", None, true),
        ("Sheryl", "[CS]heryl", None, true),
        ("Carsen", "[C-P]arsen", None, true),
        ("Larsen", "[^C-P]arsen", None, false),
        ("5%", "5[%]", None, true),
        ("5x", "5[%]", None, false),
        ("a-b", "a[a-c-]b", None, true),
        ("[", "[[]", None, true),
        ("]", "]", None, true),
        ("10-15% off", "%10-15!% off%", Some("!"), true),
        ("abc", "ABC", None, true),
        ("abc ", "abc", None, false),
        ("", "%", None, true),
        ("aXbXc", "a%X%c", None, true),
        ("aXbXd", "a%X%c", None, false),
    ];
    for (text, pattern, escape, expected) in cases {
        let escape = escape.map(Text::from);
        let matched = like(&Text::from(text), &Text::from(pattern), escape.as_ref(), &nvarchar);
        assert_eq!(matched, Ok(expected), "'{text}' LIKE '{pattern}'");
    }
    assert_eq!(
        like(&Text::from("abc "), &Text::from("abc"), None, &SqlType::varchar(10)),
        Ok(true),
        "trailing blanks of varchar"
    );
    let escape = Text::from("ab");
    assert_eq!(like(&Text::from("a"), &Text::from("a"), Some(&escape), &nvarchar).unwrap_err().number, 506);
}

#[test]
fn keys_of_columns_follow_each_other() {
    let ty = SqlType::nvarchar(10);
    let row = |first: &str, second: &str| {
        let mut key = Vec::new();
        sort_key(&Value::text(first), &ty, &mut key);
        sort_key(&Value::text(second), &ty, &mut key);
        key
    };
    assert!(row("a", "z") < row("aa", "a"));
    assert!(row("a", "z") < row("b", ""));
    assert_eq!(row("A ", "x"), row("a", "X "));
}
