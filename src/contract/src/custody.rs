//! Custody of a target: one record that says who may write, independent of any lease (contract.md 8).

use crate::canon::{Json, decode_object, strict};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;

/// Kind of the record.
pub const CUSTODY_KIND: &str = "dpone.mssql-native-target-custody";

/// Why custody was released; there is no other way to release it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReleaseReason {
    /// The publication is proved and its leftovers are gone.
    PublishedCleanup,
    /// The run is proved unpublished and every stage is gone.
    NonpublicationAllStagesRetired,
    /// A run without chunks finished and cleaned up.
    EmptyCompletionCleanup,
}

impl ReleaseReason {
    /// Every reason.
    pub const ALL: [ReleaseReason; 3] = [
        ReleaseReason::PublishedCleanup,
        ReleaseReason::NonpublicationAllStagesRetired,
        ReleaseReason::EmptyCompletionCleanup,
    ];

    /// The text in records and in the custody row of the target.
    pub const fn text(self) -> &'static str {
        match self {
            ReleaseReason::PublishedCleanup => "published_cleanup",
            ReleaseReason::NonpublicationAllStagesRetired => "nonpublication_all_stages_retired",
            ReleaseReason::EmptyCompletionCleanup => "empty_completion_cleanup",
        }
    }

    /// The reason of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        ReleaseReason::ALL.into_iter().find(|reason| reason.text() == text)
    }
}

/// Whether the target is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CustodyState {
    /// An invocation holds it.
    Held {
        /// The holder's invocation key.
        holder: Digest,
        /// Lease fence of the holder, from 1.
        lease_fence: u64,
    },
    /// Nobody holds it; the record stays.
    Clear(ReleaseReason),
}

impl CustodyState {
    /// The text in records: `held` or `clear`.
    pub const fn text(self) -> &'static str {
        match self {
            CustodyState::Held { .. } => "held",
            CustodyState::Clear(_) => "clear",
        }
    }
}

/// The custody record of one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustodyRecord {
    /// SHA-256 of the target id text.
    pub target_id_sha256: Digest,
    /// Rises with each claim, from 1.
    pub epoch: u64,
    /// Held or clear.
    pub state: CustodyState,
}

impl CustodyRecord {
    /// The document of eight keys.
    pub fn document(&self) -> Json {
        let (holder, fence, reason) = match self.state {
            CustodyState::Held { holder, lease_fence } => (Json::from(holder), Json::from(lease_fence), Json::Null),
            CustodyState::Clear(reason) => (Json::Null, Json::Null, Json::from(reason.text())),
        };
        Json::object([
            ("schema_version", Json::from(1)),
            ("kind", Json::from(CUSTODY_KIND)),
            ("target_id_sha256", Json::from(self.target_id_sha256)),
            ("epoch", Json::from(self.epoch)),
            ("state", Json::from(self.state.text())),
            ("holder_invocation_key", holder),
            ("holder_lease_fence", fence),
            ("release_reason", reason),
        ])
    }

    /// The strict canonical bytes.
    pub fn payload(&self) -> Vec<u8> {
        strict(&self.document())
    }

    /// Reads a document.
    ///
    /// # Errors
    /// `mssql_native.invalid_target_custody`.
    pub fn from_document(document: &Json) -> Result<Self, Refusal> {
        read(document).ok_or_else(invalid)
    }

    /// Reads a stored payload.
    ///
    /// # Errors
    /// `mssql_native.invalid_target_custody`.
    pub fn decode(payload: &[u8]) -> Result<Self, Refusal> {
        let members = decode_object(payload).map_err(|_| invalid())?;
        Self::from_document(&Json::Object(members))
    }

    /// The record of a claim by `holder` over the present record.
    ///
    /// The same holder with the same fence keeps its record; with a later fence it goes on for recovery only.
    ///
    /// # Errors
    /// `mssql_native.custody_held` when another invocation holds the target.
    pub fn claim(
        present: Option<&CustodyRecord>,
        target_id_sha256: Digest,
        holder: Digest,
        lease_fence: u64,
    ) -> Result<(CustodyRecord, Claimed), Refusal> {
        let state = CustodyState::Held { holder, lease_fence };
        match present.map(|record| (record.epoch, record.state)) {
            None => Ok((CustodyRecord { target_id_sha256, epoch: 1, state }, Claimed::Fresh)),
            Some((epoch, CustodyState::Clear(_))) => {
                Ok((CustodyRecord { target_id_sha256, epoch: epoch.saturating_add(1), state }, Claimed::Fresh))
            }
            Some((_, CustodyState::Held { holder: other, .. })) if other != holder => Err(Refusal::new(
                code::CUSTODY_HELD,
                "Another run holds this target; settle it first (inspect it, then resume, reconcile or retire it).",
            )),
            Some((epoch, CustodyState::Held { lease_fence: before, .. })) => {
                let claimed = if before == lease_fence { Claimed::Fresh } else { Claimed::RecoveryOnly };
                Ok((CustodyRecord { target_id_sha256, epoch, state }, claimed))
            }
        }
    }

    /// The record after a release by its holder.
    ///
    /// # Errors
    /// `mssql_native.custody_release_unproved` when another invocation holds the target.
    pub fn release(&self, holder: Digest, reason: ReleaseReason) -> Result<CustodyRecord, Refusal> {
        let ours = match self.state {
            CustodyState::Held { holder: present, .. } => present == holder,
            CustodyState::Clear(before) => before == reason,
        };
        if !ours {
            return Err(Refusal::new(
                code::CUSTODY_RELEASE_UNPROVED,
                "Custody of the target is not held by this run any more; inspect the target's custody row.",
            ));
        }
        Ok(CustodyRecord { state: CustodyState::Clear(reason), ..*self })
    }
}

/// What a claim permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// New grants may be given.
    Fresh,
    /// The same run under a later fence: settle what is there, give no new grant.
    RecoveryOnly,
}

fn read(document: &Json) -> Option<CustodyRecord> {
    let digest = |key: &str| document.get(key)?.as_str()?.parse::<Digest>().ok();
    let positive = |key: &str| document.get(key)?.as_u64().filter(|value| *value > 0);
    let null = |key: &str| document.get(key).is_some_and(Json::is_null);
    let ours = document.as_object()?.len() == 8
        && document.get("schema_version")?.as_u64()? == 1
        && document.get("kind")?.as_str()? == CUSTODY_KIND;
    ours.then_some(())?;
    let state = match document.get("state")?.as_str()? {
        "held" if null("release_reason") => CustodyState::Held {
            holder: digest("holder_invocation_key")?,
            lease_fence: positive("holder_lease_fence")?,
        },
        "clear" if null("holder_invocation_key") && null("holder_lease_fence") => {
            CustodyState::Clear(ReleaseReason::from_text(document.get("release_reason")?.as_str()?)?)
        }
        _ => return None,
    };
    Some(CustodyRecord { target_id_sha256: digest("target_id_sha256")?, epoch: positive("epoch")?, state })
}

fn invalid() -> Refusal {
    Refusal::new(
        code::INVALID_TARGET_CUSTODY,
        "A custody record is not of its closed form; it was changed or written by another version. Do not act on it.",
    )
}
