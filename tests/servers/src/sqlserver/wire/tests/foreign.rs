//! What the crate mssql-tds makes of the bytes of every type.

use std::sync::Arc;

use mssql_tds::connection::client_context::{ClientContext, TdsAuthenticationMethod};
use mssql_tds::connection::tds_client::{ExecuteOptions, ResultSet as _, StatementResult};
use mssql_tds::connection_provider::tds_connection_provider::TdsConnectionProvider;
use mssql_tds::core::{EncryptionOptions, EncryptionSetting};
use mssql_tds::datatypes::column_values::ColumnValues;

use super::super::super::sql::{BatchEnd, BatchSink, Done, cmd};
use super::super::super::value::{
    Collation, Date, DateTime, DateTime2, DateTimeOffset, Decimal, Length, SmallDateTime, SqlType, Text, Time, Value,
};
use super::column;
use super::scripted::{Event, ScriptedServer};

/// Type, value, and how mssql-tds shows it.
#[rustfmt::skip]
fn cases() -> Vec<(SqlType, Value, String)> {
    let at = DateTime2 { days: 738_837, ticks: 800_001_234_500 };
    // The crate counts 100 ns in a field that it calls nanoseconds.
    let time = "SqlTime { time_nanoseconds: 800001234500, scale: 6 }";
    let date_time = format!("SqlDateTime2 {{ days: 738837, time: {time} }}");
    let c = Collation::DEFAULT;
    let shown = |text: &str| format!("String {text:?}");
    vec![
        (SqlType::Bit, Value::Bit(true), "Bit(true)".into()),
        (SqlType::TinyInt, Value::TinyInt(255), "TinyInt(255)".into()),
        (SqlType::SmallInt, Value::SmallInt(-2), "SmallInt(-2)".into()),
        (SqlType::Int, Value::Int(i32::MIN), "Int(-2147483648)".into()),
        (SqlType::BigInt, Value::BigInt(i64::MIN), "BigInt(-9223372036854775808)".into()),
        (SqlType::Real, Value::Real(1.5), "Real(1.5)".into()),
        (SqlType::Float, Value::Float(-0.0), "Float(-0.0)".into()),
        (SqlType::SmallMoney, Value::Money(-12345), "SmallMoney(SqlSmallMoney { int_val: -12345 })".into()),
        (SqlType::Money, Value::Money(0x1_0000_0002), "Money(Money value: 429496.7298, int_part_1: 2, int_part_2: 1)".into()),
        (SqlType::Char(4, c), Value::text("ab  "), shown("ab  ")),
        (SqlType::VarChar(Length::Sized(10), c), Value::text("é€"), shown("é€")),
        (SqlType::VARCHAR_MAX, Value::text(""), shown("")),
        (SqlType::VarChar(Length::Max, Collation::LATIN1_100_BIN2_UTF8), Value::text("漢😀"), shown("漢😀")),
        (SqlType::Text(c), Value::text("text"), shown("text")),
        (SqlType::NChar(3, c), Value::text("漢  "), shown("漢  ")),
        (SqlType::nvarchar(10), Value::text(""), shown("")),
        (SqlType::NVARCHAR_MAX, Value::text("é漢😀"), shown("é漢😀")),
        (SqlType::NText(c), Value::String(Text::from("漢")), shown("漢")),
        (SqlType::Binary(2), Value::binary(&[1, 2]), "Bytes([1, 2])".into()),
        (SqlType::varbinary(3), Value::binary(&[]), "Bytes([])".into()),
        (SqlType::VARBINARY_MAX, Value::binary(&[0, 255]), "Bytes([0, 255])".into()),
        (SqlType::Image, Value::binary(&[7]), "Bytes([7])".into()),
        (SqlType::RowVersion, Value::binary(&[0, 0, 0, 0, 0, 0, 7, 209]), "Bytes([0, 0, 0, 0, 0, 0, 7, 209])".into()),
        (SqlType::Date, Value::Date(Date { days: 3_652_058 }), "Date(SqlDate { days_since_01_01_0001: 3652058 })".into()),
        (SqlType::Time(6), Value::Time(Time { ticks: at.ticks }), format!("Time({time})")),
        (SqlType::DateTime2(6), Value::DateTime2(at), format!("DateTime2({date_time})")),
        (
            SqlType::DateTimeOffset(6),
            Value::DateTimeOffset(DateTimeOffset { utc: at, offset_minutes: -90 }),
            format!("DateTimeOffset(SqlDateTimeOffset {{ datetime2: {date_time}, offset: -90 }})"),
        ),
        (SqlType::DateTime, Value::DateTime(DateTime { days: -1, ticks: 300 }), "DateTime(SqlDateTime { days: -1, time: 300 })".into()),
        (
            SqlType::SmallDateTime,
            Value::SmallDateTime(SmallDateTime { days: 7, minutes: 61 }),
            "SmallDateTime(SqlSmallDateTime { days: 7, time: 61 })".into(),
        ),
        (
            SqlType::UniqueIdentifier,
            Value::Guid([0x25, 0x47, 0x98, 0x0E, 0x1C, 0xC5, 0xF4, 0x4B, 0x99, 0x60, 0xE1, 0xC8, 0x0E, 0x27, 0xAB, 0xA0]),
            "Uuid(0e984725-c51c-4bf4-9960-e1c80e27aba0)".into(),
        ),
        (SqlType::SqlVariant, Value::Variant(Arc::new((SqlType::Int, Value::Int(7)))), "Int(7)".into()),
        (
            SqlType::SqlVariant,
            Value::Variant(Arc::new((SqlType::nvarchar(10), Value::text("漢")))),
            shown("漢"),
        ),
        (
            SqlType::SqlVariant,
            Value::Variant(Arc::new((SqlType::DateTime2(6), Value::DateTime2(at)))),
            format!("DateTime2({date_time})"),
        ),
    ]
}

fn decimals() -> Vec<(SqlType, Value, &'static str)> {
    let largest = 99_999_999_999_999_999_999_999_999_999_999_999_999;
    vec![
        (
            SqlType::decimal(38, 0),
            Value::Decimal(Decimal::new(largest, 38, 0)),
            "99999999999999999999999999999999999999",
        ),
        (SqlType::decimal(9, 2), Value::Decimal(Decimal::new(-12345, 9, 2)), "-123.45"),
        (SqlType::decimal(19, 4), Value::Decimal(Decimal::new(1, 19, 4)), "0.0001"),
    ]
}

/// The batch `types` of the scripted engine: every type NOT NULL, the same nullable, and a row of NULLs.
pub(super) fn answer_types(out: &mut dyn BatchSink) -> BatchEnd {
    let decimals = decimals().into_iter().map(|(ty, value, _)| (ty, value));
    let cases: Vec<(SqlType, Value)> = cases().into_iter().map(|(ty, value, _)| (ty, value)).chain(decimals).collect();
    let values: Vec<Value> = cases.iter().map(|(_, value)| value.clone()).collect();
    let nulls = vec![Value::Null; values.len()];
    for (nullable, rows) in [(false, vec![&values]), (true, vec![&values, &nulls])] {
        let columns: Vec<_> = cases.iter().map(|(ty, _)| column("c", *ty, nullable)).collect();
        out.columns(&columns).unwrap();
        for row in &rows {
            out.row(row).unwrap();
        }
        let count = u64::try_from(rows.len()).ok();
        out.done(Done { count, cmd: cmd::SELECT, in_proc: false, error: false }).unwrap();
    }
    BatchEnd::Finished
}

fn shown(value: &ColumnValues) -> String {
    match value {
        ColumnValues::String(text) => format!("String {:?}", text.to_utf8_string()),
        ColumnValues::Decimal(parts) | ColumnValues::Numeric(parts) => {
            let digits = format!("{:0width$}", parts.magnitude(), width = usize::from(parts.scale) + 1);
            let (whole, fraction) = digits.split_at(digits.len() - usize::from(parts.scale));
            let sign = if parts.is_positive { "" } else { "-" };
            if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn mssql_tds_reads_every_type() {
    let server = ScriptedServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows = runtime.block_on(read_types(&server));
    let expected: Vec<String> = cases()
        .into_iter()
        .map(|(.., shown)| shown)
        .chain(decimals().into_iter().map(|(.., shown)| shown.to_owned()))
        .collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0], expected);
    assert_eq!(rows[1], expected);
    assert!(rows[2].iter().all(|cell| cell == "Null"), "{:?}", rows[2]);
}

async fn read_types(server: &ScriptedServer) -> Vec<Vec<String>> {
    let mut context = ClientContext::with_data_source(&format!("tcp:127.0.0.1,{}", server.addr.port()));
    context.user_name = "sa".into();
    context.password = "right".into();
    context.application_name = "app".into();
    context.connect_retry_count = 0;
    context.tds_authentication_method = TdsAuthenticationMethod::Password;
    context.encryption_options = EncryptionOptions {
        mode: EncryptionSetting::PreferOff,
        trust_server_certificate: true,
        host_name_in_cert: None,
        server_certificate: None,
    };
    let data_source = context.data_source.clone();
    let mut client = TdsConnectionProvider::new().create_client(context, &data_source, None).await.unwrap();
    assert_eq!(server.event(), Event::LoggedIn("app".into()));

    let mut rows = Vec::new();
    let mut result = client.execute("types".into(), ExecuteOptions::new()).await.unwrap();
    while !matches!(result, StatementResult::End) {
        while let Some(row) = client.next_row().await.unwrap() {
            rows.push(row.iter().map(shown).collect::<Vec<_>>());
        }
        result = client.advance().await.unwrap();
    }
    rows
}
