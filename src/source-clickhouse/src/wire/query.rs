//! The messages a client sends.

use super::error::{Result, WireError};
use super::frame::compress;
use super::protocol::{CLIENT_NAME, CLIENT_REVISION, SETTING_IMPORTANT, STAGE_COMPLETE, client};
use super::shape::Shape;

/// A setting in its text form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether a server that does not know it is to refuse the query; otherwise it leaves the setting out.
    pub(crate) important: bool,
}

impl Setting {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Setting { name: name.into(), value: value.into(), important: true }
    }

    /// For the one read that finds out what the server knows; everything else is important.
    pub(crate) fn if_known(name: impl Into<String>, value: impl Into<String>) -> Self {
        Setting { important: false, ..Setting::new(name, value) }
    }
}

/// One query and what its result must look like.
#[derive(Debug, Clone)]
pub(crate) struct Query<'a> {
    pub(crate) id: &'a str,
    pub(crate) text: &'a str,
    pub(crate) settings: &'a [Setting],
    pub(crate) shape: Shape,
    /// Hard cap of decoded bytes per block.
    pub(crate) block_cap_bytes: usize,
    /// Bound of a metadata read: rows and decoded bytes of the whole result.
    pub(crate) result_bound: Option<ResultBound>,
}

/// Limits of a result that is collected in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultBound {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// The version numbers of this program, for the server's logs only.
fn put_version(out: &mut Vec<u8>) {
    put_varint(out, 1);
    put_varint(out, 0);
    put_varint(out, CLIENT_REVISION);
}

pub(super) fn hello(database: &str, user: &str, password: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, client::HELLO);
    put_text(&mut out, CLIENT_NAME);
    put_version(&mut out);
    put_text(&mut out, database);
    put_text(&mut out, user);
    put_text(&mut out, password);
    out
}

/// The query packet and the empty block that ends the (absent) external tables.
pub(super) fn query(query: &Query<'_>) -> Result<Vec<u8>> {
    if query.settings.iter().any(|setting| setting.name.is_empty()) {
        return Err(WireError::Request("a setting without a name would end the list"));
    }
    let mut out = Vec::new();
    put_varint(&mut out, client::QUERY);
    put_text(&mut out, query.id);
    put_client_info(&mut out);
    for setting in query.settings {
        put_text(&mut out, &setting.name);
        put_varint(&mut out, if setting.important { SETTING_IMPORTANT } else { 0 });
        put_text(&mut out, &setting.value);
    }
    put_text(&mut out, "");
    put_text(&mut out, ""); // no inter-server secret
    put_varint(&mut out, STAGE_COMPLETE);
    put_varint(&mut out, 1); // compression of data in both directions
    put_text(&mut out, query.text);
    put_varint(&mut out, client::DATA);
    put_text(&mut out, "");
    out.extend_from_slice(&compress(&empty_block()));
    Ok(out)
}

/// Client info of an initial query (ClickHouse `ClientInfo::write` at revision 54448). It names no person and no host.
fn put_client_info(out: &mut Vec<u8>) {
    out.push(1); // an initial query
    put_text(out, ""); // initial user: the server fills in the authenticated one
    put_text(out, ""); // initial query id: the same as the query's
    put_text(out, "0.0.0.0:0");
    out.push(1); // interface: TCP
    put_text(out, ""); // OS user
    put_text(out, ""); // client host
    put_text(out, CLIENT_NAME);
    put_version(out);
    put_text(out, ""); // quota key
    put_varint(out, 0); // distributed depth
    put_varint(out, 0); // version patch
    out.push(0); // no trace context
}

/// A block without columns and rows.
fn empty_block() -> Vec<u8> {
    let mut out = vec![1, 0, 2];
    out.extend_from_slice(&(-1_i32).to_le_bytes());
    out.extend_from_slice(&[0, 0, 0]);
    out
}

#[cfg(test)]
mod tests {
    use super::{Query, Setting, hello, query};
    use crate::wire::error::WireError;
    use crate::wire::shape::Shape;

    fn asking<'a>(settings: &'a [Setting]) -> Query<'a> {
        let shape = Shape::new([("n", "Int8")]).expect("a type");
        Query { id: "q", text: "SELECT 1", settings, shape, block_cap_bytes: 1, result_bound: None }
    }

    #[test]
    fn a_hello_names_client_revision_database_user_and_password() {
        assert_eq!(hello("d", "u", "p"), b"\x00\x0Fnative-transfer\x01\x00\xB0\xA9\x03\x01d\x01u\x01p");
    }

    #[test]
    fn a_query_carries_its_settings_as_texts_with_flags() {
        let settings = [Setting::new("final", "0"), Setting::if_known("x", "1")];
        let message = query(&asking(&settings)).expect("a message");
        let expected =
            b"\x01\x01q\x01\x00\x00\x090.0.0.0:0\x01\x00\x00\x0Fnative-transfer\x01\x00\xB0\xA9\x03\x00\x00\x00\x00\
            \x05final\x01\x010\x01x\x00\x011\x00\x00\x02\x01\x08SELECT 1\x02\x00";
        assert_eq!(&message[..expected.len()], expected);
        // The empty block of the external tables: checksum, LZ4, and nothing after it.
        let frame = &message[expected.len()..];
        assert_eq!(
            (frame[16], u32::from_le_bytes([frame[17], frame[18], frame[19], frame[20]]) as usize),
            (0x82, frame.len() - 16)
        );
    }

    #[test]
    fn a_setting_without_a_name_would_cut_the_list_and_is_refused() {
        assert!(matches!(query(&asking(&[Setting::new("", "0")])), Err(WireError::Request(_))));
    }
}
