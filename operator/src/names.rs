//! Names, labels, annotations and finalizers (docs/internals/operator.md, "Names and numbers").

use contract::digest::Digest;

use crate::crd::status::WorkerPhase;

/// Group of the resource, and domain of labels, annotations and finalizers.
pub const DOMAIN: &str = "transfer.dpone.io";

/// `apiVersion` of the resource.
pub const API_VERSION: &str = "transfer.dpone.io/v1alpha1";

/// Kind of the resource.
pub const KIND: &str = "NativeTransfer";

/// Field manager of every write of the operator.
pub const FIELD_MANAGER: &str = "native-transfer-operator";

/// Finalizer of the resource: custody may be held or the outcome unknown.
pub const PUBLICATION_CUSTODY: &str = "transfer.dpone.io/publication-custody";

/// Finalizer of the journal claim.
pub const JOURNAL_CUSTODY: &str = "transfer.dpone.io/journal-custody";

/// Finalizer of a worker pod: its receipt was not read yet.
pub const RESULT_UNREAD: &str = "transfer.dpone.io/result-unread";

/// Annotation of a worker pod: the frozen plan, strict canonical JSON.
pub const PLAN_ANNOTATION: &str = "transfer.dpone.io/plan";

/// Annotation of a worker pod: digest of what it was built from; a pod that never started is replaced when it changes.
pub const TEMPLATE_ANNOTATION: &str = "transfer.dpone.io/template";

/// Annotation of a resource that is being deleted: what to do with held custody (`publish`).
pub const ON_DELETE_ANNOTATION: &str = "transfer.dpone.io/on-delete";

/// Label: UID of the transfer. Children are found by it alone.
pub const TRANSFER_UID_LABEL: &str = "transfer.dpone.io/transfer-uid";

/// Label: tag of the run, 16 hexadecimal digits.
pub const RUN_LABEL: &str = "transfer.dpone.io/run";

/// Label: phase of the worker.
pub const PHASE_LABEL: &str = "transfer.dpone.io/phase";

/// Label: attempt of the run.
pub const ATTEMPT_LABEL: &str = "transfer.dpone.io/attempt";

/// Label: try of the phase.
pub const TRY_LABEL: &str = "transfer.dpone.io/try";

/// Annotation of children: name of the transfer, for people. Nothing is looked up by it.
pub const TRANSFER_ANNOTATION: &str = "transfer.dpone.io/transfer";

/// The run id that a worker is given: `UID/TOKEN/ATTEMPT`.
pub fn run_id(uid: &str, token: &str, attempt: i64) -> String {
    format!("{uid}/{token}/{attempt}")
}

/// Name of a worker pod: `ntr-<12 hex of SHA-256(UID/TOKEN)>-<phase>-<attempt>-<try>`, at most 63 characters.
pub fn pod(uid: &str, token: &str, phase: WorkerPhase, attempt: i64, try_: i64) -> String {
    format!("ntr-{}-{phase}-{attempt}-{try_}", short_digest(&format!("{uid}/{token}")), phase = phase.as_str())
}

/// Name of the journal claim: `ntr-<12 hex of SHA-256(UID)>-journal`.
pub fn claim(uid: &str) -> String {
    format!("ntr-{}-journal", short_digest(uid))
}

/// Label selector of everything that belongs to a transfer.
pub fn children(uid: &str) -> String {
    format!("{TRANSFER_UID_LABEL}={uid}")
}

fn short_digest(text: &str) -> String {
    let mut digest = Digest::of(text.as_bytes()).to_string();
    digest.truncate(12);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a6f2b1e-6c9d-4d0f-9d55-0f6f1f0e7a11";

    #[test]
    fn names_are_those_of_the_interface() {
        // printf %s 0a6f2b1e-6c9d-4d0f-9d55-0f6f1f0e7a11/1 | sha256sum
        assert_eq!(pod(UID, "1", WorkerPhase::Extract, 2, 3), "ntr-d8414c107cf8-extract-2-3");
        assert_eq!(claim(UID), "ntr-d638f6ae157d-journal");
        assert_eq!(run_id(UID, "2026-11", 4), format!("{UID}/2026-11/4"));
    }

    #[test]
    fn the_longest_name_is_a_label() {
        assert!(pod(UID, "1", WorkerPhase::Publish, i64::from(i32::MAX), i64::from(i32::MAX)).len() <= 63);
    }

    #[test]
    fn another_transfer_or_token_has_other_names() {
        let name = |uid, token| pod(uid, token, WorkerPhase::Admit, 1, 1);
        assert_ne!(name(UID, "1"), name(UID, "2"));
        assert_ne!(name(UID, "1"), name("other", "1"));
    }
}
