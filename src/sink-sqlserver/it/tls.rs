//! Who the server must prove to be, before any byte of a login leaves.

use contract::port::target::Target as _;
use servers::sqlserver::Encryption;
use sink_sqlserver::{ConnectOptions, SqlServerTarget};
use testkit::forward;

use super::kit::{Kit, assert_refused, options, request, server};

async fn refused(options: ConnectOptions, code: &str) {
    let target = SqlServerTarget::new(options, "dpone");
    assert_refused(target.observe(&request()).await, code);
    let probe = target.probe_receipt(&request(), &super::kit::operation("run"), 1000).await;
    assert_refused(probe, code);
}

/// The certificate changes between our check and the session: the pin is compared before LOGIN, so no password leaves.
#[tokio::test(flavor = "multi_thread")]
async fn the_pinned_certificate_is_compared_before_the_login() {
    let honest = Kit::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("other");
    let other = server(&data, Encryption::Required, None);
    let logins = || std::fs::read_to_string(data.with_extension("log")).expect("a log").matches("login").count();
    let both = vec![honest.server.addr(), other.addr()];
    let listen = forward::start(([127, 0, 0, 1], 0).into(), both).expect("an address");
    let swapped = ConnectOptions { port: listen.port(), ..options(&honest.server) };
    let outcome = SqlServerTarget::new(swapped, "dpone").observe(&request()).await;
    assert_refused(outcome, "native_transfer.target_unreachable");
    assert_eq!(logins(), 0, "no LOGIN7 may reach a server whose certificate is not the one that was checked");
    // The other server does log what it is asked.
    super::kit::dba(&other).await;
    assert_eq!(logins(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_prove_itself_is_refused() {
    let kit = Kit::start().await;
    let good = options(&kit.server);
    let before = kit.log().matches("\"login\"").count();
    let folder = tempfile::tempdir().expect("a folder");
    let other = server(&folder.path().join("other"), Encryption::Required, None);
    refused(
        ConnectOptions { ca_pem: options(&other).ca_pem, ..good.clone() },
        "native_transfer.target_certificate_untrusted",
    )
    .await;
    refused(ConnectOptions { ca_pem: None, ..good.clone() }, "native_transfer.target_certificate_untrusted").await;
    refused(
        ConnectOptions { ca_pem: Some(b"no certificate".to_vec()), ..good.clone() },
        "native_transfer.target_ca_invalid",
    )
    .await;
    let elsewhere = forward::start(([127, 0, 0, 2], 0).into(), vec![kit.server.addr()]).expect("an address");
    refused(
        ConnectOptions { host: "127.0.0.2".into(), port: elsewhere.port(), ..good.clone() },
        "native_transfer.target_certificate_untrusted",
    )
    .await;
    let plain = server(&folder.path().join("plain"), Encryption::NotSupported, None);
    refused(ConnectOptions { port: plain.addr().port(), ..good }, "native_transfer.target_encryption_refused").await;
    assert_eq!(kit.log().matches("\"login\"").count(), before, "nobody logged in");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_the_certificate_is_as_good_as_a_name() {
    let kit = Kit::start().await;
    let by_address = ConnectOptions { host: "127.0.0.1".into(), ..options(&kit.server) };
    let target = SqlServerTarget::new(by_address, "dpone");
    assert!(target.observe(&request()).await.expect("an observation").table.is_some());
}
