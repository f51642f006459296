//! Bulk loads by the crate mssql-tds: by its own probe of the table, by given metadata, as raw bytes.

use async_trait::async_trait;
use mssql_tds::connection::bulk_copy::{BulkCopy, BulkLoadRow};
use mssql_tds::connection::tds_client::TdsClient;
use mssql_tds::core::TdsResult;
use mssql_tds::datatypes::bulk_copy_metadata::{BulkCopyColumnMetadata, SqlDbType, TypeLength};
use mssql_tds::datatypes::column_values::{ColumnValues, SqlDate, SqlDateTime2, SqlTime};
use mssql_tds::datatypes::sql_string::SqlString;
use mssql_tds::error::Error;
use mssql_tds::message::bulk_load::StreamingBulkLoadWriter;
use mssql_tds::test_client_support::MetadataRetriever;

use super::{TestServer, connect, number, query, shown};

/// Metadata as the test gives it, instead of the crate's probe.
struct Given(Vec<BulkCopyColumnMetadata>);

#[async_trait]
impl MetadataRetriever for Given {
    async fn retrieve_metadata(
        &mut self,
        _client: &mut TdsClient,
        _table_name: &str,
        _timeout_sec: u32,
    ) -> TdsResult<Vec<BulkCopyColumnMetadata>> {
        Ok(self.0.clone())
    }
}

/// A row by its values.
struct Row(Vec<ColumnValues>);

#[async_trait]
impl BulkLoadRow for Row {
    async fn write_to_packet(&self, writer: &mut StreamingBulkLoadWriter<'_>, column: &mut usize) -> TdsResult<()> {
        for value in &self.0 {
            writer.write_column_value(*column, value).await?;
            *column += 1;
        }
        Ok(())
    }
}

/// Rows as bytes; the crate writes the first ROW token, these bytes continue behind it.
struct Raw {
    bytes: Vec<u8>,
    columns: usize,
}

#[async_trait]
impl BulkLoadRow for Raw {
    async fn write_to_packet(&self, writer: &mut StreamingBulkLoadWriter<'_>, column: &mut usize) -> TdsResult<()> {
        writer.write_raw_bytes(&self.bytes).await?;
        *column = self.columns;
        Ok(())
    }
}

fn text(text: &str) -> ColumnValues {
    ColumnValues::String(SqlString::from_utf8_string(text.to_owned()))
}

/// The four types of the product's target: bigint, float, nvarchar(max), datetime2(6), all nullable on the wire.
fn four_columns() -> Vec<BulkCopyColumnMetadata> {
    let new = |name: &str, ty: SqlDbType| {
        BulkCopyColumnMetadata::new(name, ty, ty.to_bulk_copy_tds_type()).with_nullable(true)
    };
    vec![
        new("id", SqlDbType::BigInt).with_length(8, TypeLength::Variable(8)),
        new("f", SqlDbType::Float).with_length(8, TypeLength::Variable(8)),
        new("s", SqlDbType::NVarChar).with_length(0xFFFF, TypeLength::Plp),
        new("t", SqlDbType::DateTime2).with_length(8, TypeLength::Variable(8)).with_scale(6),
    ]
}

const FOUR_COLUMNS: &str =
    "CREATE TABLE dbo.four (id bigint NOT NULL, f float NULL, s nvarchar(max) NULL, t datetime2(6) NULL)";

/// One ROW without its token.
fn raw_row(id: i64, f: Option<f64>, s: Option<&str>) -> Vec<u8> {
    let mut row = vec![8];
    row.extend_from_slice(&id.to_le_bytes());
    match f {
        None => row.push(0),
        Some(f) => {
            row.push(8);
            row.extend_from_slice(&f.to_le_bytes());
        }
    }
    match s {
        None => row.extend_from_slice(&u64::MAX.to_le_bytes()),
        Some(s) => {
            let units: Vec<u8> = s.encode_utf16().flat_map(u16::to_le_bytes).collect();
            row.extend_from_slice(&(u64::MAX - 1).to_le_bytes());
            if !units.is_empty() {
                row.extend_from_slice(&u32::try_from(units.len()).unwrap().to_le_bytes());
                row.extend_from_slice(&units);
            }
            row.extend_from_slice(&[0; 4]);
        }
    }
    row.push(0); // t is NULL
    row
}

async fn load_raw(client: &mut TdsClient, rows: &[Vec<u8>]) -> Result<(), Error> {
    let raw = Raw { bytes: rows.join(&0xD1), columns: 4 };
    let given = Box::new(Given(four_columns()));
    let mut bulk = BulkCopy::with_retriever(client, "dbo.four", given).table_lock(true).keep_nulls(true).batch_size(0);
    bulk.write_to_server_zerocopy(std::iter::once(raw)).await.map(|_| ())
}

async fn count(client: &mut TdsClient) -> String {
    shown(&query(client, "SELECT COUNT_BIG(*) FROM dbo.four").await.unwrap())[0][0].clone()
}

#[tokio::test]
async fn values_of_many_types_load_by_the_probe_of_the_crate() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    let table = "CREATE TABLE dbo.many (a int NOT NULL, b bit NULL, c smallint NULL, d tinyint NULL, e bigint NULL,
        f float NULL, g real NULL, h nvarchar(20) NULL, i nvarchar(max) NULL, j varchar(20) NULL, k varbinary(max) NULL,
        l date NULL, m datetime2(6) NULL, n time(3) NULL)";
    query(&mut client, table).await.unwrap();
    let full = vec![
        ColumnValues::Int(1),
        ColumnValues::Bit(true),
        ColumnValues::SmallInt(-2),
        ColumnValues::TinyInt(255),
        ColumnValues::BigInt(i64::MIN),
        ColumnValues::Float(5e-324),
        ColumnValues::Real(1.5),
        text("é漢😀"),
        text(&"x漢".repeat(50_000)),
        text("é€"),
        ColumnValues::Bytes(vec![0, 1, 255]),
        ColumnValues::Date(SqlDate::create(3_652_058).unwrap()),
        ColumnValues::DateTime2(SqlDateTime2 {
            days: 738_837,
            time: SqlTime { time_nanoseconds: 800_001_234_560, scale: 6 },
        }),
        ColumnValues::Time(SqlTime { time_nanoseconds: 863_999_990_000, scale: 3 }),
    ];
    let mut nulls = vec![ColumnValues::Null; full.len()];
    nulls[0] = ColumnValues::Int(3);
    let mut blank = nulls.clone();
    (blank[0], blank[7], blank[8], blank[10]) =
        (ColumnValues::Int(2), text(""), text(""), ColumnValues::Bytes(Vec::new()));
    let rows = [full, blank, nulls];
    {
        let mut bulk = BulkCopy::new(&mut client, "dbo.many");
        bulk.write_to_server_zerocopy(rows.iter().map(|row| Row(row.clone()))).await.unwrap();
    }
    let loaded = query(&mut client, "SELECT * FROM dbo.many ORDER BY a").await.unwrap();
    assert_eq!(shown(&loaded), shown(&rows));
}

#[tokio::test]
async fn raw_rows_load_with_given_metadata_and_are_all_there() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    query(&mut client, FOUR_COLUMNS).await.unwrap();
    let rows: Vec<Vec<u8>> = (0..50_000)
        .map(|id| match id % 4 {
            0 => raw_row(id, None, None),
            1 => raw_row(id, Some(-0.0), Some("")),
            2 => raw_row(id, Some(0.1), Some("\u{FEFF}é漢😀")),
            _ => raw_row(id, Some(f64::MAX), Some("x")),
        })
        .collect();
    load_raw(&mut client, &rows).await.unwrap();
    let facts = "SELECT COUNT_BIG(*), COUNT_BIG(s), SUM(DATALENGTH(s)), MIN(id), MAX(id), SUM(CASE WHEN t IS NULL THEN 1 ELSE 0 END)
        FROM dbo.four";
    let facts = shown(&query(&mut client, facts).await.unwrap());
    let expected = ["BigInt(50000)", "BigInt(37500)", "BigInt(150000)", "BigInt(0)", "BigInt(49999)", "Int(50000)"];
    assert_eq!(facts, [expected.map(str::to_owned)]);
    let some = query(&mut client, "SELECT id, f, s FROM dbo.four WHERE id IN (4, 5, 6) ORDER BY id").await.unwrap();
    let expected = [
        vec![ColumnValues::BigInt(4), ColumnValues::Null, ColumnValues::Null],
        vec![ColumnValues::BigInt(5), ColumnValues::Float(-0.0), text("")],
        vec![ColumnValues::BigInt(6), ColumnValues::Float(0.1), text("\u{FEFF}é漢😀")],
    ];
    assert_eq!(shown(&some), shown(&expected));
}

/// Rows and messages whose bytes fill packets exactly (mssql-rs #73).
#[tokio::test]
async fn rows_around_the_packet_size_load_at_every_length() {
    let server = TestServer::start();
    let mut context = server.context();
    context.packet_size = 4096;
    let mut client = connect(context).await.unwrap();
    query(&mut client, FOUR_COLUMNS).await.unwrap();
    let lengths = (1990..2060).chain([4030, 4031, 4032, 16_384, 32_767, 32_768, 65_536]);
    for (id, units) in (0..).zip(lengths) {
        load_raw(&mut client, &[raw_row(id, Some(1.0), Some(&"y".repeat(units)))]).await.unwrap();
        let length = format!("SELECT DATALENGTH(s) / 2 FROM dbo.four WHERE id = {id}");
        let length = shown(&query(&mut client, &length).await.unwrap());
        assert_eq!(length, [[format!("BigInt({units})")]]);
    }
}

#[tokio::test]
async fn bad_rows_undo_the_whole_load_and_leave_the_session() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    query(&mut client, FOUR_COLUMNS).await.unwrap();
    let good = || raw_row(1, Some(1.0), Some("good"));
    let mut null_id = vec![0];
    null_id.extend_from_slice(&good()[9..]);
    let odd = {
        let mut row = good()[..18].to_vec();
        row.extend_from_slice(&(u64::MAX - 1).to_le_bytes());
        row.extend_from_slice(&[3, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0]);
        row
    };
    for (bad, expected) in [
        (raw_row(2, Some(f64::NAN), None), 7339),
        (raw_row(2, Some(f64::NEG_INFINITY), None), 7339),
        (null_id, 515),
        (odd, 4895),
        (good()[..20].to_vec(), 4804),
    ] {
        let mut rows: Vec<Vec<u8>> = (0..2000).map(|_| good()).collect();
        rows.push(bad);
        if expected != 4804 {
            rows.push(good());
        }
        // The crate adds its DONE behind the bytes, so the cut row swallows it; the message is then too short.
        assert_eq!(number(&load_raw(&mut client, &rows).await.unwrap_err()), expected);
        assert_eq!(count(&mut client).await, "BigInt(0)", "{expected}");
    }
    load_raw(&mut client, &[good()]).await.unwrap();
    assert_eq!(count(&mut client).await, "BigInt(1)");
}

#[tokio::test]
async fn a_load_belongs_to_its_transaction() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    query(&mut client, FOUR_COLUMNS).await.unwrap();
    for (end, expected) in [("ROLLBACK", "BigInt(0)"), ("COMMIT", "BigInt(3)")] {
        query(&mut client, "BEGIN TRANSACTION").await.unwrap();
        let rows: Vec<Vec<u8>> = (0..3).map(|id| raw_row(id, None, Some("in"))).collect();
        load_raw(&mut client, &rows).await.unwrap();
        assert_eq!(count(&mut client).await, "BigInt(3)");
        query(&mut client, end).await.unwrap();
        assert_eq!(count(&mut client).await, expected);
    }
}

#[tokio::test]
async fn loads_into_missing_tables_and_columns_are_refused_before_any_row() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    assert_eq!(number(&load_raw(&mut client, &[raw_row(1, None, None)]).await.unwrap_err()), 208);
    query(&mut client, "CREATE TABLE dbo.four (id bigint NOT NULL, f float NULL, s nvarchar(max) NULL)").await.unwrap();
    assert!(load_raw(&mut client, &[raw_row(1, None, None)]).await.is_err());
    assert_eq!(count(&mut client).await, "BigInt(0)");
}
