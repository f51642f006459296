//! Servers that the engine at hand cannot play: one that lacks a frozen setting, one that sends dictionaries.

use contract::code;

use super::script::{LIMITS, NOBODY, Scripted, data, exception, hello, numbers, read_all};
use crate::catalog::Catalog;
use crate::guards;
use crate::wire::{Connection, Shape, WireError};

/// An old server answers the first statement with UNKNOWN_SETTING: the admission fails and says what to do.
#[tokio::test]
async fn a21_a_server_without_a_frozen_setting_fails_the_admission() {
    let socket = Scripted::new(vec![hello(), exception(115, 1)]);
    let (mut connection, _) = Connection::open(socket, NOBODY, LIMITS).await.expect("a session");
    let mut catalog = Catalog::new(&mut connection, guards::of_catalog_read(600, &[]));
    let error = catalog.settings(&["apply_patch_parts"]).await.expect_err("an unknown setting");
    assert_eq!(error.code.as_str(), code::SOURCE_READ_PROFILE_UNSUPPORTED);
    assert!(error.message.contains("upgrade"), "{error}");
    assert!(catalog.settings(&["final"]).await.is_err(), "the session is not used again");
}

/// A column that turns into `LowCardinality` behind the admission is another column: nothing is guessed from its bytes,
/// whether they come first or after good blocks.
#[tokio::test]
async fn a20_a_dictionary_is_taken_for_no_plain_column() {
    for (expected, sent) in
        [("String", "LowCardinality(String)"), ("Nullable(String)", "LowCardinality(Nullable(String))")]
    {
        let shape = || Shape::new([("s", expected)]).expect("a type");
        // Version, flags, one key, one row: a dictionary as the format has it.
        let dictionary = [1_u64, 0x600, 1].iter().flat_map(|word| word.to_le_bytes()).chain([0]).collect::<Vec<u8>>();
        let packet = data(1, &[("s", sent, dictionary)]);
        let (rows, end) = read_all(Scripted::answering(&[packet]), shape()).await;
        assert!(rows == 0 && matches!(end, Err(WireError::ShapeChanged)), "{sent}: {end:?}");
    }
    let late = data(1, &[("n", "LowCardinality(Int64)", vec![0; 32])]);
    let (rows, end) = read_all(Scripted::answering(&[numbers(0, 3), late]), super::script::number_shape()).await;
    assert!(rows == 3 && matches!(end, Err(WireError::ShapeChanged)), "{end:?}");
}
