//! Login, TLS and packet sizes, seen by the crate mssql-tds.

use mssql_tds::core::EncryptionSetting;
use servers::sqlserver::Encryption;

use super::{DATABASE, PASSWORD, TestServer, USER, connect, number};

#[tokio::test]
async fn a_login_negotiates_what_the_client_asks() {
    let server = TestServer::start();
    // 16,383 is the most that an encrypted connection gets.
    for (asked, granted) in [(512, 512), (4096, 4096), (8000, 8000), (32_767, 16_383)] {
        let mut context = server.context();
        context.packet_size = asked;
        let client = connect(context).await.unwrap();
        assert_eq!(client.packet_size(), granted);
        assert!(client.is_encrypted());
        assert_eq!(client.database(), DATABASE);
        assert_eq!(client.language(), "us_english");
        assert_eq!(client.collation_code_page(), Some(1252));
        assert_eq!(client.server_version().map(|version| version.major), Some(16));
    }
    let queries = server.queries();
    assert!(queries.contains(&format!("\"text\":\"{USER}\"")), "{queries}");
    assert!(!queries.contains(PASSWORD));
}

#[tokio::test]
async fn the_certificate_is_checked_before_the_password_leaves_the_client() {
    let server = TestServer::start();
    let stranger = TestServer::start();
    let mut context = server.context();
    context.encryption_options.server_certificate = Some(stranger.running().tls().leaf_pem_path.clone());
    assert!(connect(context).await.is_err());
    assert_eq!(server.queries(), "", "no LOGIN7 came");
}

#[tokio::test]
async fn wrong_passwords_and_missing_databases_have_their_numbers() {
    let server = TestServer::start();
    let mut context = server.context();
    context.password = "wrong".to_owned();
    assert_eq!(number(&connect(context).await.err().unwrap()), 18456);
    let mut context = server.context();
    context.user_name = "nobody".to_owned();
    assert_eq!(number(&connect(context).await.err().unwrap()), 18456);
    let mut context = server.context();
    context.database = "missing".to_owned();
    assert_eq!(number(&connect(context).await.err().unwrap()), 4060);
}

#[tokio::test]
async fn a_server_that_encrypts_only_on_request_does_as_it_is_asked() {
    let server = TestServer::with_encryption(Encryption::Off);
    for (mode, encrypted) in [(EncryptionSetting::PreferOff, false), (EncryptionSetting::Required, true)] {
        let mut context = server.context();
        context.packet_size = 32_767;
        context.encryption_options.mode = mode;
        let client = connect(context).await.unwrap();
        assert_eq!(client.is_encrypted(), encrypted);
        assert_eq!(client.packet_size(), if encrypted { 16_383 } else { 32_767 });
    }
}

#[tokio::test]
async fn a_plaintext_server_is_refused_by_a_client_that_requires_tls() {
    let server = TestServer::with_encryption(Encryption::NotSupported);
    assert!(connect(server.context()).await.is_err());
    assert_eq!(server.queries(), "", "no LOGIN7 came");
    let mut context = server.context();
    context.encryption_options.mode = EncryptionSetting::PreferOff;
    assert!(!connect(context).await.unwrap().is_encrypted());
}
