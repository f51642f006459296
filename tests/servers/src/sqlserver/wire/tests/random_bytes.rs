//! No decoder panics or loops, whatever a client sends.

use proptest::prelude::*;
use tokio::sync::mpsc;

use super::super::bulk::{BulkChunk, BulkStream, Item};
use super::super::packet::Header;
use super::super::reader::Reader;
use super::super::type_info::WireType;
use super::super::{headers, login7, prelogin, rpc, transaction, values};
use super::hex;

/// Random bytes behind one of the given beginnings, so that the decoders get past their first checks.
fn behind(beginnings: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let tail = prop::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(0), 1 => 0u8..10], 0..200);
    (prop::sample::select(beginnings), tail).prop_map(|(beginning, tail)| [hex(beginning), tail].concat())
}

const HEADERS: &str = "16000000 12000000 0200 0000000000000000 01000000";
const CALL: &str = "16000000 12000000 0200 0000000000000000 01000000 FFFF 0A00 0000 00 00";
const BULK: &str =
    "81 0300 00000000 0900 26 08 01 6100 00000000 0900 E7 FFFF 0904D00034 01 6200 00000000 0900 6A 11 26 00 01 6300 D1";

proptest! {
    #[test]
    fn packet_headers(bytes in any::<[u8; 8]>()) {
        if let Ok(header) = Header::parse(bytes) {
            prop_assert!(header.payload_bytes <= 32760);
        }
    }

    #[test]
    fn logins(bytes in behind(&["", "C8000000 04000074"])) {
        let _ = prelogin::parse(&bytes);
        let _ = login7::parse(&bytes);
    }

    #[test]
    fn requests(bytes in behind(&["", HEADERS, CALL])) {
        let _ = headers::parse(&mut Reader::new(&bytes));
        let _ = transaction::parse(&bytes);
        let _ = rpc::parse(&bytes);
    }

    #[test]
    fn typed_values(bytes in behind(&["", "E7 FFFF 0904D00034", "6A 11 26 00", "2A 06", "26 08", "23 FFFFFF7F 0904D00034"])) {
        let mut reader = Reader::new(&bytes);
        if let Ok(wire) = WireType::parse(&mut reader) {
            let _ = values::read(&mut reader, wire, &mut Vec::new());
        }
    }

    #[test]
    fn bulk_messages(bytes in behind(&["", "81 0200", BULK])) {
        let (sender, receiver) = mpsc::channel(bytes.len() + 1);
        for packet in bytes.chunks(11) {
            sender.try_send(BulkChunk::Data(packet.to_vec())).unwrap();
        }
        sender.try_send(BulkChunk::End).unwrap();
        let mut stream = BulkStream::new(receiver);
        if let Ok(columns) = stream.columns() {
            while let Ok(Item::Row(row)) = stream.next(&columns, &mut Vec::new()) {
                prop_assert_eq!(row.len(), columns.metas().len());
            }
        }
    }
}
