//! Secrets and rows are in no output, whatever is logged; and the scanner that says so finds what is planted.

use std::path::Path;

use super::kit::{FULL_REFRESH, Road, SOURCE_PASSWORD, TARGET_PASSWORD, VISIBLE, manifest, source};

/// A value of a row, plain and in the bytes of the wire.
const MARKER: &str = "planted-row-value-77aa";

/// Where one of `secrets` stands in `text`: as UTF-8, as UTF-16LE, or as hex of either.
fn leaks(what: &str, text: &[u8], secrets: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for secret in secrets {
        let utf16: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (form, bytes) in [("text", secret.as_bytes().to_vec()), ("utf-16", utf16)] {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let lower = text.to_ascii_lowercase();
            if contains(text, &bytes) || contains(&lower, hex.as_bytes()) {
                found.push(format!("{what}: {form} of {}", &secret[..7]));
            }
        }
    }
    found
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Scans every file below `folder`.
fn leaks_of_folder(folder: &Path, secrets: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(leaks_of_folder(&path, secrets));
        } else {
            found.extend(leaks(&path.to_string_lossy(), &std::fs::read(&path).expect("a file"), secrets));
        }
    }
    found
}

#[test]
fn no_secret_and_no_row_value_is_ever_shown_or_kept() {
    let secrets = [SOURCE_PASSWORD, TARGET_PASSWORD, MARKER];
    let mut road = Road::new("secrets");
    road.flights("MergeTree", 10);
    source().run(&format!("INSERT INTO secrets.t VALUES (77, '{MARKER}', 1, '2013-07-04 00:00:00')"));
    let good = manifest("secrets", VISIBLE, FULL_REFRESH);
    let trace = |road: &Road, text: &str, run_id: &str| {
        let mut command = road.command("run", &road.manifest(text), run_id);
        command.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1");
        super::kit::Ended::of(command.spawn().expect("the product starts"))
    };
    let succeeded = trace(&road, &good, "run-1");
    assert_eq!(succeeded.code, Some(0), "{}", succeeded.stdout);
    // A server's own error text may quote the row; the failure is provoked in the middle of the road.
    road.target.run("ALTER TABLE dbo.t WITH NOCHECK ADD CONSTRAINT no_marker CHECK (id <> 77)");
    let failed = trace(&road, &good, "run-2");
    assert_eq!(failed.code, Some(3), "{}", failed.stdout);
    road.set("target", "password", b"wrong-password-123");
    let refused = trace(&road, &good, "run-3");
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    let mut found = Vec::new();
    for (name, ended) in [("succeeded", &succeeded), ("failed", &failed), ("refused", &refused)] {
        found.extend(leaks(&format!("{name} stdout"), ended.stdout.as_bytes(), &secrets));
        found.extend(leaks(&format!("{name} stderr"), ended.stderr.as_bytes(), &secrets));
        found.extend(leaks(name, ended.stderr.as_bytes(), &["wrong-password-123"]));
    }
    let inspected = road.inspect("run-1");
    found.extend(leaks("inspect", inspected.stdout.as_bytes(), &secrets));
    found.extend(leaks_of_folder(&road.journal(), &secrets));
    let evidence = road.target.rows("SELECT document FROM dpone.native_transfer_evidence");
    assert_eq!(evidence.len(), 1);
    found.extend(leaks("evidence", evidence.join("\n").as_bytes(), &secrets));
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(road.target.value("SELECT name FROM dbo.t WHERE id = 77"), MARKER, "the marker did travel");

    // The scanner sees what it must see.
    for planted in [MARKER.to_owned(), format!("{:02x?}", MARKER.as_bytes()).replace(", ", "")] {
        std::fs::write(road.journal().join("planted"), planted).expect("a file");
        assert_eq!(leaks_of_folder(&road.journal(), &secrets).len(), 1);
    }
    let wide: Vec<u8> = SOURCE_PASSWORD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(leaks("x", &wide, &secrets), ["x: utf-16 of planted"]);
}
