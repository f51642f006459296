//! How a result can end, and that only one of these ends is the end.

use std::time::Duration;

use tokio::time::{Instant, advance, pause};

use super::script::*;
use crate::wire::error::WireError;
use crate::wire::protocol::server;
use crate::wire::query::{put_text, put_varint};

/// Two whole blocks of 5 rows, as the misbehaving servers send them before they misbehave.
fn two_blocks() -> Vec<Vec<u8>> {
    vec![data(0, &[("n", "Int64", vec![])]), numbers(0, 5), progress(), numbers(5, 5)]
}

fn then(mut packets: Vec<Vec<u8>>, more: impl IntoIterator<Item = Vec<u8>>) -> Scripted {
    packets.extend(more);
    Scripted::answering(&packets)
}

macro_rules! fails_after_ten_rows {
    ($socket:expr, $error:pat) => {
        let (rows, end) = read_all($socket, number_shape()).await;
        assert_eq!(rows, 10);
        assert!(matches!(end, Err($error)), "{end:?}");
    };
}

#[tokio::test]
async fn end_of_stream_with_equal_counts_is_the_end() {
    for piece in [1, 2, 7, usize::MAX] {
        let socket = then(two_blocks(), [profile_info(10), progress(), end_of_stream()]).in_pieces_of(piece);
        let (rows, end) = read_all(socket, number_shape()).await;
        assert!(rows == 10 && end.is_ok(), "{end:?}");
    }
}

#[tokio::test]
async fn an_empty_result_still_needs_its_end() {
    let (rows, end) = read_all(then(vec![], [profile_info(0), end_of_stream()]), number_shape()).await;
    assert!(rows == 0 && end.is_ok());
    let (_, end) = read_all(then(vec![], []), number_shape()).await;
    assert!(matches!(end, Err(WireError::Closed)));
}

#[tokio::test]
async fn b1_a_connection_cut_between_blocks_is_an_error() {
    fails_after_ten_rows!(then(two_blocks(), []), WireError::Closed);
}

#[tokio::test]
async fn b1_a_connection_cut_inside_a_block_is_an_error() {
    let whole = numbers(10, 100);
    for kept in [1, 2, 10, 20, 30, whole.len() - 1] {
        fails_after_ten_rows!(then(two_blocks(), [whole[..kept].to_vec()]), WireError::Closed);
    }
}

#[tokio::test]
async fn b1_an_unknown_packet_is_an_error() {
    fails_after_ten_rows!(then(two_blocks(), [vec![99]]), WireError::UnknownPacket(99));
}

#[tokio::test]
async fn b1_a_log_packet_is_an_error() {
    let mut log = vec![server::LOG as u8];
    put_text(&mut log, "");
    log.extend(block_bytes(0, &[]));
    fails_after_ten_rows!(then(two_blocks(), [log]), WireError::UnexpectedPacket(_));
}

#[tokio::test]
async fn b1_a_block_of_another_type_is_an_error() {
    let other = data(5, &[("n", "Date32", vec![0; 20])]);
    fails_after_ten_rows!(then(two_blocks(), [other]), WireError::ShapeChanged);
}

#[tokio::test]
async fn b1_b3_an_exception_after_data_is_an_error_and_keeps_no_text() {
    for depth in [1, 3] {
        let (rows, end) = read_all(then(two_blocks(), [exception(395, depth)]), number_shape()).await;
        let error = end.expect_err("an exception");
        assert!(rows == 10 && matches!(error, WireError::Server(395)));
        assert!(!format!("{error} {error:?}").contains("value"));
    }
}

#[tokio::test]
async fn an_exception_nested_without_end_is_bounded() {
    fails_after_ten_rows!(then(two_blocks(), [exception(1, 1000)]), WireError::Malformed(_));
}

#[tokio::test]
async fn another_row_count_of_the_server_is_an_error() {
    for counted in [0, 9, 11] {
        fails_after_ten_rows!(then(two_blocks(), [profile_info(counted), end_of_stream()]), WireError::RowCount);
    }
    fails_after_ten_rows!(then(two_blocks(), [end_of_stream()]), WireError::RowCount);
    fails_after_ten_rows!(then(two_blocks(), [profile_info(10), profile_info(10)]), WireError::UnexpectedPacket(_));
    let late = [profile_info(10), numbers(10, 1)];
    fails_after_ten_rows!(then(two_blocks(), late), WireError::UnexpectedPacket(_));
}

#[tokio::test]
async fn totals_extremes_and_an_applied_limit_are_errors() {
    for kind in [server::TOTALS, server::EXTREMES] {
        let packet = block_packet(kind, &block_bytes(1, &[("n", "Int64", vec![0; 8])]), usize::MAX);
        fails_after_ten_rows!(then(two_blocks(), [packet]), WireError::UnexpectedPacket(_));
    }
    let mut limited = vec![server::PROFILE_INFO as u8];
    [10, 1, 80, 1, 10].into_iter().for_each(|number| put_varint(&mut limited, number));
    limited.push(1);
    fails_after_ten_rows!(then(two_blocks(), [limited]), WireError::UnexpectedPacket(_));
}

#[tokio::test]
async fn bytes_after_the_end_are_an_error() {
    let more = [profile_info(10), end_of_stream(), vec![server::PONG as u8]];
    fails_after_ten_rows!(then(two_blocks(), more), WireError::Malformed(_));
}

#[tokio::test]
async fn silence_is_bounded_and_waiting_elsewhere_is_not_silence() {
    pause();
    let socket = then(two_blocks(), []).silent_at_end();
    let mut connection = running(socket, number_shape()).await.expect("a running query");
    assert!(matches!(connection.next_block().await, Ok(Some(_))));
    // Back-pressure of an hour: nobody waits for the server meanwhile.
    advance(Duration::from_secs(3600)).await;
    assert!(matches!(connection.next_block().await, Ok(Some(_))));
    let before = Instant::now();
    assert!(matches!(connection.next_block().await, Err(WireError::Silence)));
    assert_eq!(before.elapsed().as_secs(), 300);
}

#[tokio::test]
async fn the_query_has_a_deadline_of_its_own() {
    pause();
    let socket = then(two_blocks(), []).silent_at_end();
    let mut connection = running(socket, number_shape()).await.expect("a running query");
    assert!(matches!(connection.next_block().await, Ok(Some(_))));
    assert!(matches!(connection.next_block().await, Ok(Some(_))));
    advance(Duration::from_secs(21_590)).await;
    let before = Instant::now();
    assert!(matches!(connection.next_block().await, Err(WireError::Deadline)));
    assert_eq!(before.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn b5_a_call_dropped_half_way_poisons_the_connection() {
    let socket = then(two_blocks(), [numbers(10, 100)[..50].to_vec()]).silent_at_end();
    let mut connection = running(socket, number_shape()).await.expect("a running query");
    for _ in 0..2 {
        assert!(matches!(connection.next_block().await, Ok(Some(_))));
    }
    tokio::select! {
        biased;
        _ = connection.next_block() => panic!("the block never completes"),
        () = std::future::ready(()) => {}
    }
    assert!(matches!(connection.next_block().await, Err(WireError::Poisoned)));
}

#[tokio::test]
async fn a_ping_is_answered_by_a_pong_only() {
    let deadline = Instant::now() + Duration::from_secs(5);
    for (reply, good) in [(vec![server::PONG as u8], true), (vec![99], false), (vec![], false)] {
        let socket = Scripted::new(vec![hello(), reply]);
        let (mut connection, _) = crate::wire::Connection::open(socket, NOBODY, LIMITS).await.expect("a connection");
        assert_eq!(connection.ping(deadline).await.is_ok(), good);
        assert!(good || matches!(connection.ping(deadline).await, Err(WireError::Poisoned)));
    }
}

#[tokio::test]
async fn a_refused_login_and_a_wrong_greeting_are_errors() {
    let open = |bytes: Vec<u8>| crate::wire::Connection::open(Scripted::new(vec![bytes]), NOBODY, LIMITS);
    assert!(matches!(open(exception(516, 1)).await, Err(WireError::Server(516))));
    assert!(matches!(open(b"HTTP/1.1 400 Bad Request\r\n".to_vec()).await, Err(WireError::UnknownPacket(_))));
    assert!(matches!(open(Vec::new()).await, Err(WireError::Closed)));
    let mut old = vec![server::HELLO as u8];
    put_text(&mut old, "ClickHouse");
    [18, 16, 54_412].into_iter().for_each(|number| put_varint(&mut old, number));
    assert!(matches!(open(old).await, Err(WireError::Malformed(_))));
    let mut long = vec![server::HELLO as u8];
    put_varint(&mut long, 1 << 31);
    assert!(matches!(open(long).await, Err(WireError::Malformed(_))));
}
