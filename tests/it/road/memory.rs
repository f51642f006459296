//! Memory of the process: within the bound of its limits, however much goes through (design.md 6).

use servers::sqlserver::control::{Breakpoint, Then, When};
use testkit::transfer::TARGET_COLUMNS;

use super::kit::{Ended, FULL_REFRESH, Road, VISIBLE, manifest, source};

const MAX_BYTES: u64 = 1 << 20;
const PARALLELISM: u64 = 2;
const MAX_PENDING: u64 = 2;
/// (C + 1) chunks and what the process takes beside them, with C = max(E, I) + max_pending.
const BOUND_BYTES: u64 = (PARALLELISM + MAX_PENDING + 1) * MAX_BYTES + (96 << 20);
const ROWS: u64 = 4_000;
/// Characters of a row's text, two bytes each. Long rows bring many bytes while the target digests few rows.
const TEXT_CHARACTERS: u64 = 8_000;

/// Largest resident set of a living process so far.
fn peak_resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("KiB") * 1024
}

/// What a peak breaks of a bound.
fn violation(peak_bytes: u64, bound_bytes: u64) -> Option<String> {
    (peak_bytes > bound_bytes).then(|| format!("{peak_bytes} bytes resident, at most {bound_bytes}"))
}

#[test]
fn resident_memory_stays_within_its_bound() {
    let mut road = Road::new("memory");
    source().run(
        "CREATE TABLE memory.t (id Int64, name Nullable(String), x Nullable(Float64), at DateTime64(6, 'UTC')) \
         ENGINE = MergeTree ORDER BY id",
    );
    source().run(&format!(
        "INSERT INTO memory.t SELECT number, leftPad(toString(number), {TEXT_CHARACTERS}, 'x'), number / 4, \
         toDateTime64('2013-07-04', 6, 'UTC') FROM numbers({ROWS})"
    ));
    road.target.create("t", TARGET_COLUMNS);
    let limits = format!(
        "max_bytes: {MAX_BYTES}, max_row_bytes: 65536, max_pending: {MAX_PENDING}, \
         encoding_parallelism: {PARALLELISM}, import_parallelism: {PARALLELISM}, max_total_encoded_bytes: 268435456, "
    );
    let text = manifest("memory", VISIBLE, FULL_REFRESH);
    let text = text.replace("max_rows: 40, max_total_encoded_bytes: 67108864, ", &limits);
    let path = road.manifest(&text);

    // At the very end of its work the process is held, so that the peak of all of it can be read.
    let last = Breakpoint::hold("native_transfer_custody", When::Before).of("native-transfer release");
    let id = road.target.control.set(last).expect("armed");
    let mut child = road.command("run", &path, "run-1").spawn().expect("the product starts");
    // More than one wait: many bytes go through, and the machine may have other work.
    if !(0..5).any(|_| road.target.control.wait(id).is_ok()) {
        child.kill().expect("a signal");
        panic!("the end did not come: {:?}", Ended::of(child));
    }
    let peak_bytes = peak_resident_bytes(child.id());
    road.target.control.release(id, Then::GoOn).expect("it is held");

    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let outcome = ended.json();
    assert_eq!(outcome["rows"].as_u64(), Some(ROWS), "{outcome}");
    // Held all at once beside what a process at rest takes, these bytes would break the bound.
    let encoded_bytes = outcome["encoded_bytes"].as_u64().expect("a number");
    assert!(encoded_bytes > ROWS * 2 * TEXT_CHARACTERS, "{outcome}");
    assert_eq!(violation(peak_bytes, BOUND_BYTES), None);
    // A bound that cannot hold, that of the chunks alone, is seen to be broken.
    assert!(violation(peak_bytes, BOUND_BYTES - (96 << 20)).is_some(), "{peak_bytes} bytes cannot be all");
}
