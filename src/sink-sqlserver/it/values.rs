//! The server's digest of a stage is the digest of the bytes that were sealed, for every value that a column can hold.

use contract::encode::Value;
use contract::port::target::{StageRef, StageWriter as _, Target as _};

use super::kit::{DAY, Kit, assert_digest, at, grant, row, sealed, stage};

/// The last tick of a day at six digits.
const LAST_TICK: i64 = 863_999_999_990;
/// Days of 9999-12-31.
const LAST_DAY: i32 = 3_652_058;

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = ["", " ", "trailing  ", "é", "😀", "\u{feff}bom", "a\0b", "\0", "'quote'", "ß"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    // Around the 8,000 bytes of nvarchar(4000), and far beyond one packet.
    texts.extend([3999, 4000, 4001, 70_000].map(|length| "x".repeat(length)));
    texts.push("😀".repeat(2001));
    texts
}

fn rows() -> Vec<Vec<Value<'static>>> {
    let floats = [0.0, -0.0, 1.0, -1.5, f64::MIN_POSITIVE, 5e-324, -5e-324, f64::MAX, f64::MIN, f64::EPSILON];
    let integers = [0, 1, -1, i64::MAX, i64::MIN, 256, -256, 0x0102_0304_0506_0708];
    let times = [(0, 0), (0, 10), (DAY, 0), (DAY, 123_456_780), (LAST_DAY, LAST_TICK), (693_595, 1_000_000)];
    let mut rows = Vec::new();
    for (index, text) in texts().into_iter().enumerate() {
        let text: &'static str = Box::leak(text.into_boxed_str());
        let float = floats[index % floats.len()];
        let integer = Value::Int(integers[index % integers.len()].into());
        let (days, ticks) = times[index % times.len()];
        for null in [false, true] {
            let or_null = |value: Value<'static>| if null { Value::Null } else { value };
            rows.push(vec![
                integer.clone(),
                or_null(integer.clone()),
                Value::Float(float),
                or_null(Value::Float(float)),
                Value::Text(text),
                or_null(Value::Text(text)),
                at(days, ticks),
                or_null(at(days, ticks)),
            ]);
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_digests_the_bytes_that_were_sealed() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let rows = rows();
    let mut writer = kit.target.open_writer(&grant("v")).await.expect("a writer");
    let definition = stage("v");
    let stage = StageRef { object_id: writer.create_stage(&definition).await.expect("a stage"), definition };
    let (bytes, facts) = sealed(&rows);
    writer.write(&stage, &facts, bytes).await.expect("written");
    let count = rows.len() as u64;
    assert_digest(&writer.verify(&stage, count).await.expect("a digest"), &rows);
    // One row more than expected is seen, and so is one changed value.
    let fewer = writer.verify(&stage, count - 1).await.expect("a digest");
    assert!(fewer.overflow);
    kit.run("UPDATE stage.dpone_native_v SET n = 2 WHERE n = 1").await;
    let changed = writer.verify(&stage, count).await.expect("a digest");
    let seen = contract::target_digest::decode(&changed, count).expect("a digest");
    assert!(seen.sum != super::kit::sum(&rows));
    writer.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_holds_are_the_values_themselves() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let mut last = row(i64::MIN, "😀\u{feff}");
    last[3] = Value::Float(-0.0);
    last[6] = at(LAST_DAY, LAST_TICK);
    last[7] = at(0, 10);
    kit.stage("w", &[last, row(7, "")]).await;
    let seen = kit
        .run(
            "SELECT id, n, f, CONVERT(varchar(16), CONVERT(binary(8), g), 2), CONVERT(varchar(40), CONVERT(varbinary(20), s), 2), \
             t, CONVERT(varchar(26), d, 121), CONVERT(varchar(26), e, 121) FROM stage.dpone_native_w ORDER BY id",
        )
        .await;
    assert_eq!(
        seen,
        [
            [
                "-9223372036854775808",
                "NULL",
                "0.5",
                "8000000000000000",
                "3DD800DEFFFE",
                "NULL",
                "9999-12-31 23:59:59.999999",
                "0001-01-01 00:00:00.000001"
            ],
            ["7", "NULL", "0.5", "NULL", "", "NULL", "2013-07-04 00:00:00.000000", "NULL"],
        ]
    );
}
