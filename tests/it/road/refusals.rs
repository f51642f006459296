//! What is refused, with which code, and how little was done before: nothing at all for a bad manifest, no row for a bad
//! world.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use testkit::forward;
use testkit::spawn::{self, SqlServer};

use super::kit::{Ended, FULL_REFRESH, ONE_DAY, RAW, Road, VISIBLE, binary, manifest, source};

/// Listeners in place of both servers: whoever connects is seen.
struct Nobody {
    listeners: [TcpListener; 2],
    folder: tempfile::TempDir,
}

impl Nobody {
    fn new() -> Nobody {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let folder = tempfile::tempdir().expect("a folder");
        for (role, listener) in ["source", "target"].into_iter().zip(&listeners) {
            listener.set_nonblocking(true).expect("a socket");
            let port = listener.local_addr().expect("an address").port().to_string();
            let keys = folder.path().join("connections").join(role);
            std::fs::create_dir_all(&keys).expect("a folder");
            for (key, value) in [
                ("host", "127.0.0.1"),
                ("port", port.as_str()),
                ("user", "u"),
                ("password", "p"),
                ("database", "d"),
                ("transfer.dpone.io.role", role),
            ] {
                std::fs::write(keys.join(key), value).expect("a file");
            }
        }
        Nobody { listeners, folder }
    }

    fn run(&self, text: &str) -> Ended {
        let file = self.folder.path().join("manifest.yaml");
        std::fs::write(&file, text).expect("a manifest");
        let mut command = Command::new(binary());
        command
            .args(["run", "--output", "json", "-f"])
            .arg(file)
            .arg("--connections")
            .arg(self.folder.path().join("connections"));
        command.arg("--journal-root").arg(self.folder.path().join("journal"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("RUST_LOG");
        Ended::of(command.spawn().expect("the product starts"))
    }

    /// How many of the two saw a connection since the last question.
    fn connected(&self) -> usize {
        self.listeners.iter().filter(|listener| listener.accept().is_ok()).count()
    }
}

#[test]
fn bad_input_is_refused_before_any_connection() {
    let nobody = Nobody::new();
    let good = manifest("d", RAW, ONE_DAY);
    for (from, to, code) in [
        ("wire: {", "wire: {blok: 1, ", "native_transfer.unknown_key:source.options.native_transfer.wire.blok"),
        (
            "verification_backend: target_local",
            "verification_backend: guess",
            "mssql_native.invalid_verification_backend",
        ),
        ("max_total_encoded_bytes: 67108864, ", "", "mssql_native.capacity_limits_required"),
        ("max_rows: 40", "max_rows: true", "mssql_native.invalid_limit:max_rows"),
        (
            "import_backend: mssql_sqlclient\n            verification_backend: target_local",
            "import_backend: bcp\n            verification_backend: python_readback",
            "mssql_native.raw_snapshot_requires_target_local_verification",
        ),
        ("lookback: P1D", "lookback: P1M", "rolling_window_duration_invalid"),
        ("2013-07-05T00:00:00Z", "yesterday", "rolling_window_anchor_invalid"),
        ("import_backend: mssql_sqlclient", "import_backend: bcp", "mssql_native.composition_required"),
        (
            "import_backend: mssql_sqlclient\n",
            "import_backend: mssql_sqlclient\n            layout_version: 2\n",
            "mssql_native.composition_required",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let ended = nobody.run(&good.replace(from, to));
        assert_eq!((ended.code, ended.refusal().as_str()), (Some(1), code), "{from} -> {to}: {ended:?}");
        assert_eq!(nobody.connected(), 0, "{from} -> {to}");
        // A person reads it on standard error, a program in the document of the outcome.
        assert!(ended.stderr.starts_with(&format!("{code}: ")), "{ended:?}");
        let document = ended.json();
        assert_eq!((&document["exit_code"], &document["state"]), (&1.into(), &"Failed".into()), "{document}");
    }
    let defaults = manifest("d", VISIBLE, FULL_REFRESH)
        .replace("            import_backend: mssql_sqlclient\n            verification_backend: target_local\n", "");
    let ended = nobody.run(&defaults);
    assert_eq!((ended.code, ended.refusal().as_str()), (Some(1), "mssql_native.composition_required"));
    assert_eq!(nobody.connected(), 0);
    // The listeners can see: a good manifest does connect.
    let mut seen = 0;
    let child = std::thread::scope(|scope| {
        let run = scope.spawn(|| nobody.run(&good));
        while seen == 0 {
            // Accepted and dropped: the product sees its connection end.
            seen = nobody.connected();
            std::thread::yield_now();
        }
        run.join().expect("it ends")
    });
    assert_eq!((child.code, child.refusal().as_str()), (Some(1), "native_transfer.target_unreachable"), "{child:?}");
}

/// Runs and expects a refusal with `code` before any row was asked for.
fn refused(road: &Road, text: &str, run_id: &str, code: &str) {
    let ended = road.run(&road.manifest(text), run_id);
    assert_eq!((ended.code, ended.refusal().as_str()), (Some(1), code), "{ended:?}");
    // Every query of rows carries this id, whatever it selects.
    assert!(!source().was_asked(&["dpone-native-", &format!("`{}`", road.database)]), "{code}: rows were asked for");
}

/// The same server at an address that its certificate does not carry.
fn elsewhere(road: &Road, role: &str, port: u16) {
    let at = forward::start(([127, 0, 0, 2], 0).into(), vec![([127, 0, 0, 1], port).into()]).expect("an address");
    road.set(role, "host", b"127.0.0.2");
    road.set(role, "port", at.port().to_string().as_bytes());
}

#[test]
fn what_the_source_cannot_give_is_refused_before_row_io() {
    let mut road = Road::new("bad_source");
    road.flights("MergeTree", 5);
    let full = manifest("bad_source", VISIBLE, FULL_REFRESH);
    let raw = manifest("bad_source", RAW, FULL_REFRESH);
    refused(&road, &raw, "engine", "mssql_native.replacing_raw_snapshot_required");
    source().run("CREATE TABLE bad_source.r (id Int64) ENGINE = ReplacingMergeTree ORDER BY id");
    let of = |text: &str, table: &str| {
        text.replace(
            &format!("{{schema: {}, name: t}}", "bad_source"),
            &format!("{{schema: bad_source, name: {table}}}"),
        )
    };
    refused(&road, &of(&full, "r"), "engine-2", "mssql_native.plain_mergetree_atomic_required");
    let scope = of(&raw, "r").replace("single_server", "connected_replica");
    refused(&road, &scope, "scope", "mssql_native.replica_scope_unproven");
    for (table, columns, code) in [
        ("u", "id Int64, v Array(Int64)", "mssql_native.source_type_unsupported"),
        ("c", "id Int64, __dpone__x Int64", "native_transfer.reserved_column_name:__dpone__x"),
    ] {
        source().run(&format!("CREATE TABLE bad_source.{table} ({columns}) ENGINE = MergeTree ORDER BY id"));
        refused(&road, &of(&full, table), table, code);
    }
    source().run("CREATE DATABASE bad_source_lazy ENGINE = Memory");
    source().run("CREATE TABLE bad_source_lazy.t (id Int64) ENGINE = MergeTree ORDER BY id");
    let lazy = full.replace("schema: bad_source", "schema: bad_source_lazy");
    refused(&road, &lazy, "database", "mssql_native.plain_mergetree_atomic_required");

    let endpoint = "mssql_native.source_read_profile_unsupported";
    let good_ca = source().ca();
    let foreign_ca = std::fs::read(&road.target.server.ready().ca).expect("a CA file");
    road.set("source", "ca.crt", &foreign_ca);
    refused(&road, &full, "ca", endpoint);
    road.set("source", "ca.crt", &good_ca);
    elsewhere(&road, "source", source().port());
    refused(&road, &full, "host", endpoint);
    assert_eq!(road.target.custody(), Vec::<String>::new(), "nothing was ever claimed");
}

#[test]
fn what_the_target_does_not_offer_is_refused_before_row_io() {
    let mut road = Road::new("bad_target");
    road.flights("MergeTree", 5);
    let full = manifest("bad_target", VISIBLE, FULL_REFRESH);
    let mut step = 0;
    let mut case = |road: &mut Road, break_it: &str, mend: &str, code: &str| {
        step += 1;
        road.target.run(break_it);
        refused(road, &full, &format!("case-{step}"), code);
        road.target.run(mend);
    };
    case(
        &mut road,
        "REVOKE INSERT ON dpone.dpone_load_receipt FROM loader",
        "GRANT INSERT ON dpone.dpone_load_receipt TO loader",
        "native_transfer.target_grant_missing:INSERT ON [dpone].[dpone_load_receipt]",
    );
    case(
        &mut road,
        "REVOKE DELETE ON dbo.t FROM loader",
        "GRANT DELETE ON dbo.t TO loader",
        "native_transfer.target_grant_missing:DELETE ON [dbo].[t]",
    );
    case(
        &mut road,
        "REVOKE CONTROL ON SCHEMA::stage FROM loader",
        "GRANT CONTROL ON SCHEMA::stage TO loader",
        "native_transfer.target_grant_missing:CONTROL ON SCHEMA::[stage]",
    );
    // Without the right there is no capacity view; the right is what a person must give.
    case(
        &mut road,
        "USE master; REVOKE VIEW SERVER STATE FROM loader; USE sales",
        "USE master; GRANT VIEW SERVER STATE TO loader; USE sales",
        "native_transfer.target_grant_missing:VIEW SERVER STATE",
    );
    case(
        &mut road,
        "DISABLE TRIGGER dpone.trg_dpone_load_receipt_immutable ON dpone.dpone_load_receipt",
        "ENABLE TRIGGER dpone.trg_dpone_load_receipt_immutable ON dpone.dpone_load_receipt",
        "native_transfer.target_catalog_missing:trigger trg_dpone_load_receipt_immutable",
    );
    case(
        &mut road,
        "ALTER TABLE dpone.native_transfer_evidence ADD extra int NULL",
        "ALTER TABLE dpone.native_transfer_evidence DROP COLUMN extra",
        "native_transfer.target_catalog_missing:table native_transfer_evidence",
    );
    case(
        &mut road,
        "ALTER TABLE dbo.t ALTER COLUMN name nvarchar(10) NULL",
        "ALTER TABLE dbo.t ALTER COLUMN name nvarchar(max) NULL",
        "native_transfer.target_schema_mismatch:type_widen:name",
    );
    let missing = full.replace("{schema: dbo, name: t}", "{schema: dbo, name: nowhere}");
    refused(&road, &missing, "table", "native_transfer.target_table_missing");
    let large = full.replace("max_total_encoded_bytes: 67108864", "max_total_encoded_bytes: 1125899906842624");
    refused(&road, &large, "space", "mssql_native.target_volume_headroom_insufficient");
    let other = full.replace("staging_schema: stage", "staging_schema: stage\n        state_schema: elsewhere");
    refused(&road, &other, "catalog", "native_transfer.target_catalog_missing:table dpone_target_identity");

    let good_ca = std::fs::read(&road.target.server.ready().ca).expect("a CA file");
    road.set("target", "ca.crt", &source().ca());
    refused(&road, &full, "ca", "native_transfer.target_certificate_untrusted");
    road.set("target", "ca.crt", &good_ca);
    let port = road.target.server.ready().port;
    elsewhere(&road, "target", port);
    refused(&road, &full, "host", "native_transfer.target_certificate_untrusted");
    road.set("target", "host", b"localhost");
    road.set("target", "port", port.to_string().as_bytes());
    road.set("target", "password", b"wrong");
    refused(&road, &full, "login", "native_transfer.target_login_failed");
    let plain =
        SqlServer { encryption: "not-supported".into(), ..SqlServer::new(&road.path().join("plain"), "sa", "p", "x") };
    let plain = spawn::sqlserver(&plain).expect("a server without TLS");
    road.set("target", "port", plain.ready().port.to_string().as_bytes());
    refused(&road, &full, "plaintext", "native_transfer.target_encryption_refused");
    assert_eq!(road.target.custody(), Vec::<String>::new(), "nothing was ever claimed");
}

/// An authority that the system trusts is not one that the connection was given; without a given one the system counts.
#[test]
fn the_systems_authorities_do_not_add_to_a_given_one() {
    let mut road = Road::new("system_trust");
    road.flights("MergeTree", 5);
    let manifest = road.manifest(&manifest("system_trust", VISIBLE, FULL_REFRESH));
    let target_ca = road.target.server.ready().ca.clone();
    let both = road.path().join("system.pem");
    std::fs::write(&both, [source().ca(), std::fs::read(&target_ca).expect("a CA file")].concat()).expect("a file");
    let admit = |road: &Road, run_id: &str| {
        let mut command = road.command("admit", &manifest, run_id);
        command.env("SSL_CERT_FILE", &both).env_remove("SSL_CERT_DIR");
        Ended::of(command.spawn().expect("the product starts"))
    };
    let good = [("source", source().ca()), ("target", std::fs::read(&target_ca).expect("a CA file"))];
    for (role, code) in [
        ("source", "mssql_native.source_read_profile_unsupported"),
        ("target", "native_transfer.target_certificate_untrusted"),
    ] {
        for (end, ca) in &good {
            road.set(end, "ca.crt", ca);
        }
        // Each end is given the other one's authority, which did not sign it.
        let wrong = if role == "source" { &good[1].1 } else { &good[0].1 };
        road.set(role, "ca.crt", wrong);
        let ended = admit(&road, role);
        assert_eq!((ended.code, ended.refusal().as_str()), (Some(1), code), "{ended:?}");
    }
    for (end, _) in &good {
        std::fs::remove_file(road.connections().join(end).join("ca.crt")).expect("it was there");
    }
    let trusted = admit(&road, "trusted");
    assert_eq!(trusted.code, Some(0), "the system's trust is in effect: {trusted:?}");
}
