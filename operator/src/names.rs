//! Names, labels, annotations and finalizers (docs/internals/operator.md, "Names and numbers").

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
