//! The order of admission: with several faults at once the first check of the contract speaks (contract.md 2.6).
//!
//! One admission is given every fault that the catalog can show. They are repaired in the order of the checks, one at a time,
//! and each time the next check refuses: so no two neighbours can change places unseen.

use std::collections::BTreeMap;

use contract::port::source::{FrozenWindow, ReplicaScope};
use contract::raw::facts::{ColumnFacts, Peer, ReplicaRow, SessionFacts, SourceFacts, TableFacts};
use contract::raw::freeze::{RawRequest, freeze};
use contract::raw::parts::PartRow;
use contract::raw::settings::FIXED;

const QUERY_SECONDS: u64 = 600;

fn request() -> RawRequest {
    RawRequest {
        database: "d".into(),
        table: "t".into(),
        scope: ReplicaScope::ConnectedReplica,
        window: Some(FrozenWindow { column: "at".into(), start_micros: 0, end_micros: 86_400_000_000 }),
        max_execution_time_seconds: QUERY_SECONDS,
        refuse_mutations: true,
    }
}

fn table() -> TableFacts {
    TableFacts {
        engine: "Distributed".into(),
        engine_full: "Distributed('c', 'd', 't')".into(),
        uuid: "00000000-0000-0000-0000-000000000000".into(),
        database_engine: "Ordinary".into(),
        partition_key: "k % 3".into(),
        sorting_key: "k".into(),
        primary_key: "k".into(),
    }
}

fn column(name: &str, type_text: &str) -> ColumnFacts {
    ColumnFacts { name: name.into(), type_text: type_text.into(), default_kind: String::new() }
}

/// Everything wrong at once.
fn faulty() -> SourceFacts {
    let mut defaulted = column("v", "Array(Int64)");
    defaulted.default_kind = "DEFAULT".into();
    SourceFacts {
        tables: Vec::new(),
        columns: vec![column("k", "Int64"), defaulted],
        settings: BTreeMap::new(),
        session: SessionFacts {
            principal: "reader".into(),
            roles: Vec::new(),
            server_revision: "54513".into(),
            server_name: "server".into(),
            server_timezone: "Asia/Tokyo".into(),
            session_timezone: "UTC".into(),
            peer: Peer { address: "127.0.0.1".into(), port: 9440, ipv6: None },
            peer_certificate_der: Vec::new(),
        },
        policies: Vec::new(),
        replicas: Vec::new(),
        pending_mutations: vec!["mutation_2.txt".into()],
        parts: vec![PartRow {
            name: "19700101_1_1_0".into(),
            partition_id: "19700101".into(),
            rows: 1,
            data_version: 1,
            level: 0,
            has_lightweight_delete: 0,
            hash_of_all_files: "0".repeat(32),
            hash_of_uncompressed_files: "1".repeat(32),
            uncompressed_hash_of_compressed_files: "1".repeat(32),
        }],
    }
}

fn settings(limit: u64) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> =
        FIXED.iter().map(|(name, value)| ((*name).to_owned(), value.text())).collect();
    settings.insert("max_execution_time".into(), limit.to_string());
    settings.insert("additional_table_filters".into(), "{}".into());
    settings.insert("additional_result_filter".into(), String::new());
    settings
}

type Repair = fn(&mut SourceFacts);

/// What refuses, with a word of its message, and the repair after which the next check does.
const CHECKS: [(&str, &str, Repair); 15] = [
    ("mssql_native.replacing_raw_snapshot_required", "does not exist", |facts| facts.tables.push(table())),
    ("mssql_native.replacing_raw_snapshot_required", "Atomic", |facts| {
        facts.tables[0].database_engine = "Atomic".into()
    }),
    ("mssql_native.source_uuid_required", "UUID", |facts| {
        facts.tables[0].uuid = "6f1b6c1e-0000-4000-8000-000000000001".into();
    }),
    ("mssql_native.ordinary_columns_required", "DEFAULT", |facts| {
        facts.columns[1].default_kind.clear();
        facts.columns.push(column("k", "Int64"));
    }),
    ("mssql_native.duplicate_columns", "twice", |facts| facts.columns[2].name = "_part".into()),
    ("mssql_native.source_provenance_incomplete", "_part", |facts| facts.columns[2].name = "at".into()),
    ("mssql_native.replacing_raw_snapshot_required", "", |facts| {
        facts.tables[0].engine = "ReplicatedReplacingMergeTree".into();
        facts.tables[0].engine_full = "ReplicatedReplacingMergeTree('/p', 'r') ORDER BY k".into();
    }),
    ("mssql_native.source_type_unsupported", "", |facts| facts.columns[1].type_text = "String".into()),
    ("mssql_native.source_read_profile_unsupported", "settings", |facts| facts.settings = settings(QUERY_SECONDS)),
    ("mssql_native.replica_scope_unproven", "system.replicas", |facts| {
        facts.replicas.push(ReplicaRow { replica_name: "r".into(), zookeeper_path: "/p".into() });
    }),
    ("mssql_native.source_read_profile_unsupported", "certificate", |facts| {
        facts.session.peer_certificate_der = b"certificate".to_vec();
    }),
    ("mssql_native.source_provenance_incomplete", "PARTITION BY", |facts| {
        facts.tables[0].partition_key = "toYYYYMMDD(at)".into();
        facts.columns[2].type_text = "DateTime".into();
    }),
    ("mssql_native.source_read_profile_unsupported", "UTC", |facts| facts.session.server_timezone = "UTC".into()),
    ("mssql_native.source_read_profile_unsupported", "mutations", |facts| facts.pending_mutations.clear()),
    ("mssql_native.source_provenance_incomplete", "checksums", |facts| {
        facts.parts[0].hash_of_all_files = "1".repeat(32);
    }),
];

#[test]
fn the_first_fault_in_contract_order_is_the_one_that_is_named() {
    let mut facts = faulty();
    for (number, (code, word, repair)) in CHECKS.iter().enumerate() {
        let refusal = freeze(&request(), &facts).err().unwrap_or_else(|| panic!("check {number} ({code}) refuses"));
        assert_eq!(refusal.code.as_str(), *code, "check {number}: {}", refusal.message);
        assert!(refusal.message.contains(word), "check {number}: {}", refusal.message);
        repair(&mut facts);
    }
    assert!(freeze(&request(), &facts).is_ok(), "all faults are repaired");
}

/// Each fault alone refuses with the same code as among the others.
#[test]
fn each_fault_alone_is_refused() {
    let repaired_but = |kept: usize| {
        let mut facts = faulty();
        for (number, (_, _, repair)) in CHECKS.iter().enumerate() {
            if number != kept {
                repair(&mut facts);
            }
        }
        facts
    };
    // The faults of the relation and of the columns stand in each other's rows, so they cannot be alone.
    for (kept, (code, ..)) in CHECKS.iter().enumerate().skip(7) {
        let refusal = freeze(&request(), &repaired_but(kept)).err().unwrap_or_else(|| panic!("{code} refuses"));
        assert_eq!(refusal.code.as_str(), *code, "check {kept}: {}", refusal.message);
    }
}
