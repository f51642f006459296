use proptest::prelude::*;

use super::{ClientPacket, Hello, SERVER_REVISION, SentSetting};
use crate::clickhouse::wire::WriteWire as _;

/// A query at revision 54448 with one setting of the user's own making.
fn query_bytes() -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.put_string("id");
    bytes.push(1);
    for text in ["user", "initial", "address"] {
        bytes.put_string(text);
    }
    bytes.push(1);
    for text in ["os", "host", "client"] {
        bytes.put_string(text);
    }
    for number in [1, 2, 54_448] {
        bytes.put_varint(number);
    }
    bytes.put_string("quota");
    bytes.extend([0, 3, 0]);
    bytes.put_string("custom_x");
    bytes.put_varint(3);
    bytes.put_string("'it\\'s'");
    for text in ["", ""] {
        bytes.put_string(text);
    }
    bytes.extend([2, 1]);
    bytes.put_string("SELECT 1");
    bytes
}

#[test]
fn a_query_is_read() {
    let bytes = query_bytes();
    let mut source = bytes.as_slice();
    let ClientPacket::Query(query) = ClientPacket::read(&mut source, 54_448, false).unwrap() else { panic!() };
    assert!(source.is_empty());
    assert_eq!((query.id.as_str(), query.text.as_str(), query.stage, query.compressed), ("id", "SELECT 1", 2, true));
    let setting = SentSetting { name: "custom_x".into(), value: "it's".into(), important: true };
    assert_eq!(query.settings, [setting]);
    assert!(!query.interserver_secret);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(kind in 0_u8..7, rest in proptest::collection::vec(any::<u8>(), 0..200), compressed: bool) {
        let bytes = [&[kind][..], &rest].concat();
        let _ = Hello::read(&mut bytes.as_slice());
        for revision in [54_448, SERVER_REVISION] {
            let _ = ClientPacket::read(&mut bytes.as_slice(), revision, compressed);
        }
    }

    #[test]
    fn a_changed_query_never_panics(at in 0_usize..200, value: u8) {
        let mut bytes = query_bytes();
        let at = at % bytes.len();
        bytes[at] = value;
        let _ = ClientPacket::read(&mut bytes.as_slice(), 54_448, false);
    }
}
