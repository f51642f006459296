//! Measures the store of the TDS server with P1 rows (bigint, float, 20 characters, datetime2): bulk load, memory per
//! row, scan, snapshot, restart.
//!
//! `cargo run --release -p servers --example store_bench -- [ROWS] [FOLDER]`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use servers::sqlserver::store::catalog::{Column, DBO_SCHEMA, DatabaseId, Object, ObjectBody, ObjectId, TableDef};
use servers::sqlserver::store::{ReadMode, Session, SessionId, Store, StoreError, StoreOptions};
use servers::sqlserver::value::{DateTime2, SqlType, Text, Value};

/// Bytes of a P1 row on the wire, all columns nullable.
const WIRE_BYTES: f64 = 84.0;

fn main() -> Result<(), StoreError> {
    let mut arguments = std::env::args().skip(1);
    let rows: u64 = arguments.next().and_then(|it| it.parse().ok()).unwrap_or(5_000_000);
    let folder = arguments.next().map_or_else(|| std::env::temp_dir().join("store-bench"), PathBuf::from);
    let store = Store::open(&folder, StoreOptions::default())?;
    let table = create(&store)?;
    let started = Instant::now();
    let session = Session::new(SessionId(51));
    let transaction = store.begin(&session);
    let mut load = transaction.bulk_load(table)?;
    let mut row = vec![Value::Null; 4];
    for number in 0..rows {
        fill(&mut row, number);
        load.push(&row)?;
    }
    load.finish()?;
    rate("bulk load", rows, started);
    let started = Instant::now();
    transaction.commit()?;
    println!("commit                 {:>8.3} s", started.elapsed().as_secs_f64());
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    let per_row = store.page_memory_bytes() as f64 / rows as f64;
    println!(
        "memory of pages        {per_row:>8.1} B/row, {:.2} x the {WIRE_BYTES} B of the wire",
        per_row / WIRE_BYTES
    );
    println!("resident set           {:>8} MiB", resident_mib());
    scan(&store, &session, table, rows)?;
    let started = Instant::now();
    store.checkpoint()?;
    println!("snapshot               {:>8.3} s, {} MiB", started.elapsed().as_secs_f64(), store.log_bytes() >> 20);
    drop(transaction);
    drop(store);
    let started = Instant::now();
    let store = Store::open(&folder, StoreOptions::default())?;
    rate("restart", rows, started);
    println!("resident set           {:>8} MiB", resident_mib());
    scan(&store, &session, table, rows)?;
    drop(store);
    std::fs::remove_dir_all(&folder).map_err(|error| StoreError::Open { kind: error.kind() })
}

fn create(store: &Arc<Store>) -> Result<ObjectId, StoreError> {
    let types = [SqlType::BigInt, SqlType::Float, SqlType::NVARCHAR_MAX, SqlType::DateTime2(6)];
    let columns = (1..).zip(types).map(|(id, ty)| Column {
        id,
        name: format!("c{id}"),
        ty,
        declared_type: None,
        nullable: true,
        default: None,
        identity: None,
        computed: None,
        rowguidcol: false,
    });
    let definition = TableDef { columns: columns.collect(), max_column_id: 4, ..TableDef::default() };
    let object = Object {
        database: DatabaseId(5),
        id: store.allocate_object_id(),
        schema: DBO_SCHEMA,
        name: format!("p1_{}", store.log_bytes()),
        session: None,
        owner: None,
        create_date: 0,
        modify_date: 0,
        body: ObjectBody::Table(definition),
    };
    let table = object.id;
    let transaction = store.begin(&Session::new(SessionId(50)));
    transaction.put(object)?;
    transaction.commit()?;
    Ok(table)
}

/// A row whose text needs two bytes per character, so that nothing is saved on it.
fn fill(row: &mut [Value], number: u64) {
    let mut units = [0x0416_u16; 20];
    for (unit, digit) in units.iter_mut().zip(number.to_be_bytes()) {
        *unit = 0x0400 + u16::from(digit);
    }
    row[0] = Value::BigInt(number.cast_signed());
    #[allow(clippy::cast_precision_loss, reason = "any float will do")]
    let float = number as f64 * 0.5;
    row[1] = Value::Float(float);
    row[2] = Value::String(Text::from_units(&units));
    row[3] = Value::DateTime2(DateTime2 { days: 738_000, ticks: number * 10 % 864_000_000_000 });
}

fn scan(store: &Arc<Store>, session: &Arc<Session>, table: ObjectId, rows: u64) -> Result<(), StoreError> {
    let started = Instant::now();
    let transaction = store.begin(session);
    let (mut count, mut values) = (0, Vec::new());
    for row in transaction.scan(table, ReadMode::Committed)? {
        values.clear();
        row?.decode_into(4, &mut values)?;
        count += 1;
    }
    assert_eq!(count, rows);
    rate("scan, all columns", rows, started);
    Ok(())
}

fn rate(what: &str, rows: u64, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let millions = rows as f64 / seconds / 1e6;
    println!("{what:<22} {seconds:>8.3} s, {millions:.2} M rows/s");
}

/// Resident set of this process; 0 where `/proc` does not say.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}
