//! PRELOGIN and LOGIN7.

use super::super::login7::{self, feature};
use super::super::packet::{Header, PacketType};
use super::super::prelogin::{self, Encryption, EncryptionOption as Option_, Scope};
use super::super::{WireError, packet};
use super::{hex, utf16};

#[test]
fn a_header_is_checked_against_the_bounds_of_the_protocol() {
    let header = Header::parse([0x01, 0x01, 0x00, 0x5C, 0, 0, 1, 0]).unwrap();
    assert_eq!((header.kind, header.payload_bytes, header.ends_message()), (PacketType::SqlBatch, 84, true));
    assert!(matches!(Header::parse([0x02, 1, 0, 8, 0, 0, 1, 0]), Err(WireError::PacketType(2))));
    assert!(matches!(Header::parse([0x01, 1, 0, 7, 0, 0, 1, 0]), Err(WireError::PacketLength(7))));
    assert!(matches!(Header::parse([0x01, 1, 0x80, 1, 0, 0, 1, 0]), Err(WireError::PacketLength(32769))));
}

/// The client request of MS-TDS 4.1, without its packet header.
const PRELOGIN_EXAMPLE: &str = "00 00 1A 00 06 01 00 20 00 01 02 00 21 00 01 03 00 22 00 04 04 00 26 00 01 FF
     09 00 00 00 00 00 01 00 B8 0D 00 00 01";

#[test]
fn the_prelogin_of_the_specification_is_understood() {
    let client = prelogin::parse(&hex(PRELOGIN_EXAMPLE)).unwrap();
    assert_eq!(client.encryption, Option_::On);
    assert!(!client.asks_fed_auth);
}

#[test]
fn a_prelogin_answer_is_itself_a_prelogin() {
    for option in [Option_::Off, Option_::On, Option_::NotSupported, Option_::Required] {
        for asks_fed_auth in [false, true] {
            let answer = prelogin::response(option, asks_fed_auth);
            assert_eq!(prelogin::parse(&answer).unwrap().encryption, option);
            // The sixth entry of the option table: FEDAUTHREQUIRED or the terminator.
            assert_eq!(answer[25] == 0x06, asks_fed_auth, "the fed auth option is answered only when it is asked");
        }
    }
}

/// The table of MS-TDS 2.2.6.5 (client values down, server values across).
#[test]
fn encryption_is_negotiated_by_the_table() {
    for (client, server, answer, scope) in [
        (Option_::Off, Encryption::Off, Option_::Off, Scope::LoginOnly),
        (Option_::Off, Encryption::Required, Option_::Required, Scope::Whole),
        (Option_::Off, Encryption::NotSupported, Option_::NotSupported, Scope::Plain),
        (Option_::On, Encryption::Off, Option_::On, Scope::Whole),
        (Option_::On, Encryption::Required, Option_::On, Scope::Whole),
        (Option_::On, Encryption::NotSupported, Option_::NotSupported, Scope::Refused),
        (Option_::NotSupported, Encryption::Off, Option_::NotSupported, Scope::Plain),
        (Option_::NotSupported, Encryption::Required, Option_::Required, Scope::Refused),
        (Option_::NotSupported, Encryption::NotSupported, Option_::NotSupported, Scope::Plain),
    ] {
        assert_eq!(prelogin::negotiate(server, client), (answer, scope), "{client:?} {server:?}");
    }
}

/// A LOGIN7 with the given texts; `features` is the whole feature block or empty.
pub(super) fn login(version: u32, packet_bytes: u32, texts: [&str; 9], features: &[u8]) -> Vec<u8> {
    let [host, user, password, app, server, interface, language, database, _] = texts;
    let scrambled: Vec<u8> = utf16(password).iter().map(|byte| byte.rotate_left(4) ^ 0xA5).collect();
    let mut data = Vec::new();
    let mut table = Vec::new();
    let mut put = |bytes: &[u8], length: usize| {
        table.extend_from_slice(&u16::try_from(94 + data.len()).unwrap().to_le_bytes());
        table.extend_from_slice(&u16::try_from(length).unwrap().to_le_bytes());
        data.extend_from_slice(bytes);
    };
    put(&utf16(host), host.len());
    put(&utf16(user), user.len());
    put(&scrambled, utf16(password).len() / 2);
    put(&utf16(app), app.len());
    put(&utf16(server), server.len());
    put(&[0; 4], if features.is_empty() { 0 } else { 4 });
    put(&utf16(interface), interface.len());
    put(&utf16(language), language.len());
    put(&utf16(database), database.len());
    let extension_at = 94 + 2 * (host.len() + user.len() + app.len() + server.len()) + scrambled.len();
    table.extend_from_slice(&[0; 6 + 4 * 3 + 4]); // client id, SSPI, attached file, new password, long SSPI
    let features_at = u32::try_from(94 + data.len()).unwrap();
    data[extension_at - 94..extension_at - 90].copy_from_slice(&features_at.to_le_bytes());
    data.extend_from_slice(features);

    let mut message = Vec::new();
    message.extend_from_slice(&u32::try_from(94 + data.len()).unwrap().to_le_bytes());
    message.extend_from_slice(&version.to_le_bytes());
    message.extend_from_slice(&packet_bytes.to_le_bytes());
    message.extend_from_slice(&hex("00000007 39300000 00000000")); // client version, pid 12345, connection id
    message.extend_from_slice(&[0xE0, 0x03, 0x00, if features.is_empty() { 0 } else { 0x10 }]);
    message.extend_from_slice(&[0; 8]); // time zone, LCID
    message.extend_from_slice(&table);
    message.extend_from_slice(&data);
    message
}

const TEXTS: [&str; 9] = ["host", "sa", "Gehe1m_ü", "app", "server", "ODBC", "", "db", ""];

#[test]
fn a_login_is_read_with_its_password_and_features() {
    // UTF8_SUPPORT with no data, SESSIONRECOVERY with 4 bytes, terminator.
    let message = login(0x7400_0004, 8000, TEXTS, &hex("0A 00000000 01 04000000 00000000 FF"));
    let parsed = login7::parse(&message).unwrap();
    assert_eq!(parsed.user, "sa");
    assert_eq!(parsed.password, "Gehe1m_ü");
    assert_eq!((parsed.host_name.as_str(), parsed.app_name.as_str()), ("host", "app"));
    assert_eq!((parsed.client_interface.as_str(), parsed.database.as_str()), ("ODBC", "db"));
    assert_eq!(parsed.client_pid, 12345);
    assert_eq!(parsed.features, [feature::UTF8_SUPPORT, 0x01]);
    assert!(!format!("{parsed:?}").contains("Gehe1m"), "a password is never shown");
    for length in 0..message.len() {
        assert!(login7::parse(&message[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn versions_below_7_2_are_refused() {
    assert!(matches!(login7::parse(&login(0x7100_0001, 0, TEXTS, &[])), Err(WireError::Version(0x7100_0001))));
    assert!(login7::parse(&login(0x7209_0002, 0, TEXTS, &[])).is_ok());
}

#[test]
fn packet_sizes_are_kept_in_their_bounds() {
    let negotiated = |asked, encrypted| {
        login7::parse(&login(0x7400_0004, asked, TEXTS, &[])).unwrap().negotiated_packet_bytes(encrypted)
    };
    assert_eq!(negotiated(0, false), packet::DEFAULT_PACKET_BYTES);
    assert_eq!(negotiated(100, false), 512);
    assert_eq!(negotiated(8000, false), 8000);
    assert_eq!(negotiated(32768, false), 32767);
    assert_eq!(negotiated(32768, true), 16383);
}
