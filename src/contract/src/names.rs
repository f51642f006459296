//! Names and keys derived from identities: stages, applocks, journal keys, proofs (contract.md 1.2, 5.2, 8).
//!
//! Applock resources, journal keys and the quoted form of a stage keep the prior system's bytes. Table names and owner
//! marks, which it derives from a Python repr, are derived here from strict canonical JSON (design.md 3.3).

use crate::canon::{Json, legacy_digest, strict_digest};
use crate::digest::Digest;
use crate::identity::ChunkPlan;

/// Prefix of every table the product creates for a run.
pub const STAGE_PREFIX: &str = "dpone_native_";

/// Prefix of prepared tables; it starts with [`STAGE_PREFIX`], so one pattern finds both.
pub const PREPARED_PREFIX: &str = "dpone_native_prepared_";

/// The extended property that marks a table as ours.
pub const OWNER_PROPERTY: &str = "dpone_native_owner";

/// Hex digits of the binding that enter a table name.
const NAME_DIGITS: usize = 40;

/// A table name with the owner mark it must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTable {
    /// Table name.
    pub table: String,
    /// Value of the owner mark.
    pub owner_binding: Digest,
}

impl OwnedTable {
    fn new(prefix: &str, owner_binding: Digest) -> Self {
        OwnedTable { table: format!("{prefix}{:.NAME_DIGITS$}", owner_binding.to_string()), owner_binding }
    }
}

/// The stage of one attempt.
pub fn stage_table(plan: &ChunkPlan, attempt_id: Digest) -> OwnedTable {
    let binding = Json::Array(vec!["native-transfer.stage.v1".into(), plan.document(), attempt_id.into()]);
    OwnedTable::new(STAGE_PREFIX, strict_digest(&binding))
}

/// The prepared table of a run.
pub fn prepared_table(plan: &ChunkPlan) -> OwnedTable {
    let binding = Json::Array(vec!["native-transfer.prepared.v1".into(), plan.document()]);
    OwnedTable::new(PREPARED_PREFIX, strict_digest(&binding))
}

/// `sha256:` + digest of the plan, the `native_plan_binding` of receipts.
pub fn plan_binding(plan: &ChunkPlan) -> String {
    format!("sha256:{}", strict_digest(&plan.document()))
}

/// A bracketed name of two or three parts, brackets doubled.
pub fn qualified_stage(database: Option<&str>, schema: &str, table: &str) -> String {
    let parts: Vec<String> =
        database.into_iter().chain([schema, table]).map(|part| format!("[{}]", part.replace(']', "]]"))).collect();
    parts.join(".")
}

/// Whether a text is a bracketed name of two or three nonempty parts without control characters.
pub fn is_qualified_stage(text: &str) -> bool {
    let mut rest = text;
    for parts in 1..=3 {
        match bracketed(rest) {
            Some("") => return parts > 1,
            Some(after) => match after.strip_prefix('.') {
                Some(next) => rest = next,
                None => return false,
            },
            None => return false,
        }
    }
    false
}

/// What follows the bracketed part that `text` starts with.
fn bracketed(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('[')?;
    let mut characters = inner.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            ']' if characters.next_if(|(_, next)| *next == ']').is_none() => {
                return (at > 0).then(|| &inner[at + 1..]);
            }
            '\u{0}'..='\u{1f}' => return None,
            _ => {}
        }
    }
    None
}

/// The coordinate-free stage id of writer events.
pub fn opaque_stage_id(invocation_key: Digest, qualified_stage: &str) -> Digest {
    let invocation_key = invocation_key.to_string();
    strict_digest(&Json::array(["dpone.mssql-native-stage.v2", invocation_key.as_str(), qualified_stage]))
}

/// The id of an attempt; `nonce` is 32 random bytes.
pub fn attempt_id(invocation_key: Digest, ordinal: u64, nonce: Digest) -> Digest {
    strict_digest(&Json::Array(vec![invocation_key.into(), ordinal.into(), nonce.into()]))
}

/// Applock of a writer or preparation scope: `dpone-native:` + SHA-256(target id, NUL, identity).
pub fn scope_applock(target_id: &str, identity: &str) -> String {
    format!("dpone-native:{}", Digest::of(format!("{target_id}\0{identity}").as_bytes()))
}

/// Identity text of a writer scope.
pub fn writer_scope(run_id: &str, attempt_id: &str) -> String {
    format!("{run_id}:{attempt_id}")
}

/// Identity text of a preparation scope.
pub fn preparation_scope(run_id: &str) -> String {
    format!("prepare:{run_id}")
}

/// Applock of a grant, held by the session that writes.
pub fn grant_applock(grant_token_sha256: Digest) -> String {
    let preimage = format!("dpone.mssql-sqlclient.applock.v1\0{grant_token_sha256}");
    format!("dpone:mssql-native:{}", Digest::of(preimage.as_bytes()))
}

/// Program name of the writing session, by which a person finds it.
pub fn writer_application(attempt_id: Digest, grant_token_sha256: Digest, object_id: i32, stage_id: Digest) -> String {
    let preimage =
        format!("dpone.mssql-sqlclient.application.v2\0{attempt_id}\0{grant_token_sha256}\0{object_id}\0{stage_id}");
    format!("dpone-mssql-sqlclient:{}", Digest::of(preimage.as_bytes()))
}

/// Key of a version 1 journal root.
pub fn journal_key_v1(target_id: &str, run_id: &str) -> String {
    format!("mssql-native-chunks-v1/{}", legacy_digest(&Json::array([target_id, run_id])))
}

/// Key of a version 2 journal root.
pub fn journal_key(invocation_key: Digest) -> String {
    format!("mssql-native-chunks-v2/{invocation_key}")
}

/// Key of one writer event below its journal root.
pub fn event_key(invocation_key: Digest, ordinal: u64, attempt_id: &str, sequence: u64) -> String {
    format!("{}/{ordinal:020}/{attempt_id}/{sequence:020}", journal_key(invocation_key))
}

/// Key of a target's custody record.
pub fn custody_key(target_id: &str) -> String {
    format!("mssql-native-target-custody-v1/{}", Digest::of(target_id.as_bytes()))
}

/// Key of a recovery plan (the key says v1 for both plan versions).
pub fn recovery_plan_key(invocation_key: Digest) -> String {
    format!("mssql-native/recovery-plan-v1/{invocation_key}")
}

/// Key of the evidence record of a run.
pub fn evidence_key(run_id: &str) -> String {
    format!("mssql-native/evidence/{run_id}")
}

/// Key of the checkpoint record of a run.
pub fn checkpoint_key(run_id: &str) -> String {
    format!("mssql-native/checkpoint/{run_id}")
}

/// The proof text's digest that a run ended before EOF without publication.
pub fn nonpublication_proof(invocation_key: Digest) -> Digest {
    Digest::of(format!("{invocation_key}:pre_eof_nonpublication").as_bytes())
}

/// The digest of the proof that a sealed run is not published and cannot be: seen under the publication locks with the
/// run fence raised.
pub fn unpublished_proof(invocation_key: Digest) -> Digest {
    Digest::of(format!("{invocation_key}:unpublished_under_publication_lock").as_bytes())
}

/// Order key of a chunk in a receipt.
pub fn order_key(ordinal: u64) -> String {
    format!("native:{ordinal:020}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_and_recognising_agree() {
        for (database, schema, table) in [(None, "a]b", "c.d"), (Some("]"), "s", "]]")] {
            assert!(is_qualified_stage(&qualified_stage(database, schema, table)));
        }
        for text in ["", "[a]", "[a].", "[a]..[b]", "[a].[b]x", "x[a].[b]", "[a].[b]]", "[a\n].[b]", "[a].[b].[c].[d]"]
        {
            assert!(!is_qualified_stage(text), "{text:?}");
        }
    }

    #[test]
    fn table_names_carry_forty_digits_of_their_mark() {
        let text = String::from("t");
        let plan = ChunkPlan {
            run_id: text.clone(),
            target_id: text.clone(),
            source_query_id: text.clone(),
            window_fingerprint: text.clone(),
            schema_fingerprint: text.clone(),
            wire_fingerprint: text,
        };
        let stage = stage_table(&plan, Digest::of(b"attempt"));
        assert_eq!(stage.table, format!("dpone_native_{}", &stage.owner_binding.to_string()[..40]));
        assert_ne!(stage.owner_binding, prepared_table(&plan).owner_binding);
        assert_ne!(stage.owner_binding, stage_table(&plan, Digest::of(b"other")).owner_binding);
    }
}
