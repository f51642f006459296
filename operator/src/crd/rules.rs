//! The rules of the resource (CEL), each with what it says to a person.
//!
//! A rule on a node is skipped when the node itself disappears, so every guard over `status` and over optional fields
//! stands at the schema's root or at an object that is required, and names each field with `has()`. `reason` is one of the
//! four words that the API server takes.

/// A rule and its place.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable name, for tests and documents.
    pub name: &'static str,
    /// The object that the rule stands at, as keys below the root.
    pub at: &'static [&'static str],
    /// The expression.
    pub rule: &'static str,
    /// What a refused person reads.
    pub message: &'static str,
    /// The field that is to blame, as the API server writes paths.
    pub field_path: Option<&'static str>,
    /// Kind of the refusal.
    pub reason: &'static str,
}

const FORBIDDEN: &str = "FieldValueForbidden";
const INVALID: &str = "FieldValueInvalid";

/// Both objects have a run.
macro_rules! had_run {
    () => {
        "has(oldSelf.status) && has(oldSelf.status.run)"
    };
}

/// The new object has a run.
macro_rules! has_run {
    () => {
        "has(self.status) && has(self.status.run)"
    };
}

/// The token that a side asks for.
macro_rules! token {
    ($of:literal) => {
        concat!("(has(", $of, ".spec.run) ? ", $of, ".spec.run.token : '1')")
    };
}

/// Token and attempt are the old ones; only where both objects have a run.
macro_rules! same_attempt {
    () => {
        "self.status.run.token == oldSelf.status.run.token && self.status.run.attempt == oldSelf.status.run.attempt"
    };
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule {
        name: "manifest-immutable",
        at: &["spec", "manifest"],
        // Equality looks at the left side's preserved keys only, so both directions are asked.
        rule: "self == oldSelf && oldSelf == self",
        message: "manifest is immutable: other content is another transfer with another name",
        field_path: None,
        reason: FORBIDDEN,
    },
    Rule {
        name: "interval-immutable",
        at: &["spec"],
        rule: "has(self.interval) == has(oldSelf.interval) && (!has(self.interval) || self.interval == oldSelf.interval)",
        message: "interval is immutable: another interval is another transfer with another name",
        field_path: Some(".interval"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "journal-class-immutable",
        at: &["spec", "journal"],
        rule: "has(self.storageClassName) == has(oldSelf.storageClassName) && \
               (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
        message: "storageClassName is immutable: the journal stays on its volume",
        field_path: Some(".storageClassName"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "journal-access-mode-immutable",
        at: &["spec", "journal"],
        rule: "has(self.accessMode) == has(oldSelf.accessMode) && \
               (!has(self.accessMode) || self.accessMode == oldSelf.accessMode)",
        message: "accessMode is immutable: the journal stays on its volume",
        field_path: Some(".accessMode"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "journal-size-grows",
        at: &["spec", "journal"],
        rule: "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
        message: "size may only grow: a volume cannot shrink",
        field_path: Some(".size"),
        reason: INVALID,
    },
    Rule {
        name: "run-token-after-known-outcome",
        at: &[],
        rule: concat!(
            token!("self"),
            " == ",
            token!("oldSelf"),
            " || !(",
            had_run!(),
            ") || (has(oldSelf.status.phase) && oldSelf.status.phase in ['Succeeded', 'ReextractRequired', 'Failed'] && \
             !(has(oldSelf.status.custody) && has(oldSelf.status.custody.state) && oldSelf.status.custody.state == 'Held'))"
        ),
        message: "run.token may change only when the outcome of the last run is known: wait for Succeeded, ReextractRequired or Failed",
        field_path: Some(".spec.run"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "run-token-never-used-before",
        at: &[],
        // The history is bounded, and the journal knows the runs that it has forgotten.
        rule: concat!(
            token!("self"),
            " == ",
            token!("oldSelf"),
            " || !(has(oldSelf.status) && has(oldSelf.status.history)) || (",
            had_run!(),
            " && oldSelf.status.run.token == ",
            token!("self"),
            ") || !oldSelf.status.history.exists(entry, entry.token == ",
            token!("self"),
            ")"
        ),
        message: "native_transfer.run_token_used: run.token names an earlier run; set it to a value that was never used",
        field_path: Some(".spec.run"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "status-epoch-never-falls",
        at: &[],
        rule: "!(has(oldSelf.status) && has(oldSelf.status.epoch)) || \
               (has(self.status) && has(self.status.epoch) && self.status.epoch >= oldSelf.status.epoch)",
        message: "status.epoch never falls",
        field_path: Some(".status.epoch"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "status-attempt-never-falls",
        at: &[],
        rule: concat!(
            "!(",
            had_run!(),
            ") || (",
            has_run!(),
            " && (self.status.run.token != oldSelf.status.run.token || \
             self.status.run.attempt >= oldSelf.status.run.attempt))"
        ),
        message: "status.run stays, and its attempt never falls within a run",
        field_path: Some(".status.run"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "status-plan-write-once",
        at: &[],
        rule: concat!(
            "!(",
            had_run!(),
            " && has(oldSelf.status.run.planSHA256)) || (",
            has_run!(),
            " && (self.status.run.token != oldSelf.status.run.token || \
             (has(self.status.run.planSHA256) && self.status.run.planSHA256 == oldSelf.status.run.planSHA256)))"
        ),
        message: "status.run.planSHA256 is written once per run",
        field_path: Some(".status.run"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "status-eof-write-once",
        at: &[],
        rule: concat!(
            "!(",
            had_run!(),
            " && has(oldSelf.status.custody) && has(oldSelf.status.custody.eof)) || (",
            has_run!(),
            " && (!(",
            same_attempt!(),
            ") || (has(self.status.custody) && has(self.status.custody.eof) && \
             self.status.custody.eof.sha256 == oldSelf.status.custody.eof.sha256 && \
             (!has(oldSelf.status.custody.eof.inline) || (has(self.status.custody.eof.inline) && \
             self.status.custody.eof.inline == oldSelf.status.custody.eof.inline)))))"
        ),
        message: "status.custody.eof is written once per attempt",
        field_path: Some(".status.custody"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "status-attempt-left-with-known-outcome",
        at: &[],
        rule: concat!(
            "!(",
            had_run!(),
            " && has(oldSelf.status.publication)) || (",
            has_run!(),
            " && ((",
            same_attempt!(),
            ") || oldSelf.status.publication.outcome in ['RolledBack', 'Retired'] || \
             (oldSelf.status.publication.outcome == 'Committed' && \
             self.status.run.token != oldSelf.status.run.token) || \
             (oldSelf.status.publication.outcome in ['Intended', 'Unknown'] && has(self.status.history) && \
             self.status.history.exists(entry, entry.token == oldSelf.status.run.token && \
             entry.attempt == oldSelf.status.run.attempt && entry.phase in ['ReextractRequired', 'Failed']))))"
        ),
        message: "an attempt is left only when the outcome of its publication is known, by status or by the history entry written with it",
        field_path: Some(".status.run"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "status-outcome-transition",
        at: &[],
        rule: concat!(
            "!(",
            had_run!(),
            " && has(oldSelf.status.publication)) || (",
            has_run!(),
            " && (!(",
            same_attempt!(),
            ") || (has(self.status.publication) && \
             (self.status.publication.outcome == oldSelf.status.publication.outcome || \
             oldSelf.status.publication.outcome in ['Intended', 'RolledBack', 'Unknown']))))"
        ),
        message: "status.publication.outcome: Committed and Retired are final, and no outcome vanishes",
        field_path: Some(".status.publication"),
        reason: FORBIDDEN,
    },
    Rule {
        name: "status-receipt-write-once",
        at: &[],
        rule: concat!(
            "!(",
            had_run!(),
            " && has(oldSelf.status.publication) && has(oldSelf.status.publication.receiptId)) || (",
            has_run!(),
            " && (!(",
            same_attempt!(),
            ") || (has(self.status.publication) && has(self.status.publication.receiptId) && \
             self.status.publication.receiptId == oldSelf.status.publication.receiptId)))"
        ),
        message: "status.publication.receiptId is written once per attempt",
        field_path: Some(".status.publication"),
        reason: FORBIDDEN,
    },
];
