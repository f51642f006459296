//! Blocks at and over their cap, memory over long results, and the reports of other clients that concern whole columns
//! (facts of transfer, section 4 B).

use contract::block::{Block, Values};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::memory::most_held;
use super::script::*;
use crate::wire::client::Connection;
use crate::wire::error::{Result, WireError};
use crate::wire::protocol::server;
use crate::wire::query::{Query, put_varint};
use crate::wire::shape::Shape;

const MEBIBYTE: usize = 1 << 20;

fn query(shape: Shape, block_cap_bytes: usize) -> Query<'static> {
    Query { id: "q", text: "SELECT", settings: &[], shape, block_cap_bytes, result_bound: None }
}

/// The first block of an answer under a cap.
async fn first(packet: Vec<u8>, shape: Shape, cap: usize) -> Result<Block> {
    let (mut connection, _) = Connection::open(Scripted::answering(&[packet]), NOBODY, LIMITS).await?;
    connection.start(query(shape, cap), Instant::now() + LIMITS.silence).await?;
    Ok(connection.next_block().await?.expect("rows"))
}

fn texts(count: usize, length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for at in 0..count {
        put_varint(&mut out, length as u64);
        out.resize(out.len() + length, b'a' + (at % 26) as u8);
    }
    out
}

fn named(types: &[(String, &'static str)]) -> Shape {
    Shape::new(types.iter().map(|(name, type_text)| (name.clone(), *type_text))).expect("the reader's types")
}

#[tokio::test]
async fn rows_of_a_hundred_columns_fill_a_block_up_to_its_cap_and_not_beyond() {
    let rows = 100;
    let names: Vec<(String, &str)> =
        (0..100).map(|at| (format!("c{at}"), if at % 2 == 0 { "String" } else { "Nullable(Int64)" })).collect();
    let columns: Vec<(&str, &str, Vec<u8>)> = names
        .iter()
        .enumerate()
        .map(|(at, (name, text))| (&**name, *text, if at % 2 == 0 { texts(rows, 30) } else { vec![0; 9 * rows] }))
        .collect();
    // A text takes its bytes and the four of its end; an integer eight and the byte of its null map.
    let cap = 50 * rows * (30 + 4) + 50 * rows * (8 + 1);
    let packet = block_packet(server::DATA, &block_bytes(rows as u64, &columns), 65_536);
    let block = first(packet.clone(), named(&names), cap).await.expect("a block");
    assert!(block.rows == rows && block.columns.len() == 100);
    let over = first(packet, named(&names), cap - 1).await.expect_err("one byte over");
    assert!(matches!(over, WireError::BlockTooLarge));
}

#[tokio::test]
async fn a_block_over_the_cap_has_a_code_of_its_own() {
    let packet = data(33, &[("s", "String", texts(33, MEBIBYTE))]);
    let over =
        first(packet, Shape::new([("s", "String")]).expect("a type"), crate::wire::block_cap_bytes(MEBIBYTE as u64))
            .await
            .expect_err("33 MiB");
    assert_eq!(crate::fault::stream(over, true).code.as_str(), contract::code::SOURCE_BLOCK_TOO_LARGE);
}

#[tokio::test]
async fn texts_of_a_mebibyte_and_blocks_of_one_row_are_exact() {
    let shape = || Shape::new([("s", "String")]).expect("a type");
    for (rows, frame) in [(20, usize::MAX), (20, 65_536), (1, 65_536), (1, 1000)] {
        let plain = block_bytes(rows as u64, &[("s", "String", texts(rows, MEBIBYTE))]);
        let block = first(block_packet(server::DATA, &plain, frame), shape(), 32 << 20).await.expect("a block");
        let Values::String(read) = &block.columns[0].values else { panic!("String") };
        assert_eq!(read.ends.len(), rows);
        for row in 0..rows {
            assert!(read.get(row).len() == MEBIBYTE && read.get(row).iter().all(|byte| *byte == b'a' + row as u8));
        }
    }
    let mut packets: Vec<Vec<u8>> = (0..5000).map(|row| numbers(row, 1)).collect();
    packets.extend([profile_info(5000), end_of_stream()]);
    let (rows, end) = read_all(Scripted::answering(&packets), number_shape()).await;
    assert!(rows == 5000 && end.is_ok(), "{end:?}");
}

/// Reads `blocks` blocks of 64 Ki integers from a server that writes only what is taken from it.
async fn read_long(packet: &[u8], blocks: i64) -> i64 {
    let (ours, mut theirs) = tokio::io::duplex(64 << 10);
    let serve = async {
        for reply in [hello(), Vec::new()] {
            // A message of the client fits the pipe and comes whole; nothing follows it before the reply.
            assert!(theirs.read(&mut [0; 1024]).await.expect("a message") > 0);
            theirs.write_all(&reply).await.expect("taken");
        }
        for _ in 0..blocks {
            theirs.write_all(packet).await.expect("taken");
        }
        theirs.write_all(&[profile_info(65_536 * blocks as u64), end_of_stream()].concat()).await.expect("taken");
    };
    let take = async {
        let (mut connection, _) = Connection::open(ours, NOBODY, LIMITS).await.expect("a connection");
        connection.start(query(number_shape(), 1 << 20), Instant::now() + LIMITS.silence).await.expect("a query");
        let mut taken = 0;
        while let Some(block) = connection.next_block().await.expect("rows") {
            taken += block.rows as i64;
        }
        taken
    };
    tokio::join!(serve, take).1
}

#[test]
fn b6_memory_is_flat_however_long_the_result() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let packet = numbers(0, 65_536);
    let held = |blocks| {
        let (rows, held) = most_held(|| runtime.block_on(read_long(&packet, blocks)));
        assert_eq!(rows, 65_536 * blocks);
        held
    };
    // 2 and 500 MiB of values.
    let (short, long) = (held(4), held(1000));
    assert!(long <= short + (64 << 10) && long < 4 << 20, "{short} bytes became {long}");
}

#[tokio::test]
async fn b2_a_flag_of_sparse_columns_is_never_taken_for_data() {
    // From revision 54454 on a byte after the type says how a column lies; at ours there is none.
    for flag in [0, 1] {
        let mut values = vec![flag];
        values.extend_from_slice(&[0; 8]);
        let (rows, end) = read_all(Scripted::answering(&[data(1, &[("n", "Int64", values)])]), number_shape()).await;
        assert!(rows == 0 && matches!(end, Err(WireError::Malformed(_))), "{end:?}");
    }
    const { assert!(crate::wire::protocol::CLIENT_REVISION < 54_454) };
}

#[tokio::test]
async fn b8_instants_before_1970_are_exact() {
    // DateTime64 arrives as the ticks of the SELECT's own conversion.
    let ticks = [-1_i64, -1_000_000, -999_999, -1_000_001, -2_208_988_799_999_999, i64::MIN];
    let values = ticks.map(i64::to_le_bytes).concat();
    let block = first(data(6, &[("n", "Int64", values)]), number_shape(), 1 << 20).await.expect("a block");
    assert_eq!(block.columns[0].values, Values::Int64(ticks.to_vec()));
}

#[tokio::test]
async fn b10_a_hundred_columns_keep_their_order_and_a_name_twice_is_refused() {
    let names: Vec<(String, &str)> = (0..100).map(|at| (format!("c{at}"), "Int64")).collect();
    let columns = || -> Vec<(&str, &str, Vec<u8>)> {
        names.iter().zip(0_i64..).map(|((name, text), at)| (&**name, *text, at.to_le_bytes().to_vec())).collect()
    };
    let block = first(data(1, &columns()), named(&names), 1 << 20).await.expect("a block");
    for (column, at) in block.columns.iter().zip(0..) {
        assert_eq!(column.values, Values::Int64(vec![at]));
    }
    let mut swapped = columns();
    swapped.swap(40, 41);
    let mut twice = columns();
    twice[41].0 = "c40";
    for other in [swapped, twice] {
        let error = first(data(1, &other), named(&names), 1 << 20).await.expect_err("other columns");
        assert!(matches!(error, WireError::ShapeChanged));
    }
}
