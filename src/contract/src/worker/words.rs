//! The closed vocabularies of the interface, each with its text.

use std::fmt;
use std::str::FromStr;

use crate::digest::Digest;
use crate::transfer::TransferState;

/// Declares an enum whose every value has one text, with both directions.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$word_doc])* $word,)*
        }

        impl $name {
            /// Every word.
            pub const ALL: &[$name] = &[$($name::$word),*];

            /// The text in documents.
            pub const fn text(self) -> &'static str {
                match self {
                    $($name::$word => $text,)*
                }
            }

            /// The word of a text, or `None`.
            pub fn from_text(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.text() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

words! {
    /// What a worker process does.
    Phase {
        /// Observe source and target; no effect on either.
        Admit = "admit",
        /// Read the source once, up to the sealed end.
        Extract = "extract",
        /// From the sealed end to custody released.
        Publish = "publish",
        /// Say what the journal says.
        Inspect = "inspect",
    }
}

words! {
    /// Who may write to the target, as the journal of this run knows it.
    CustodyWord {
        /// The run claimed nothing, or its claim was proved not to be made.
        None = "none",
        /// The run holds the target.
        Held = "held",
        /// The run held the target and gave it back at both places.
        Released = "released",
        /// The journal could not be read, or a claim was sent and its answer is not recorded.
        Unknown = "unknown",
    }
}

words! {
    /// State of a transfer in the spec's words: [`TransferState`] without how far preparation has come.
    StateWord {
        /// Nothing was read.
        Planned = "Planned",
        /// The one source query was opened.
        Extracting = "Extracting",
        /// The source end is sealed.
        StageComplete = "StageComplete",
        /// The publication transaction was begun.
        Publishing = "Publishing",
        /// The receipt is proved.
        Published = "Published",
        /// The evidence is saved.
        EvidenceComplete = "EvidenceComplete",
        /// The checkpoint is saved.
        Succeeded = "Succeeded",
        /// Extraction ended and what it left is not proved settled.
        CustodyUnknown = "CustodyUnknown",
        /// Settled without publication.
        ReextractRequired = "ReextractRequired",
        /// Nobody knows whether the publication was committed.
        OutcomeUnknown = "OutcomeUnknown",
        /// Ended without publication, proved.
        Failed = "Failed",
    }
}

impl From<TransferState> for StateWord {
    fn from(state: TransferState) -> Self {
        match state {
            TransferState::Planned => StateWord::Planned,
            TransferState::Extracting => StateWord::Extracting,
            TransferState::StageComplete(_) => StateWord::StageComplete,
            TransferState::Publishing => StateWord::Publishing,
            TransferState::Published => StateWord::Published,
            TransferState::EvidenceComplete => StateWord::EvidenceComplete,
            TransferState::Succeeded => StateWord::Succeeded,
            TransferState::CustodyUnknown => StateWord::CustodyUnknown,
            TransferState::ReextractRequired => StateWord::ReextractRequired,
            TransferState::OutcomeUnknown => StateWord::OutcomeUnknown,
            TransferState::Failed => StateWord::Failed,
        }
    }
}

words! {
    /// Where a live process is; for a person, never for a decision.
    Stage {
        /// Looking at source and target.
        Admitting = "admitting",
        /// Reading, encoding, loading, verifying.
        Extracting = "extracting",
        /// Filling and verifying the prepared table.
        Preparing = "preparing",
        /// In the publication transaction.
        Publishing = "publishing",
        /// Evidence, checkpoint, clean-up.
        Finishing = "finishing",
        /// Retiring what a failed run left.
        Settling = "settling",
        /// Nothing more will happen.
        Ended = "ended",
    }
}

/// How a process ends, design.md 4. Usage errors (2) come before there is a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: a coded failure; this process changed nothing that it did not undo.
    Refused,
    /// 3: this process's outcome is unknown, or custody is held.
    Kept,
    /// 4: settled without publication; the source has to be read by a new attempt.
    Reextract,
}

impl Exit {
    /// Every exit.
    pub const ALL: [Exit; 4] = [Exit::Done, Exit::Refused, Exit::Kept, Exit::Reextract];

    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Kept => 3,
            Exit::Reextract => 4,
        }
    }

    /// The exit of a code, or `None`.
    pub fn from_code(code: u64) -> Option<Self> {
        Exit::ALL.into_iter().find(|exit| u64::from(exit.code()) == code)
    }
}

/// The run in receipts and labels: the first 16 hex digits of SHA-256 of the run id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunTag(String);

/// A text that is not 16 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run tag is 16 lower-case hex digits")]
pub struct NotARunTag;

impl RunTag {
    const DIGITS: usize = 16;

    /// The tag of a run id.
    pub fn of(run_id: &str) -> Self {
        let mut text = Digest::of(run_id.as_bytes()).to_string();
        text.truncate(Self::DIGITS);
        RunTag(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunTag {
    type Err = NotARunTag;

    fn from_str(text: &str) -> Result<Self, NotARunTag> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == Self::DIGITS && text.bytes().all(hex) { Ok(RunTag(text.to_owned())) } else { Err(NotARunTag) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_text_of_its_own_and_reads_back() {
        fn check<W: Copy + PartialEq + fmt::Debug>(
            all: &[W],
            text: fn(W) -> &'static str,
            read: fn(&str) -> Option<W>,
        ) {
            for word in all {
                assert_eq!(read(text(*word)), Some(*word));
            }
            assert_eq!(read(""), None);
        }
        check(Phase::ALL, Phase::text, Phase::from_text);
        check(CustodyWord::ALL, CustodyWord::text, CustodyWord::from_text);
        check(StateWord::ALL, StateWord::text, StateWord::from_text);
        check(Stage::ALL, Stage::text, Stage::from_text);
    }

    #[test]
    fn states_keep_the_words_of_the_machine() {
        for state in TransferState::ALL {
            assert_eq!(StateWord::from(state).text(), state.text());
        }
    }

    #[test]
    fn a_run_tag_is_the_head_of_the_digest() {
        let tag = RunTag::of("abc");
        assert_eq!(tag.as_str(), "ba7816bf8f01cfea");
        assert_eq!("ba7816bf8f01cfea".parse(), Ok(tag));
        for other in ["", "ba7816bf8f01cfe", "BA7816bf8f01cfea", "ba7816bf8f01cfeaa", "ba7816bf8f01cfe\u{e9}"] {
            assert_eq!(other.parse::<RunTag>(), Err(NotARunTag), "{other}");
        }
    }
}
