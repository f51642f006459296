//! `typed_rows`: values to native rows, hashes, sums, layouts and the target's aggregate row.

use contract::canon::Json;
use contract::digest::{Digest, TypedSum, fold_limbs, hash_limbs, native_multiset_digest};
use contract::encode::{Decimal, Field, NativeRows, Value as Cell, encode_values, split_row};
use contract::layout::{WireColumn, WireLayout};
use contract::sql_type::SqlType;
use contract::target_digest::AggregateRow;
use contract::target_layout;
use num_bigint::BigUint;
use serde_json::Value;

use super::case::{json, unhex};
use super::{Case, Check, File, Run, fail, run, same};

/// Row bound of the cases that name none: larger than any of their rows.
const MAX_ROW_BYTES: u64 = 1 << 26;

#[test]
fn typed_rows() {
    run(&File {
        name: "typed_rows",
        groups: &[
            ("target_local_single_not_null", Run::Check(encoded)),
            ("target_local_single_nullable", Run::Check(encoded)),
            ("target_local_null", Run::Check(encoded)),
            ("target_local_null_mix", Run::Check(encoded)),
            ("target_local_duplicates", Run::Check(encoded)),
            ("target_local_empty_file", Run::Check(encoded)),
            ("target_local_random", Run::Check(encoded)),
            ("native_single_not_null", Run::Check(encoded)),
            ("native_single_nullable", Run::Check(encoded)),
            ("native_null", Run::Check(encoded)),
            ("raw_history", Run::Check(encoded)),
            ("row_limit_exact", Run::Check(encoded)),
            ("workload_digest", Run::Check(workload)),
            ("value_reject", Run::Check(refused)),
            ("null_reject", Run::Check(refused)),
            ("arity_reject", Run::Check(refused)),
            ("row_limit_reject", Run::Check(refused)),
            ("source_text_adaptation", Run::Check(source_text)),
            ("aggregate_decode", Run::Check(aggregate)),
            ("wire_layout", Run::Check(wire_layout)),
        ],
    });
}

/// The layout of a `schema` field: pairs of name and declaration.
fn layout(case: &Case) -> Result<WireLayout, String> {
    let pairs = case.field("schema")?.as_array().ok_or("schema is no array")?;
    let pair = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    let pairs = pairs.iter().map(pair).collect::<Option<Vec<_>>>().ok_or("schema holds no pairs")?;
    WireLayout::new(pairs.iter().map(|(name, declared)| (name.as_str(), declared.as_str()))).map_err(|e| e.to_string())
}

/// Buffers that the borrowed cells of one row point into.
#[derive(Default)]
struct Owned {
    texts: Vec<String>,
    points: Vec<Vec<u32>>,
    bytes: Vec<Vec<u8>>,
}

enum Slot {
    Ready(Cell<'static>),
    Text(usize),
    Points(usize),
    Bytes(usize),
}

/// Encodes one row of tagged values.
fn encode(layout: &WireLayout, row: &Value, max: u64) -> Result<Result<Vec<u8>, &'static str>, String> {
    let mut owned = Owned::default();
    let cells = row.as_array().ok_or("a row is no array")?;
    let slots = cells.iter().map(|cell| slot(cell, &mut owned)).collect::<Result<Vec<_>, _>>()?;
    let cells: Vec<Cell<'_>> = slots
        .into_iter()
        .map(|slot| match slot {
            Slot::Ready(cell) => cell,
            Slot::Text(index) => Cell::Text(&owned.texts[index]),
            Slot::Points(index) => Cell::CodePoints(&owned.points[index]),
            Slot::Bytes(index) => Cell::Bytes(&owned.bytes[index]),
        })
        .collect();
    let mut out = Vec::new();
    Ok(encode_values(layout, &cells, max, &mut out).map(|()| out).map_err(|(code, _)| code))
}

/// A tagged value.
fn slot(value: &Value, owned: &mut Owned) -> Result<Slot, String> {
    if value.is_null() {
        return Ok(Slot::Ready(Cell::Null));
    }
    let text = |key: &str| value[key].as_str();
    if let Some(flag) = value["bool"].as_bool() {
        return Ok(Slot::Ready(Cell::Bool(flag)));
    }
    if let Some(points) = value["str_code_points"].as_array() {
        let points = points.iter().map(|point| point.as_u64().and_then(|point| u32::try_from(point).ok()));
        let points = points.collect::<Option<Vec<_>>>().ok_or("code points are no numbers")?;
        owned.points.push(points);
        return Ok(Slot::Points(owned.points.len() - 1));
    }
    if let Some(text) = text("str") {
        owned.texts.push(text.to_owned());
        return Ok(Slot::Text(owned.texts.len() - 1));
    }
    if let Some(hex) = text("hex") {
        owned.bytes.push(unhex(hex).ok_or("a value is no hex")?);
        return Ok(Slot::Bytes(owned.bytes.len() - 1));
    }
    let cell = if let Some(int) = text("int") {
        // An integer beyond 128 bits fits no column; as a decimal it has too many digits for every type, which is the
        // same verdict.
        int.parse().map(Cell::Int).or_else(|_| decimal(int))?
    } else if let Some(bits) = text("f64_bits") {
        Cell::Float(f64::from_bits(u64::from_str_radix(bits, 16).map_err(|e| e.to_string())?))
    } else if let Some(text) = text("decimal") {
        decimal(text)?
    } else if let Some(text) = text("uuid") {
        let hex = unhex(&text.replace('-', "")).ok_or("a uuid is no hex")?;
        Cell::Uuid(hex.try_into().map_err(|_| "a uuid has not 16 bytes")?)
    } else if let Some(text) = text("date") {
        Cell::Date(days(text)?)
    } else if let Some(text) = text("time") {
        Cell::Time(ticks(text)? + value["extra_100ns"].as_i64().unwrap_or(0))
    } else if let Some(text) = text("datetime") {
        date_time(text, value["extra_100ns"].as_i64().unwrap_or(0))?
    } else {
        return fail(format!("unknown tagged value {value}"));
    };
    Ok(Slot::Ready(cell))
}

fn decimal(text: &str) -> Result<Cell<'static>, String> {
    match text {
        "Infinity" | "-Infinity" | "NaN" | "-NaN" | "sNaN" => Ok(Cell::NotFinite),
        _ => Decimal::parse(text).map(Cell::Decimal).ok_or_else(|| format!("no decimal: {text}")),
    }
}

/// Days since 0001-01-01 of `YYYY-MM-DD`.
fn days(text: &str) -> Result<i32, String> {
    let parts: Vec<u32> = text.split('-').map(|part| part.parse().unwrap_or(0)).collect();
    let [year, month, day] = parts[..] else { return fail(format!("no date: {text}")) };
    let date = contract::civil::Date::new(year as i32, month, day).ok_or_else(|| format!("no date: {text}"))?;
    Ok((date.days() + contract::civil::DAYS_0001_TO_1970) as i32)
}

/// 100 ns ticks of `HH:MM:SS[.ffffff]`.
fn ticks(text: &str) -> Result<i64, String> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<i64> = clock.split(':').map(|part| part.parse().unwrap_or(-1)).collect();
    let [hours, minutes, seconds] = parts[..] else { return fail(format!("no time: {text}")) };
    let micros: i64 = format!("{fraction:0<6}").parse().map_err(|_| format!("no time: {text}"))?;
    Ok(((hours * 60 + minutes) * 60 + seconds) * 10_000_000 + micros * 10)
}

fn date_time(text: &str, extra: i64) -> Result<Cell<'static>, String> {
    let (date, time) = text.split_once('T').ok_or_else(|| format!("no datetime: {text}"))?;
    let sign_at = time.find(['+', '-']);
    let (clock, offset) = time.split_at(sign_at.unwrap_or(time.len()));
    let offset_seconds = if offset.is_empty() {
        None
    } else {
        let parts: Vec<i32> = offset[1..].split(':').map(|part| part.parse().unwrap_or(0)).collect();
        let seconds = parts.iter().zip([3600, 60, 1]).map(|(part, unit)| part * unit).sum::<i32>();
        Some(if offset.starts_with('-') { -seconds } else { seconds })
    };
    Ok(Cell::DateTime { days: days(date)?, ticks: ticks(clock)? + extra, offset_seconds })
}

fn rows(case: &Case) -> Result<&Vec<Value>, String> {
    case.field("rows")?.as_array().ok_or_else(|| "rows is no array".to_owned())
}

fn texts<'a>(case: &'a Case, key: &str) -> Result<Vec<&'a str>, String> {
    let items = case.field(key)?.as_array().ok_or_else(|| format!("{key} is no array"))?;
    items.iter().map(|item| item.as_str().ok_or_else(|| format!("{key} holds no texts"))).collect()
}

fn encoded(case: &Case) -> Check {
    let layout = layout(case)?;
    let _ = case.get("note");
    let (want_rows, want_hashes) = (texts(case, "row_hex")?, texts(case, "row_sha256")?);
    let mut file = Vec::new();
    let mut sum = TypedSum::ZERO;
    let mut limbs = [0i128; 8];
    let rows = rows(case)?;
    same("rows", want_rows.len(), rows.len())?;
    for (index, row) in rows.iter().enumerate() {
        let row = &with_seventh_digits(&layout, row, want_rows[index])?;
        let bytes = encode(&layout, row, MAX_ROW_BYTES)?.map_err(|code| format!("row {index} refused with {code}"))?;
        same("row bytes", hex(&bytes).as_str(), want_rows[index])?;
        let hash = Digest::of(&bytes);
        same("row hash", hash.to_string().as_str(), want_hashes[index])?;
        sum.add_hash(hash.as_bytes());
        for (limb, word) in limbs.iter_mut().zip(hash_limbs(hash.as_bytes())) {
            *limb += word;
        }
        // The bound is inclusive: the row's own size passes, one byte less does not.
        let size = bytes.len() as u64;
        same("the row passes at its own size", encode(&layout, row, size)?.is_ok(), true)?;
        same("one byte less", encode(&layout, row, size - 1)?, Err("mssql_native_row_bytes_exceeded"))?;
        file.extend(bytes);
    }
    same("file_sha256", Digest::of(&file), case.digest("file_sha256")?)?;
    same("encoded_bytes", file.len() as u64, case.u64("encoded_bytes")?)?;
    same("row_count", rows.len() as u64, case.u64("row_count")?)?;
    same("native_typed_sum", sum.to_string().as_str(), case.text("native_typed_sum")?)?;
    let digest = native_multiset_digest(rows.len() as u64, &sum);
    same("native_multiset_digest", digest, case.digest("native_multiset_digest")?)?;
    same("target_limb_sums", limbs.map(|limb| limb.to_string()).to_vec(), texts(case, "target_limb_sums")?)?;
    same("folded limbs", fold_limbs(rows.len() as u64, &limbs).map_err(|e| e.to_string())?, sum)?;
    read_back(&layout, &file, &want_rows)?;
    admission(case, &layout)
}

/// The files' `time` tag stops at microseconds although the value behind it may have had a seventh digit. That one digit
/// of a `time(7)` field is read off the expected bytes; everything else of the row stays a check.
fn with_seventh_digits(layout: &WireLayout, row: &Value, want: &str) -> Result<Value, String> {
    let mut row = row.clone();
    let bytes = unhex(want).ok_or("row_hex is no hex")?;
    let mut fields = Vec::new();
    let whole = split_row(layout, &bytes, MAX_ROW_BYTES, &mut fields).map_err(|e| e.to_string())?;
    same("length of the expected row", whole, Some(bytes.len()))?;
    for (index, (column, field)) in layout.columns().iter().zip(&fields).enumerate() {
        if let (SqlType::Time(7), Field::Payload(ticks)) = (column.sql, field) {
            let ticks = ticks.iter().rev().fold(0u64, |ticks, byte| ticks << 8 | u64::from(*byte));
            row[index]["extra_100ns"] = (ticks % 10).into();
        }
    }
    Ok(row)
}

/// The sealed bytes fall apart into the same rows.
fn read_back(layout: &WireLayout, file: &[u8], want: &[&str]) -> Check {
    let mut cursor = NativeRows::new(layout, file, MAX_ROW_BYTES);
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut count = 0;
    while let Some(row) = cursor.next_row(&mut fields).map_err(|e| e.to_string())? {
        same("row read back", hex(row).as_str(), want[count])?;
        same("fields", fields.len(), layout.columns().len())?;
        count += 1;
    }
    same("rows read back", count, want.len())
}

fn admission(case: &Case, layout: &WireLayout) -> Check {
    let verdict = target_layout::admit_row(layout);
    same("target_local_admitted", Some(verdict.is_ok()), case.field("target_local_admitted")?.as_bool())?;
    let code = verdict.err().map(|refusal| refusal.code.as_str().to_owned());
    same("target_local_error", code.as_deref(), case.optional_text("target_local_error"))?;
    fingerprint(case, layout)
}

/// The prior system hashes a Python repr; ours is another digest of the same layout, so only the form binds.
fn fingerprint(case: &Case, layout: &WireLayout) -> Check {
    let theirs = case.text("wire_fingerprint")?;
    same("length of the fingerprint", layout.wire_fingerprint().len(), theirs.len())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn workload(case: &Case) -> Check {
    let layout = layout(case)?;
    let rows = rows(case)?;
    let mut all = TypedSum::ZERO;
    let mut sums = Vec::new();
    let mut next = rows.iter();
    let chunks = case.field("chunks")?.as_array().ok_or("chunks is no array")?;
    for chunk in chunks {
        let count = chunk.as_u64().ok_or("a chunk is no count")? as usize;
        let mut sum = TypedSum::ZERO;
        for row in next.by_ref().take(count) {
            let bytes = encode(&layout, row, MAX_ROW_BYTES)?.map_err(str::to_owned)?;
            sum.add_hash(Digest::of(&bytes).as_bytes());
        }
        all.add(&sum);
        sums.push(sum.to_string());
    }
    same("the chunks cover the rows", next.next().is_none(), true)?;
    same("chunk_typed_sums", sums, texts(case, "chunk_typed_sums")?)?;
    same("total_rows", rows.len() as u64, case.u64("total_rows")?)?;
    same("total_sum_mod_2_256", all.to_string().as_str(), case.text("total_sum_mod_2_256")?)?;
    same("workload_digest", native_multiset_digest(rows.len() as u64, &all), case.digest("workload_digest")?)
}

fn refused(case: &Case) -> Check {
    let layout = layout(case)?;
    let verdict = encode(&layout, case.field("row")?, case.u64("max_row_bytes")?)?;
    same("verdict", verdict.err(), case.optional_text("error"))
}

fn source_text(case: &Case) -> Check {
    let layout = WireLayout::new([("v", case.text("target_type")?)]).map_err(|e| e.to_string())?;
    let bytes = case.bytes("driver_bytes_hex")?;
    let mut out = Vec::new();
    let verdict = encode_values(&layout, &[Cell::SourceBytes(&bytes)], MAX_ROW_BYTES, &mut out);
    same("verdict", verdict.err().map(|(code, _)| code), case.optional_text("error"))?;
    let row = case.optional_text("row_hex").unwrap_or_default();
    same("row", hex(&out).as_str(), row)
}

/// The ten values of the target's digest query.
fn aggregate(case: &Case) -> Check {
    let row = case.field("row")?.as_array().ok_or("row is no array")?;
    let observed = AggregateRow {
        rows: row.first().and_then(|rows| rows.as_str()?.parse().ok()),
        overflow: row.get(1).and_then(Value::as_bool),
        limbs: row.iter().skip(2).map(Value::as_str).collect(),
    };
    let verdict = observed.decode(case.u64("expected_rows")?);
    let Some(digest) = case.verdict(verdict)? else { return Ok(()) };
    same("rows", digest.rows, case.u64("rows")?)?;
    let sum: BigUint = case.text("typed_sum")?.parse().map_err(|_| "typed_sum is no integer")?;
    same("typed_sum", BigUint::from(digest.sum), sum)?;
    same("digest", digest.digest(), case.digest("digest")?)
}

fn wire_layout(case: &Case) -> Check {
    let layout = layout(case)?;
    same("columns", layout.document(), json(case.field("columns")?)?)?;
    fingerprint(case, &layout)?;
    same("length of the schema hash", layout.schema_hash().len(), case.text("schema_hash")?.len())?;
    // The preimages are Python reprs; ours are canonical JSON.
    let _ = (case.get("wire_fingerprint_preimage_utf8"), case.get("schema_hash_preimage_utf8"));
    Ok(())
}

#[test]
fn target_local_layout_matrix() {
    run(&File {
        name: "target_local_layout_matrix",
        groups: &[
            ("payload", Run::Check(matrix_payload)),
            ("artifact", Run::Check(matrix_artifact)),
            ("admits", Run::Check(matrix_admits)),
        ],
    });
}

fn matrix_payload(case: &Case) -> Check {
    same("payload", target_layout::payload(), case.json("payload")?)?;
    let canonical = contract::canon::legacy(&target_layout::base_document());
    same("base", String::from_utf8_lossy(&canonical).as_ref(), case.text("base_canonical_utf8")?)?;
    same("digest", target_layout::capability_digest(), case.digest("capability_digest")?)?;
    // The file is the artifact of whichever commit it was made for.
    let file = case.json("file_json_artifact")?;
    let commit = file.get("source_commit").and_then(Json::as_str);
    let made = match commit {
        Some(commit) => target_layout::artifact(commit).map_err(|e| e.to_string())?,
        None => target_layout::payload(),
    };
    same("artifact", made, file)
}

fn matrix_artifact(case: &Case) -> Check {
    let made = case.verdict(target_layout::artifact(case.text("source_commit")?))?;
    same("artifact", made.unwrap_or(Json::Null), case.json("artifact")?)
}

fn matrix_admits(case: &Case) -> Check {
    let Some(column) = case.verdict(WireColumn::new("v", case.text("sql_type")?))? else {
        return same("admitted", Some(false), case.get("admitted").and_then(Value::as_bool).or(Some(false)));
    };
    same("column", column.document(), case.json("column")?)?;
    same("admitted", Some(target_layout::admits(&column)), case.field("admitted")?.as_bool())
}
