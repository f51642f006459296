//! Bytes that no honest server sends: flipped bits, absurd lengths, noise. Nothing panics and nothing is set aside for
//! lengths beyond the caps.

use proptest::prelude::*;

use super::script::*;
use crate::wire::error::WireError;
use crate::wire::protocol::server;
use crate::wire::query::{put_text, put_varint};
use crate::wire::shape::Shape;

fn everything() -> Shape {
    Shape::new([
        ("a", "Nullable(String)"),
        ("b", "UUID"),
        ("c", "Decimal(9, 2)"),
        ("d", "Nullable(Decimal(38, 10))"),
        ("e", "Bool"),
        ("f", "Float64"),
    ])
    .expect("types")
}

/// One honest row of [`everything`] in frames of 40 bytes.
fn honest() -> Vec<u8> {
    let mut text = vec![0];
    put_text(&mut text, "text");
    let columns = [
        ("a", "Nullable(String)", text),
        ("b", "UUID", vec![1; 16]),
        ("c", "Decimal(9, 2)", vec![1; 4]),
        ("d", "Nullable(Decimal(38, 10))", vec![0; 17]),
        ("e", "Bool", vec![1]),
        ("f", "Float64", vec![0; 8]),
    ];
    block_packet(server::DATA, &block_bytes(1, &columns), 40)
}

#[tokio::test]
async fn every_flipped_bit_of_a_frame_is_noticed() {
    let packet = honest();
    for position in 2..packet.len() {
        let mut flipped = packet.clone();
        flipped[position] ^= 0x04;
        let (rows, end) =
            read_all(Scripted::answering(&[flipped, profile_info(1), end_of_stream()]), everything()).await;
        assert!(rows == 0 && end.is_err(), "byte {position}");
    }
}

#[tokio::test]
async fn b13_a_flipped_payload_byte_is_a_checksum_error() {
    let mut packet = numbers(0, 100);
    let last = packet.len() - 1;
    packet[last] ^= 1;
    let (_, end) = read_all(Scripted::answering(&[packet]), number_shape()).await;
    assert!(matches!(end, Err(WireError::Checksum)));
}

#[tokio::test]
async fn b13_frame_lengths_of_two_gigabytes_are_refused_unread() {
    for (packed, plain) in [(1_u32 << 31, 100_u32), (100, 1 << 31), (u32::MAX, u32::MAX), (0, 0), (9, 0), (8, 1)] {
        let mut packet = vec![server::DATA as u8, 0];
        packet.extend_from_slice(&[0; 16]);
        packet.push(0x82);
        packet.extend_from_slice(&packed.to_le_bytes());
        packet.extend_from_slice(&plain.to_le_bytes());
        let (_, end) = read_all(Scripted::answering(&[packet]), number_shape()).await;
        assert!(matches!(end, Err(WireError::BlockTooLarge | WireError::Malformed(_))), "{end:?}");
    }
}

#[tokio::test]
async fn row_counts_and_string_lengths_beyond_the_cap_are_refused() {
    for rows in [(32 << 20) / 8 + 1, 1 << 31, u64::MAX] {
        let (_, end) = read_all(Scripted::answering(&[data(rows, &[("n", "Int64", vec![])])]), number_shape()).await;
        assert!(matches!(end, Err(WireError::BlockTooLarge)), "{end:?}");
    }
    for length in [32 << 20, 1 << 31, u64::MAX] {
        let mut value = Vec::new();
        put_varint(&mut value, length);
        value.push(b'x');
        let shape = Shape::new([("s", "String")]).expect("type");
        let (_, end) = read_all(Scripted::answering(&[data(1, &[("s", "String", value)])]), shape).await;
        assert!(matches!(end, Err(WireError::BlockTooLarge)), "{end:?}");
    }
}

#[tokio::test]
async fn many_small_frames_cannot_pass_the_cap_together() {
    let megabyte = vec![7_u8; 1 << 20];
    let mut plain = block_bytes(1, &[("s", "String", Vec::new())]);
    put_varint(&mut plain, 40 << 20);
    (0..40).for_each(|_| plain.extend_from_slice(&megabyte));
    let shape = Shape::new([("s", "String")]).expect("type");
    let (_, end) = read_all(Scripted::answering(&[block_packet(server::DATA, &plain, 1 << 20)]), shape).await;
    assert!(matches!(end, Err(WireError::BlockTooLarge)), "{end:?}");
}

#[tokio::test]
async fn unknown_compression_methods_are_refused() {
    for method in [0x00, 0x91, 0xff] {
        let mut packet = numbers(0, 3);
        packet[2 + 16] = method;
        let (_, end) = read_all(Scripted::answering(&[packet]), number_shape()).await;
        assert!(matches!(end, Err(WireError::Malformed(_))), "{end:?}");
    }
}

#[tokio::test]
async fn a_bounded_read_stops_beyond_its_rows_and_bytes() {
    use crate::wire::{Connection, Query, ResultBound};
    for (rows, bytes, fits) in [(10, 1 << 20, true), (9, 1 << 20, false), (10, 80, true), (10, 79, false)] {
        let packets = [numbers(0, 5), numbers(5, 5), profile_info(10), end_of_stream()];
        let socket = Scripted::answering(&packets);
        let (mut connection, _) = Connection::open(socket, NOBODY, LIMITS).await.expect("a connection");
        let result_bound = Some(ResultBound { rows, bytes });
        let shape = number_shape();
        let query = Query { id: "", text: "SELECT n", settings: &[], shape, block_cap_bytes: 1 << 20, result_bound };
        connection
            .start(query, tokio::time::Instant::now() + std::time::Duration::from_secs(5))
            .await
            .expect("a query");
        assert!(connection.next_block().await.is_ok());
        let second = connection.next_block().await;
        assert!(fits == second.is_ok() && (fits || matches!(second, Err(WireError::ResultTooLarge))), "{rows} {bytes}");
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn noise_never_panics_and_never_ends_cleanly(noise in proptest::collection::vec(any::<u8>(), 0..400), piece in 1_usize..50) {
        let (rows, end) = block_on(read_all(Scripted::answering(&[noise]).in_pieces_of(piece), everything()));
        prop_assert!(rows == 0 && end.is_err());
    }

    #[test]
    fn noise_inside_a_valid_frame_never_panics(noise in proptest::collection::vec(any::<u8>(), 1..400), kind in 0_u64..16, head in any::<bool>()) {
        let plain = if head { [block_bytes(3, &[]), noise].concat() } else { noise };
        let packet = block_packet(kind, &plain, 64);
        let (_, end) = block_on(read_all(Scripted::answering(&[packet]), everything()));
        prop_assert!(end.is_err());
    }

    #[test]
    fn noise_instead_of_a_greeting_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(block_on(running(Scripted::new(vec![noise]), everything())).is_err());
    }

    #[test]
    fn a_changed_answer_is_refused_or_cut(position in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<bool>()) {
        let mut answer = [honest(), honest(), profile_info(2), end_of_stream()].concat();
        let at = position.index(answer.len());
        if cut { answer.truncate(at) } else { answer[at] = value }
        let (rows, _) = block_on(read_all(Scripted::answering(&[answer]), everything()));
        prop_assert!(rows <= 2);
    }
}
