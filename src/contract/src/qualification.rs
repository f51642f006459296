//! Source qualification: whether several reads of an unchanged source gave the same rows, and how long they took
//! (spec raw-snapshot-design, "P3 source qualification").
//!
//! A trial is one read to its proven end with nothing published. It counts only when the source showed the same state
//! before and after it, and the same state and authority as the first trial that counts. Equal observations at both ends
//! do not prove that nothing changed in between; they are called agreement, never unchanged.

use std::time::Duration;

use crate::code;
use crate::digest::Digest;
use crate::error::Code;

/// Fewest trials that can qualify a source, the warm-up not counted.
pub const TRIALS_MIN: u32 = 3;

/// Most trials of one qualification.
pub const TRIALS_MAX: u32 = 100;

/// What one finished read showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Rows read, as many as were encoded.
    pub rows: u64,
    /// Native bytes encoded.
    pub encoded_bytes: u64,
    /// Multiset digest of the rows and their count; independent of chunk borders and order.
    pub workload: Digest,
    /// Digest of the raw profile: relation, schema, settings, endpoint, replica, user, policies, query.
    pub profile: Digest,
    /// Digest of the parts before the query.
    pub before: Digest,
    /// Digest of the parts after its end.
    pub after: Digest,
    /// From the query's first byte to the proven end of the stream.
    pub wall: Duration,
}

/// Why a trial does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusion {
    /// The parts after the read are not those before it.
    DriftDuringTrial,
    /// The parts before the read are not those of the first trial that counts.
    DriftBetweenTrials,
    /// Schema, user, roles, policies, settings, endpoint or replica are not those of the first trial that counts.
    AuthorityChanged,
    /// The read itself found drift of its authority and failed with this code.
    Failed(Code),
}

impl Exclusion {
    /// The word in documents.
    pub fn text(&self) -> &str {
        match self {
            Exclusion::DriftDuringTrial => "drift_during_trial",
            Exclusion::DriftBetweenTrials => "drift_between_trials",
            Exclusion::AuthorityChanged => "authority_changed",
            Exclusion::Failed(code) => code.as_str(),
        }
    }
}

/// What the trials together say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Enough trials count and their workload digests are equal.
    Qualified,
    /// Drift left fewer than [`TRIALS_MIN`] trials.
    TooFewTrials,
    /// Two trials that count gave different rows: the same state was read twice with two results.
    DigestsDiffer,
}

impl Verdict {
    /// The word in documents.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Qualified => "qualified",
            Verdict::TooFewTrials => "too_few_trials",
            Verdict::DigestsDiffer => "digests_differ",
        }
    }
}

/// Median and median absolute deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle value; of an even count the mean of the two in the middle.
    pub median: f64,
    /// The median distance from the median.
    pub deviation: f64,
}

impl Spread {
    /// Of some values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = median(values.to_vec())?;
        let deviation = self::median(values.iter().map(|value| (value - median).abs()).collect())?;
        Some(Spread { median, deviation })
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((values.get(middle.checked_sub(1)?)? + upper) / 2.0)
}

/// The judgement over all trials in their order, the warm-up not among them.
#[derive(Debug, Clone, PartialEq)]
pub struct Qualification {
    /// Why each trial does not count; `None` for those that do.
    pub exclusions: Vec<Option<Exclusion>>,
    /// The verdict.
    pub verdict: Verdict,
    /// Seconds of the trials that count.
    pub wall_seconds: Option<Spread>,
    /// Rows per second of the trials that count.
    pub rows_per_second: Option<Spread>,
}

/// Judges trials: readings, or the code with which a read failed for drift.
pub fn judge(trials: &[Result<Reading, Code>]) -> Qualification {
    let mut first: Option<&Reading> = None;
    let mut counting = Vec::new();
    let mut exclusions = Vec::with_capacity(trials.len());
    for trial in trials {
        let exclusion = match trial {
            Err(code) => Some(Exclusion::Failed(code.clone())),
            Ok(reading) => exclusion(reading, first),
        };
        if let (Ok(reading), None) = (trial, &exclusion) {
            first.get_or_insert(reading);
            counting.push(reading);
        }
        exclusions.push(exclusion);
    }
    let same = |reading: &&Reading| first.is_some_and(|first| reading.workload == first.workload);
    let verdict = match counting.iter().all(same) {
        false => Verdict::DigestsDiffer,
        true if counting.len() < TRIALS_MIN as usize => Verdict::TooFewTrials,
        true => Verdict::Qualified,
    };
    let seconds: Vec<f64> = counting.iter().map(|reading| reading.wall.as_secs_f64()).collect();
    let rates: Vec<f64> = counting
        .iter()
        .filter(|reading| !reading.wall.is_zero())
        .map(|reading| reading.rows as f64 / reading.wall.as_secs_f64())
        .collect();
    Qualification { exclusions, verdict, wall_seconds: Spread::of(&seconds), rows_per_second: Spread::of(&rates) }
}

fn exclusion(reading: &Reading, first: Option<&Reading>) -> Option<Exclusion> {
    if reading.before != reading.after {
        return Some(Exclusion::DriftDuringTrial);
    }
    let first = first?;
    if reading.profile != first.profile {
        return Some(Exclusion::AuthorityChanged);
    }
    (reading.before != first.before).then_some(Exclusion::DriftBetweenTrials)
}

/// Whether a failed read is a trial that drift excludes, and not the end of the qualification.
pub fn is_drift(code: &Code) -> bool {
    [code::SOURCE_SNAPSHOT_PROFILE_CHANGED, code::SOURCE_SCHEMA_CHANGED, code::SOURCE_IDENTITY_CHANGED]
        .contains(&code.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(workload: &[u8], profile: &[u8], before: &[u8], after: &[u8], seconds: u64) -> Result<Reading, Code> {
        Ok(Reading {
            rows: 100,
            encoded_bytes: 1000,
            workload: Digest::of(workload),
            profile: Digest::of(profile),
            before: Digest::of(before),
            after: Digest::of(after),
            wall: Duration::from_secs(seconds),
        })
    }

    fn same(seconds: u64) -> Result<Reading, Code> {
        reading(b"w", b"p", b"s", b"s", seconds)
    }

    fn changed() -> Result<Reading, Code> {
        Err(Code::new(code::SOURCE_SNAPSHOT_PROFILE_CHANGED))
    }

    #[test]
    fn three_equal_trials_qualify() {
        let judged = judge(&[same(2), same(5), same(4)]);
        assert_eq!(judged.verdict, Verdict::Qualified);
        assert_eq!(judged.exclusions, [None, None, None]);
        assert_eq!(judged.wall_seconds, Some(Spread { median: 4.0, deviation: 1.0 }));
        assert_eq!(judged.rows_per_second.map(|rate| rate.median), Some(25.0));
    }

    #[test]
    fn drift_excludes_its_trial_and_no_other() {
        type Case = (Result<Reading, Code>, &'static str);
        let cases: [Case; 4] = [
            (reading(b"x", b"p", b"s", b"t", 9), "drift_during_trial"),
            (reading(b"x", b"p", b"t", b"t", 9), "drift_between_trials"),
            (reading(b"x", b"q", b"s", b"s", 9), "authority_changed"),
            (changed(), code::SOURCE_SNAPSHOT_PROFILE_CHANGED),
        ];
        for (drifted, word) in cases {
            let few = judge(&[same(1), drifted.clone(), same(1)]);
            assert_eq!(few.verdict, Verdict::TooFewTrials, "{word}");
            let enough = judge(&[same(1), drifted, same(1), same(1)]);
            assert_eq!(enough.verdict, Verdict::Qualified, "{word}");
            let words: Vec<_> = enough.exclusions.iter().map(|why| why.as_ref().map(Exclusion::text)).collect();
            assert_eq!(words, [None, Some(word), None, None]);
            assert_eq!(enough.wall_seconds, Some(Spread { median: 1.0, deviation: 0.0 }), "{word}");
        }
    }

    #[test]
    fn the_first_trial_that_counts_is_the_measure() {
        let judged = judge(&[reading(b"x", b"p", b"s", b"t", 1), reading(b"y", b"p", b"t", b"t", 1), same(1)]);
        assert_eq!(judged.exclusions, [Some(Exclusion::DriftDuringTrial), None, Some(Exclusion::DriftBetweenTrials)]);
    }

    #[test]
    fn other_rows_of_the_same_state_are_never_qualified() {
        let other = || reading(b"other", b"p", b"s", b"s", 1);
        assert_eq!(judge(&[same(1), other()]).verdict, Verdict::DigestsDiffer, "even of too few");
        assert_eq!(judge(&[same(1), same(1), same(1), other()]).verdict, Verdict::DigestsDiffer);
    }

    #[test]
    fn nothing_says_nothing() {
        let judged = judge(&[]);
        assert_eq!((judged.verdict, judged.wall_seconds), (Verdict::TooFewTrials, None));
        assert_eq!(judge(&[changed(), changed(), changed()]).verdict, Verdict::TooFewTrials);
    }

    #[test]
    fn an_even_count_has_its_median_between_two() {
        assert_eq!(Spread::of(&[1.0, 10.0, 3.0, 2.0]), Some(Spread { median: 2.5, deviation: 1.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn only_drift_is_a_trial() {
        assert!(is_drift(&Code::new(code::SOURCE_SCHEMA_CHANGED)));
        assert!(!is_drift(&Code::new(code::SOURCE_PROVENANCE_INCOMPLETE)));
    }
}
