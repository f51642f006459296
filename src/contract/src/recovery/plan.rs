//! The recovery plan: schema, window and authority, durable before the first source row (contract.md 9.1).
//!
//! Its payload is the legacy ascii form. Bindings name the journal by its random id, never by a path, so a volume that
//! is mounted elsewhere still recovers (design.md 3.15).

use crate::canon::{Json, decode_object, legacy, strict_digest};
use crate::civil::Instant;
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::transaction::Invocation;

const PLAN_KIND_V1: &str = "dpone.mssql-native-recovery-plan.v1";
const PLAN_KIND_V2: &str = "dpone.mssql-native-recovery-plan.v2";
const AUTHORITY_KIND: &str = "dpone.mssql-native-recovery-authority.v1";

/// The five digests that recovery recomputes before it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bindings {
    /// Route fingerprint.
    pub authored_route_sha256: Digest,
    /// Invocation key.
    pub verification_identity_sha256: Digest,
    /// Target identity.
    pub target_connection_sha256: Digest,
    /// The journal, see [`state_store_binding`].
    pub state_store_sha256: Digest,
    /// The chunk folder, see [`work_root_binding`].
    pub work_root_sha256: Digest,
}

/// Binding of a journal by its random id.
pub fn state_store_binding(journal_id: &str) -> Digest {
    strict_digest(&Json::array(["native-transfer.state-store.v1", journal_id]))
}

/// Binding of the chunk folder of a journal, by the journal's random id.
pub fn work_root_binding(journal_id: &str) -> Digest {
    strict_digest(&Json::array(["native-transfer.work-root.v1", journal_id]))
}

/// The operation that recovery may go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The invocation.
    pub invocation: Invocation,
    /// Target identity.
    pub target_identity: Digest,
    /// Route fingerprint.
    pub route_fingerprint: Digest,
    /// Load id.
    pub load_id: String,
    /// Database.
    pub target_database: String,
    /// Schema.
    pub target_schema: String,
    /// Table.
    pub target_table: String,
    /// `full_refresh` or `partition_replace`.
    pub strategy: String,
    /// Generation at the target.
    pub generation: u64,
    /// Whether it was the current generation.
    pub is_current_generation: bool,
    /// Operation key.
    pub operation_key: Digest,
    /// Scope hash.
    pub scope_hash: Digest,
    /// Owner digest.
    pub owner_digest: Digest,
    /// Operation epoch.
    pub epoch: u64,
    /// End of the operation's lease, if it has one.
    pub lease_expires_at: Option<Instant>,
}

impl Operation {
    fn document(&self) -> Json {
        Json::object([
            ("invocation", self.invocation.document()),
            ("target_identity", Json::from(self.target_identity)),
            ("route_fingerprint", Json::from(self.route_fingerprint)),
            ("load_id", Json::from(&self.load_id)),
            ("target_database", Json::from(&self.target_database)),
            ("target_schema", Json::from(&self.target_schema)),
            ("target_table", Json::from(&self.target_table)),
            ("strategy", Json::from(&self.strategy)),
            ("generation", Json::from(self.generation)),
            ("is_current_generation", Json::from(self.is_current_generation)),
            ("operation_key", Json::from(self.operation_key)),
            ("scope_hash", Json::from(self.scope_hash)),
            ("owner_digest", Json::from(self.owner_digest)),
            ("epoch", Json::from(self.epoch)),
            ("lease_expires_at_utc", Json::from(self.lease_expires_at.map(Instant::isoformat))),
        ])
    }
}

/// The authority object of a plan.
pub fn authority(bindings: &Bindings, operation: &Operation) -> Json {
    let bindings = Json::object([
        ("authored_route_sha256", Json::from(bindings.authored_route_sha256)),
        ("verification_identity_sha256", Json::from(bindings.verification_identity_sha256)),
        ("target_connection_sha256", Json::from(bindings.target_connection_sha256)),
        ("state_store_sha256", Json::from(bindings.state_store_sha256)),
        ("work_root_sha256", Json::from(bindings.work_root_sha256)),
    ]);
    Json::object([
        ("version", Json::from(1)),
        ("kind", Json::from(AUTHORITY_KIND)),
        ("bindings", bindings),
        ("operation", operation.document()),
    ])
}

/// The window of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWindow {
    /// Column.
    pub column: String,
    /// Inclusive start.
    pub start: Instant,
    /// Exclusive end.
    pub end: Instant,
}

impl PlanWindow {
    /// Reads the window of a stored plan: three nonempty texts, two times with an offset, start before end.
    pub fn from_document(window: &Json) -> Option<Self> {
        let text = |key: &str| window.get(key)?.as_str().filter(|text| !text.is_empty());
        (window.as_object()?.len() == 3).then_some(())?;
        let (start, end) = (iso::parse_aware(text("start")?)?, iso::parse_aware(text("end")?)?);
        (start < end).then_some(())?;
        Some(PlanWindow { column: text("column")?.to_owned(), start, end })
    }

    fn document(&self) -> Json {
        Json::object([
            ("column", Json::from(&self.column)),
            ("start", Json::from(self.start.isoformat())),
            ("end", Json::from(self.end.isoformat())),
        ])
    }
}

/// A recovery plan.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryPlan {
    /// Invocation key.
    pub invocation_id: Digest,
    /// Column name and wire type.
    pub schema: Vec<(String, String)>,
    /// Window, if bounded.
    pub window: Option<PlanWindow>,
    /// Authority object, see [`authority`].
    pub authority: Json,
}

impl RecoveryPlan {
    /// The version 2 payload as it is stored.
    pub fn payload(&self) -> Vec<u8> {
        let schema = self.schema.iter().map(|(name, wire)| Json::array([name, wire]));
        legacy(&Json::object([
            ("schema_version", Json::from(2)),
            ("kind", Json::from(PLAN_KIND_V2)),
            ("invocation_id", Json::from(self.invocation_id)),
            ("schema", Json::Array(schema.collect())),
            ("window", self.window.as_ref().map_or(Json::Null, PlanWindow::document)),
            ("recovery_authority_v1", self.authority.clone()),
        ]))
    }

    /// SHA-256 of the payload.
    pub fn sha256(&self) -> Digest {
        Digest::of(&self.payload())
    }

    /// Reads a stored plan of version 1 (without window) or 2.
    ///
    /// # Errors
    /// `mssql_native.recovery_plan_invalid`.
    pub fn decode(payload: &[u8], invocation_id: Digest) -> Result<Self, Refusal> {
        let read = || {
            let plan = Json::Object(decode_object(payload).ok()?);
            read(&plan, invocation_id)
        };
        read().ok_or_else(|| {
            Refusal::new(
                code::RECOVERY_PLAN_INVALID,
                "The stored recovery plan is not of its closed form or belongs to another run; do not act on it.",
            )
        })
    }
}

fn read(plan: &Json, invocation_id: Digest) -> Option<RecoveryPlan> {
    let version = plan.get("schema_version")?.as_u64()?;
    let (kind, keys) = match version {
        1 => (PLAN_KIND_V1, 5),
        2 => (PLAN_KIND_V2, 6),
        _ => return None,
    };
    let ours = plan.as_object()?.len() == keys
        && plan.get("kind")?.as_str()? == kind
        && plan.get("invocation_id")?.as_str()? == invocation_id.to_string();
    ours.then_some(())?;
    let window = match plan.get("window") {
        None if version == 1 => None,
        Some(Json::Null) if version == 2 => None,
        Some(window) if version == 2 => Some(PlanWindow::from_document(window)?),
        _ => return None,
    };
    let column = |pair: &Json| match pair.as_array()? {
        [name, wire] => Some((name.as_str()?.to_owned(), wire.as_str()?.to_owned())),
        _ => None,
    };
    let schema = plan.get("schema")?.as_array()?.iter().map(column).collect::<Option<_>>()?;
    let authority = plan.get("recovery_authority_v1")?;
    authority.as_object()?;
    Some(RecoveryPlan { invocation_id, schema, window, authority: authority.clone() })
}

/// The ISO 8601 forms that stored windows may have: more than we write, as the prior reader accepts them.
mod iso {
    use crate::civil::{Date, Fields, Instant};

    /// A time with an offset, as UTC.
    pub(super) fn parse_aware(text: &str) -> Option<Instant> {
        let (date, rest) = date(text)?;
        let mut rest = rest.chars();
        rest.next()?;
        let (clock, offset) = split_offset(rest.as_str())?;
        let [hour, minute, second, micro] = clock_fields(clock)?;
        let offset = match offset {
            "Z" => 0,
            signed => {
                let (sign, clock) = signed.split_at_checked(1)?;
                let [hours, minutes, seconds, micros] = clock_fields(clock)?;
                // An offset of a fraction of a second has no meaning here.
                (micros == 0).then_some(())?;
                let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds);
                (seconds < 86_400).then_some(if sign == "-" { -seconds } else { seconds })?
            }
        };
        Instant::from_fields(Fields { date, hour, minute, second, micro }, offset)
    }

    /// `YYYY-MM-DD` or `YYYYMMDD`, and what follows.
    fn date(text: &str) -> Option<(Date, &str)> {
        let dashed = text.as_bytes().get(4) == Some(&b'-');
        let (year, text) = text.split_at_checked(4)?;
        let text = if dashed { text.strip_prefix('-')? } else { text };
        let (month, text) = text.split_at_checked(2)?;
        let text = if dashed { text.strip_prefix('-')? } else { text };
        let (day, text) = text.split_at_checked(2)?;
        let date = Date::new(i32::try_from(digits(year)?).ok()?, digits(month)?, digits(day)?)?;
        Some((date, text))
    }

    /// The clock and the offset, which is `Z` or starts with a sign.
    fn split_offset(text: &str) -> Option<(&str, &str)> {
        let at = text.find(['Z', '+', '-'])?;
        let (clock, offset) = text.split_at(at);
        (offset.starts_with(['+', '-']) || offset == "Z").then_some((clock, offset))
    }

    /// Hour, minute, second and microsecond of `HH[:MM[:SS[.f]]]` or `HH[MM[SS[.f]]]`; more digits are cut off.
    fn clock_fields(text: &str) -> Option<[u32; 4]> {
        let (whole, fraction) = match text.split_once(['.', ',']) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let colons = whole.contains(':');
        let parts: Vec<&str> = if colons {
            whole.split(':').collect()
        } else {
            whole.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok()).collect::<Option<_>>()?
        };
        if parts.is_empty() || parts.len() > 3 || parts.iter().any(|part| part.len() != 2) {
            return None;
        }
        let mut fields = [0; 4];
        for (field, part) in fields.iter_mut().zip(&parts) {
            *field = digits(part)?;
        }
        if let Some(fraction) = fraction {
            (parts.len() == 3 && !fraction.is_empty()).then_some(())?;
            fraction.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
            fields[3] = digits(&format!("{fraction:0<6}")[..6])?;
        }
        Some(fields)
    }

    fn digits(text: &str) -> Option<u32> {
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
        text.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[track_caller]
        fn check(text: &str, expected: Option<&str>) {
            assert_eq!(parse_aware(text).map(Instant::isoformat).as_deref(), expected, "{text:?}");
        }

        #[test]
        fn aware_times_of_every_admitted_form() {
            let midnight = Some("2026-09-30T00:00:00+00:00");
            check("2026-09-30T03:00:00+03:00", midnight);
            check("2026-09-30 00:00:00Z", midnight);
            check("20260930T000000+0000", midnight);
            check("2026-09-30T00+00", midnight);
            check("2026-09-29T23:59:59.9999999-00:00:00", Some("2026-09-29T23:59:59.999999+00:00"));
            check("2026-09-30T00:00:00.5+00:00", Some("2026-09-30T00:00:00.500000+00:00"));
        }

        #[test]
        fn everything_else_is_none() {
            for text in ["", "x", "2026-09-30", "2026-09-30T00:00:00", "2026-02-30T00:00:00Z", "2026-09-30T24:00:00Z"] {
                check(text, None);
            }
            for text in ["2026-09-30T00:00:00.Z", "2026-09-30T00:00.5Z", "2026-09-30T0:00Z", "0000-01-01T00:00:00Z"] {
                check(text, None);
            }
            check("é026-09-30T00:00:00Z", None);
        }
    }
}
