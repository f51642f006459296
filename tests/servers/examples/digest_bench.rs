//! Measures statements of a transfer in process, by CPU time: bulk load of P1 rows, the digest over native bytes,
//! INSERT ... SELECT, COUNT_BIG, DELETE of a window.
//!
//! `cargo run -p servers --example digest_bench -- [ROWS]`

use servers::sqlserver::sql::{
    BatchSink, ColumnMeta, Done, Engine, EngineOptions, EnvChange, LoginRequest, Session, SinkResult, SqlError,
};
use servers::sqlserver::value::{DateTime2, SqlType, Text, Value};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const COLUMNS: &str = "id bigint NULL, price float(53) NULL, name nvarchar(max) NULL, at datetime2(6) NULL";

/// Keeps errors and the last row.
#[derive(Default)]
struct Seen {
    errors: Vec<SqlError>,
    row: Vec<Value>,
}

impl BatchSink for Seen {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> SinkResult {
        Ok(())
    }

    fn row(&mut self, values: &[Value]) -> SinkResult {
        self.row = values.to_vec();
        Ok(())
    }

    fn done(&mut self, _done: Done) -> SinkResult {
        Ok(())
    }

    fn error(&mut self, error: &SqlError) {
        self.errors.push(error.clone());
    }

    fn info(&mut self, _info: &SqlError) {}

    fn env_change(&mut self, _change: EnvChange) {}

    fn return_status(&mut self, _status: i32) {}

    fn return_value(&mut self, _name: &str, _column: &ColumnMeta, _value: &Value) {}
}

fn main() -> Outcome<()> {
    let rows: u64 = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(200_000);
    let options = EngineOptions { users: vec![("bench".into(), "bench".into())], ..EngineOptions::default() };
    let engine = Engine::in_memory(options)?;
    let request = LoginRequest { user: "bench".into(), password: "bench".into(), ..LoginRequest::default() };
    let mut session = engine.login(&request).map_err(|error| error.message)?;
    batch(&mut session, &format!("CREATE TABLE #four ({COLUMNS}); CREATE TABLE kept ({COLUMNS})"))?;
    measured("bulk load", rows, || load(&mut session, rows))?;
    let four = ["id", "price", "name", "at"];
    measured("digest of 4 columns", rows, || digest(&mut session, "#four", &four, rows))?;
    measured("INSERT ... SELECT", rows, || {
        batch(&mut session, "INSERT INTO kept WITH (TABLOCK) SELECT id, price, name, at FROM #four").map(drop)
    })?;
    measured("COUNT_BIG", rows, || batch(&mut session, "SELECT COUNT_BIG(*) FROM kept").map(drop))?;
    measured("COUNT_BIG of a window", rows, || {
        batch(&mut session, "SELECT COUNT_BIG(*) FROM kept WHERE at >= '2001-01-01' AND at < '2002-01-01'").map(drop)
    })?;
    measured("DELETE of a window", rows, || {
        batch(&mut session, &format!("DELETE FROM kept WHERE id >= 0 AND id < {}", rows / 2)).map(drop)
    })?;
    let twenty: Vec<&str> = four.iter().copied().cycle().take(20).collect();
    measured("digest of 20 columns", rows, || digest(&mut session, "#four", &twenty, rows))
}

/// CPU time of this process in seconds.
#[allow(clippy::cast_precision_loss, reason = "seconds for people")]
fn cpu_seconds() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: u64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
fn measured(name: &str, rows: u64, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let before = cpu_seconds()?;
    work()?;
    let spent = cpu_seconds()? - before;
    println!("{name:<22} {:>8.3} s CPU {:>8.3} us/row", spent, spent * 1e6 / rows as f64);
    Ok(())
}

fn batch(session: &mut Session, sql: &str) -> Outcome<Vec<Value>> {
    let mut seen = Seen::default();
    session.run_batch(sql, &mut seen);
    match seen.errors.first() {
        Some(error) => Err(format!("{}: {}", error.number, error.message).into()),
        None => Ok(seen.row),
    }
}

fn load(session: &mut Session, rows: u64) -> Outcome<()> {
    batch(
        session,
        "INSERT BULK #four (id bigint, price float(53), name nvarchar(max), at datetime2(6)) WITH (TABLOCK)",
    )?;
    let named = |name: &str, ty| ColumnMeta {
        name: name.into(),
        ty,
        nullable: true,
        identity: false,
        computed: false,
        collation: ty.collation(),
    };
    let columns = [
        named("id", SqlType::BigInt),
        named("price", SqlType::Float),
        named("name", SqlType::NVARCHAR_MAX),
        named("at", SqlType::DateTime2(6)),
    ];
    let mut load = session.bulk_columns(&columns).map_err(|error| error.message)?;
    for number in 0..rows {
        load.row(row(number)).map_err(|error| error.message)?;
    }
    load.finish().map_err(|error| error.message)?;
    Ok(())
}

fn row(number: u64) -> Vec<Value> {
    #[allow(clippy::cast_precision_loss, reason = "any price will do")]
    let price = number as f64 / 7.0;
    let days = 730_000 + i32::try_from(number % 1000).unwrap_or(0);
    let name =
        if number % 10 == 3 { Value::Null } else { Value::String(Text::from(&*format!("customer {number:011}"))) };
    vec![
        Value::BigInt(i64::try_from(number).unwrap_or(i64::MAX)),
        Value::Float(price),
        name,
        Value::DateTime2(DateTime2 { days, ticks: number * 10 }),
    ]
}

/// Native bytes of a nullable column, as the sink's digest statement rebuilds them.
fn frame(name: &str) -> String {
    let reversed =
        |x: String| (1..=8).rev().map(|at| format!("SUBSTRING({x}, {at}, 1)")).collect::<Vec<_>>().join(" + ");
    let (null, value) = match name {
        "name" => (
            "0xFFFFFFFFFFFFFFFF",
            reversed("CONVERT(binary(8), CONVERT(bigint, DATALENGTH(s.[name])))".into())
                + " + CONVERT(varbinary(max), s.[name])",
        ),
        "at" => ("0xFF", "0x08 + SUBSTRING(CONVERT(binary(9), CONVERT(datetime2(7), s.[at])), 2, 8)".into()),
        _ => ("0xFF", format!("0x08 + {}", reversed(format!("CONVERT(binary(8), s.[{name}])")))),
    };
    format!("CASE WHEN s.[{name}] IS NULL THEN {null} ELSE {value} END")
}

fn digest(session: &mut Session, table: &str, columns: &[&str], rows: u64) -> Outcome<()> {
    let (mut applies, mut pieces) = (String::new(), String::from("CONVERT(varbinary(max), 0x)"));
    for (group, chunk) in columns.chunks(4).enumerate() {
        let frames: Vec<String> = chunk.iter().map(|name| frame(name)).collect();
        let frames = frames.join(" + ");
        applies += &format!("\nCROSS APPLY (VALUES (CONVERT(varbinary(max), 0x) + {frames})) AS g{group}(p)");
        pieces += &format!(" + g{group}.p");
    }
    let byte = |at: usize| format!("CONVERT(bigint, CONVERT(tinyint, SUBSTRING(h0, {at}, 1)))");
    let words: Vec<String> = (0..8)
        .map(|word| word * 4 + 1)
        .map(|at| {
            let sum = format!(
                "{} * 16777216 + {} * 65536 + {} * 256 + {}",
                byte(at),
                byte(at + 1),
                byte(at + 2),
                byte(at + 3)
            );
            format!("COALESCE(SUM(CONVERT(decimal(38,0), {sum})), 0)")
        })
        .collect();
    let sql = format!(
        "SELECT TOP ({}) HASHBYTES('SHA2_256', {pieces}) AS h0 INTO #digest\n\
         FROM {table} AS s WITH (TABLOCKX, HOLDLOCK){applies};\n\
         SELECT COUNT_BIG(*), {} FROM #digest; DROP TABLE #digest",
        rows + 1,
        words.join(", ")
    );
    let row = batch(session, &sql)?;
    if row.first() != Some(&Value::BigInt(i64::try_from(rows)?)) {
        return Err("the digest did not see every row".into());
    }
    println!("{:?}", &row[1..3]);
    Ok(())
}
