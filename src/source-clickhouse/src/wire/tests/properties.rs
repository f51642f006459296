//! What holds for every input: the targets of `make torture`. Each finds the defects planted for it in `tests/planted`.
//!
//! `PROPTEST_CASES` is the number of cases of a round; `NT_FUZZ_SECONDS` asks for rounds until that time is over, and
//! `NT_FUZZ_SEED` repeats them.

use std::fmt::Debug;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use contract::block::Block;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestRng, TestRunner};

use super::memory::most_held;
use super::model::*;
use super::script::*;
use crate::wire::client::Connection;
use crate::wire::error::Result;
use crate::wire::frame::{METHOD_LZ4, METHOD_NONE, METHOD_ZSTD, checksum_of, framed};
use crate::wire::protocol::server;
use crate::wire::query::{Query, put_varint};
use crate::wire::shape::Shape;

/// Cap of decoded bytes of a block: more than any answer of these tests, far less than a number that was tampered with.
const CAP_BYTES: usize = 64 << 10;
/// What the frames of a block may decompress to: the cap and the reader's allowance for its header.
const FRAMES_BYTES: usize = CAP_BYTES + (1 << 20);
/// Two frame buffers that grow by doubling hold three times their size for a moment; columns and the read buffer take
/// less than two more.
const MOST_HELD_BYTES: usize = 8 * FRAMES_BYTES;
/// No case takes a hundredth of it.
const CASE_LIMIT: Duration = Duration::from_secs(20);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs one round of cases, or as many as `NT_FUZZ_SECONDS` has room for.
fn check<S: Strategy<Value: Debug>>(target: &str, strategy: S, property: impl Fn(S::Value) -> TestCaseResult) {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock").as_nanos() as u64;
    let seed = number("NT_FUZZ_SEED").unwrap_or_else(now);
    let until = Instant::now() + Duration::from_secs(number("NT_FUZZ_SECONDS").unwrap_or(0));
    println!("{target}: NT_FUZZ_SEED={seed}");
    let mut cases = 0;
    for round in 0_u64.. {
        let bytes = [seed, round, 0, 0].map(u64::to_le_bytes).concat();
        let config = ProptestConfig {
            failure_persistence: None,
            // A case that takes gigabytes is slow to make smaller.
            max_shrink_time: 5000,
            ..ProptestConfig::default()
        };
        cases += u64::from(config.cases);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        if let Err(error) = TestRunner::new_with_rng(config, rng).run(&strategy, |case| in_time(|| property(case))) {
            panic!("{target}: NT_FUZZ_SEED={seed} round {round}: {error}");
        }
        if Instant::now() >= until {
            break;
        }
    }
    println!("{target}: {cases} cases");
}

/// Ends the process if `work` does not end: nothing else can stop a loop.
fn in_time<T>(work: impl FnOnce() -> T) -> T {
    let (done, waits) = channel::<()>();
    let watch = std::thread::spawn(move || {
        if waits.recv_timeout(CASE_LIMIT) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a case does not end");
            std::process::abort();
        }
    });
    let result = work();
    drop(done);
    watch.join().expect("the watch");
    result
}

async fn blocks_of(socket: Scripted, shape: Shape) -> Result<Vec<Block>> {
    let (mut connection, _) = Connection::open(socket, NOBODY, LIMITS).await?;
    let query = Query { id: "q", text: "SELECT", settings: &[], shape, block_cap_bytes: CAP_BYTES, result_bound: None };
    connection.start(query, tokio::time::Instant::now() + LIMITS.silence).await?;
    let mut blocks = Vec::new();
    while let Some(block) = connection.next_block().await? {
        blocks.push(block);
    }
    Ok(blocks)
}

/// Reads an answer to its end. Whatever it is: no panic, bounded memory, and columns of as many values as rows.
fn read(socket: Scripted, shape: Shape) -> std::result::Result<Option<Vec<Block>>, TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (blocks, held) = most_held(|| runtime.block_on(blocks_of(socket, shape)));
    prop_assert!(held <= MOST_HELD_BYTES, "{} bytes were set aside", held);
    for block in blocks.iter().flatten() {
        prop_assert!(lengths(block).iter().all(|length| *length == block.rows), "columns of other lengths");
    }
    Ok(blocks.ok())
}

/// Numbers that lengths and counts are replaced with.
const NUMBERS: [u64; 13] =
    [0, 1, 2, 9, 0x7f, 0x80, 0x100, 0xffff, 1 << 20, 1 << 24, 1 << 31, u32::MAX as u64, u64::MAX];

/// One change of some bytes.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Delete(Index, usize),
    /// A LEB128 number instead of one byte.
    Number(Index, u64),
    /// The last byte of a LEB128 number goes on for so many empty bytes and ends with this one.
    Widen(Index, usize, u8),
    /// A little-endian number of four bytes instead of four bytes.
    Word(Index, u64),
    /// The sizes of a frame.
    Size(bool, u64),
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let numbers = || prop_oneof![3 => proptest::sample::select(NUMBERS.to_vec()), 1 => any::<u64>()];
    prop_oneof![
        (at(), 1_u8..).prop_map(|(at, mask)| Mutation::Flip(at, mask)),
        at().prop_map(Mutation::Cut),
        (at(), proptest::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (at(), 1_usize..40).prop_map(|(at, count)| Mutation::Delete(at, count)),
        (at(), numbers()).prop_map(|(at, number)| Mutation::Number(at, number)),
        (at(), 0_usize..10, 0_u8..4).prop_map(|(at, empty, end)| Mutation::Widen(at, empty, end)),
        (at(), numbers()).prop_map(|(at, number)| Mutation::Word(at, number)),
        (any::<bool>(), prop_oneof![numbers(), 1_u64..600]).prop_map(|(packed, size)| Mutation::Size(packed, size)),
    ]
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        let replace = |bytes: &mut Vec<u8>, start: usize, count: usize, by: &[u8]| {
            let start = start.min(length);
            drop(bytes.splice(start..(start + count).min(length), by.iter().copied()));
        };
        match self {
            Mutation::Flip(at, mask) => bytes[at.index(length)] ^= mask,
            Mutation::Cut(at) => bytes.truncate(at.index(length)),
            Mutation::Insert(at, more) => replace(bytes, at.index(length + 1), 0, more),
            Mutation::Delete(at, count) => replace(bytes, at.index(length), *count, &[]),
            Mutation::Number(at, number) => {
                let mut varint = Vec::new();
                put_varint(&mut varint, *number);
                replace(bytes, at.index(length), 1, &varint);
            }
            Mutation::Widen(at, empty, end) => {
                let at = at.index(length);
                let wide = [&[bytes[at] | 0x80][..], &vec![0x80; *empty], &[*end]].concat();
                replace(bytes, at, 1, &wide);
            }
            Mutation::Word(at, number) => replace(bytes, at.index(length), 4, &(*number as u32).to_le_bytes()),
            Mutation::Size(packed, size) => {
                replace(bytes, if *packed { 17 } else { 21 }, 4, &(*size as u32).to_le_bytes());
            }
        }
    }
}

#[test]
fn noise_is_refused_within_bounds() {
    let noise = proptest::collection::vec(any::<u8>(), 0..400);
    let sizes = || prop_oneof![any::<u32>(), 0..1_u32 << 12];
    let head = (0_usize..7, proptest::sample::select(vec![METHOD_LZ4, METHOD_NONE, METHOD_ZSTD]), sizes());
    check("noise", (noise, head, answers(), 1_usize..50), |(noise, (head, method, size), answer, piece)| {
        let plain_size = if method == METHOD_NONE { noise.len() as u32 } else { size };
        let bytes = match head {
            0 => noise,
            1 => [&[server::DATA as u8, 0][..], &noise].concat(),
            2 => [&[server::DATA as u8, 0][..], &framed(method, plain_size, &noise)].concat(),
            3 => [&[server::DATA as u8, 0][..], &framed(METHOD_NONE, noise.len() as u32, &noise)].concat(),
            4 => [&[server::EXCEPTION as u8][..], &noise].concat(),
            5 => [&exception(1, 1)[..18], &noise].concat(),
            _ => [&[server::PROFILE_INFO as u8][..], &noise].concat(),
        };
        let blocks = read(Scripted::answering(&[bytes]).in_pieces_of(piece), answer.shape())?;
        prop_assert!(blocks.is_none_or(|blocks| blocks.is_empty()), "rows came out of noise");
        Ok(())
    });
}

#[test]
fn a_greeting_is_read_within_bounds() {
    check("greeting", (mutations(), answers()), |(mutation, answer)| {
        let mut greeting = hello();
        mutation.apply(&mut greeting);
        read(Scripted::new(vec![greeting, Answer::packets(&[], 0)]), answer.shape())?;
        Ok(())
    });
}

#[test]
fn a_damaged_answer_is_never_another_answer() {
    let strategy = (answers(), mutations(), any::<(Index, u8)>(), 1_usize..400);
    check("damage", strategy, |(answer, mutation, (block, times), piece)| {
        let mut frames: Vec<_> = answer.blocks.iter().map(|block| answer.frames(&answer.plain(block))).collect();
        let honest = Answer::packets(&frames, answer.rows());
        let block = block.index(frames.len());
        // A whole block is lost or doubled, or bytes change.
        match times {
            0..32 => drop(frames.remove(block)),
            32..64 => frames.insert(block, frames[block].clone()),
            _ => {}
        }
        let mut damaged = Answer::packets(&frames, answer.rows());
        if times >= 64 {
            mutation.apply(&mut damaged);
        }
        let same = damaged == honest;
        let blocks = read(Scripted::answering(&[damaged]).in_pieces_of(piece), answer.shape())?;
        prop_assert!(blocks.is_some() || !same, "an honest answer is refused");
        if let Some(blocks) = blocks {
            let blocks: Vec<_> = blocks.iter().map(|block| encoded(block, &answer.kinds)).collect();
            prop_assert_eq!(blocks, answer.blocks);
        }
        Ok(())
    });
}

#[test]
fn a_changed_frame_with_a_right_checksum_is_what_it_says() {
    let strategy = (answers(), mutations(), any::<(Index, Index, bool)>());
    check("frames", strategy, |(answer, mutation, (block, frame, resized))| {
        let mut frames: Vec<_> = answer.blocks.iter().map(|block| answer.frames(&answer.plain(block))).collect();
        let block = block.index(frames.len());
        let at = frame.index(frames[block].len());
        let frame = &mut frames[block][at];
        mutation.apply(frame);
        if frame.len() < 25 {
            return Ok(());
        }
        if resized {
            let size = (frame.len() as u32 - 16).to_le_bytes();
            frame[17..21].copy_from_slice(&size);
        }
        let checksum = checksum_of(&frame[16..]);
        frame[..16].copy_from_slice(&checksum);
        let plain: Option<Vec<Vec<u8>>> = frames
            .iter()
            .map(|frames| Some(frames.iter().map(|f| unframed(f)).collect::<Option<Vec<_>>>()?.concat()))
            .collect();
        agree(&answer, &frames, plain)
    });
}

/// The plain bytes of a whole frame, if it is one.
fn unframed(frame: &[u8]) -> Option<Vec<u8>> {
    let word = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]) as usize;
    let (size, payload) = (word(21), &frame[25..]);
    if word(17) != frame.len() - 16 || size == 0 || size > FRAMES_BYTES {
        return None;
    }
    let plain = match frame[16] {
        METHOD_NONE => payload.to_vec(),
        METHOD_LZ4 => lz4_flex::block::decompress(payload, size).ok()?,
        METHOD_ZSTD => zstd::bulk::decompress(payload, size).ok()?,
        _ => return None,
    };
    (plain.len() == size).then_some(plain)
}

#[test]
fn a_changed_block_with_right_checksums_is_what_it_says() {
    check("blocks", (answers(), mutations(), any::<Index>()), |(answer, mutation, at)| {
        let mut plain: Vec<_> = answer.blocks.iter().map(|block| answer.plain(block)).collect();
        let at = at.index(plain.len());
        mutation.apply(&mut plain[at]);
        if plain[at].is_empty() {
            return Ok(());
        }
        let frames: Vec<_> = plain.iter().map(|plain| answer.frames(plain)).collect();
        agree(&answer, &frames, Some(plain))
    });
}

/// The reader and the model make the same of these frames and their plain bytes.
fn agree(answer: &Answer, frames: &[Vec<Vec<u8>>], plain: Option<Vec<Vec<u8>>>) -> TestCaseResult {
    let expected: Option<Vec<Plain>> = plain.and_then(|plain| {
        let blocks: Option<Vec<Option<Plain>>> = plain.iter().map(|plain| decode(plain, &answer.kinds)).collect();
        Some(blocks?.into_iter().flatten().filter(|(rows, _)| *rows > 0).collect())
    });
    let rows = expected.as_ref().map_or_else(|| answer.rows(), |blocks| blocks.iter().map(|(rows, _)| rows).sum());
    let blocks = read(Scripted::answering(&[Answer::packets(frames, rows)]), answer.shape())?;
    let blocks: Option<Vec<Plain>> =
        blocks.map(|blocks| blocks.iter().map(|block| encoded(block, &answer.kinds)).collect());
    prop_assert_eq!(blocks, expected);
    Ok(())
}
