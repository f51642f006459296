//! One case: a namespace with restricted Pod Security, a source database, a SQL Server of its own, and their Secrets.

use std::sync::RwLockReadGuard;
use std::sync::RwLockWriteGuard;

use serde_json::{Value, json};
use servers::sqlserver::control::{Breakpoint, Then};
use testkit::ends::Target;
use testkit::transfer::{self, Document, FULL_REFRESH, VISIBLE};

use crate::cluster::{Cluster, cluster};
use crate::kubectl::Kubectl;
use crate::process;

/// Kind of the resource, as people type it.
pub const NTR: &str = "nativetransfers.transfer.dpone.io";
/// Secrets of every case.
pub const SECRETS: [&str; 2] = ["clickhouse-ro", "mssql-loader"];
/// A session that writes a chunk names itself with this.
pub const WRITER: &str = "dpone-mssql-sqlclient:";

/// Rows of an extraction that is asked to stop early in it: a hundred chunks, so that the signal is there long before the end,
/// whatever the kubelet takes for it.
pub const MANY_ROWS: u64 = 4_000;

#[derive(Debug)]
enum Calm {
    Shared(#[allow(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
    Alone(#[allow(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
}

/// A case.
#[derive(Debug)]
pub struct Case {
    /// The cluster.
    pub cluster: &'static Cluster,
    /// Its namespace.
    pub namespace: String,
    /// Its database at the source.
    pub database: String,
    /// Its SQL Server.
    pub target: Target,
    folder: std::path::PathBuf,
    calm: Calm,
}

impl Case {
    /// A case that goes on beside others.
    pub fn new(name: &str) -> Case {
        let calm = cluster().calm.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        Case::start(name, Calm::Shared(calm))
    }

    /// A case that disturbs the node or the operator: no other runs meanwhile.
    pub fn alone(name: &str) -> Case {
        let calm = cluster().calm.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        Case::start(name, Calm::Alone(calm))
    }

    /// Whether it runs alone.
    pub fn is_alone(&self) -> bool {
        matches!(self.calm, Calm::Alone(_))
    }

    fn start(name: &str, calm: Calm) -> Case {
        let cluster = cluster();
        let unique = format!("{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(format!("native-transfer-e2e-{unique}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let target = Target::start(&folder, Some(cluster.host_address));
        let database = unique.replace('-', "_");
        cluster.source.run(&format!("CREATE DATABASE {database} ENGINE = Atomic"));
        let namespace = format!("e2e-{unique}");
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        cluster.kubectl.feed(&["create", "-f", "-"], &object.to_string());
        let case = Case { cluster, namespace, database, target, folder, calm };
        for secret in SECRETS {
            case.create_secret(secret);
        }
        case
    }

    /// The administrator's `kubectl`.
    pub fn kubectl(&self) -> &Kubectl {
        &self.cluster.kubectl
    }

    /// Creates one of [`SECRETS`].
    pub fn create_secret(&self, name: &str) {
        self.create_secret_in(&self.namespace, name);
    }

    /// Creates one of [`SECRETS`] in another namespace.
    pub fn create_secret_in(&self, namespace: &str, name: &str) {
        let host = self.cluster.host_address.to_string();
        let connection = if name == SECRETS[0] {
            self.cluster.source.connection(&host, &self.database)
        } else {
            self.target.connection(&host)
        };
        let data: serde_json::Map<String, Value> =
            connection.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        self.kubectl().feed(&["create", "-n", namespace, "-f", "-"], &secret.to_string());
    }

    /// The source table `TABLE` with `rows` rows in chunks of 40, and its empty target.
    pub fn table(&mut self, table: &str, rows: u64) {
        transfer::create(&self.cluster.source, &mut self.target, &self.database, table, "MergeTree", rows);
    }

    /// A document that moves `TABLE` whole; the resource has the table's name.
    pub fn document(&self, table: &str) -> String {
        self.document_with(table, VISIBLE, FULL_REFRESH)
    }

    /// A document that moves `TABLE`.
    pub fn document_with(&self, table: &str, mode: &str, strategy: &str) -> String {
        Document { name: table, source: (&self.database, table), target: table, mode, strategy }.text()
    }

    /// `kubectl apply`.
    pub fn apply(&self, document: &str) {
        self.kubectl().feed(&["apply", "-n", &self.namespace, "-f", "-"], document);
    }

    /// `kubectl apply` that is refused; what it said.
    pub fn refused(&self, document: &str) -> String {
        let answer = self.kubectl().try_run(&["apply", "-n", &self.namespace, "-f", "-"], document);
        assert!(!answer.success, "it was taken: {}", answer.out);
        answer.err
    }

    /// `kubectl patch` of a transfer's spec, as a merge patch.
    pub fn patch(&self, name: &str, spec: &Value) {
        let patch = json!({"spec": spec}).to_string();
        self.kubectl().run(&["patch", NTR, name, "-n", &self.namespace, "--type=merge", "-p", &patch]);
    }

    /// The transfer now.
    pub fn get(&self, name: &str) -> Value {
        self.kubectl().get(NTR, &self.namespace, name).unwrap_or_else(|| panic!("there is no transfer {name}"))
    }

    /// Deletes a transfer without waiting.
    pub fn delete(&self, name: &str) {
        self.kubectl().run(&["delete", NTR, name, "-n", &self.namespace, "--wait=false"]);
    }

    /// Waits until `done` holds for the transfer.
    pub fn until(&self, name: &str, what: &str, done: impl Fn(&Value) -> bool) -> Value {
        self.kubectl().until(NTR, &self.namespace, what, |object| object["metadata"]["name"] == name && done(object))
    }

    /// Waits for a phase that was seen for the current generation.
    pub fn until_phase(&self, name: &str, phase: &str) -> Value {
        self.until(name, &format!("phase {phase}"), |object| {
            object["status"]["phase"] == phase
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
    }

    /// Waits for a condition with a reason.
    pub fn until_reason(&self, name: &str, kind: &str, reason: &str) -> Value {
        self.until(name, &format!("{kind} with reason {reason}"), |object| {
            condition(object, kind).is_some_and(|found| found["reason"] == reason)
        })
    }

    /// Worker pods of the namespace of one phase of the engine.
    pub fn pods(&self, phase: &str) -> Vec<Value> {
        self.kubectl().list("pods", &self.namespace, &format!("transfer.dpone.io/phase={phase}"))
    }

    /// SIGKILL to the live worker of a phase of the only transfer, from the host.
    pub fn kill_worker(&self, phase: &str) {
        let pod = self.live_worker(phase);
        process::kill(uid(&pod), &["native-transfer", phase]);
    }

    /// The one running worker pod of a phase.
    pub fn live_worker(&self, phase: &str) -> Value {
        let mut live = self.pods(phase);
        live.retain(|pod| pod["status"]["phase"] == "Running");
        assert_eq!(live.len(), 1, "one live worker: {live:?}");
        live.remove(0)
    }

    /// Waits until the worker of a phase is asked to stop.
    pub fn until_stopping(&self, phase: &str) {
        self.kubectl().until("pods", &self.namespace, "the worker asked to stop", |pod| {
            pod["metadata"]["labels"]["transfer.dpone.io/phase"] == phase
                && !pod["metadata"]["deletionTimestamp"].is_null()
        });
    }

    /// Holds the target at a breakpoint; `then` is done when the breakpoint is released.
    pub fn hold(&mut self, breakpoint: Breakpoint) -> u64 {
        self.target.control.set(breakpoint).expect("armed")
    }

    /// Waits until a session is held there.
    pub fn until_held(&mut self, id: u64) {
        // One wait is made for processes; a pod has to be scheduled and started first.
        let mut waits = (0..3).map(|_| self.target.control.wait(id));
        let held = waits.find_map(Result::ok);
        assert!(held.is_some(), "the moment does not come");
    }

    /// Lets the held session go on, or drops it.
    pub fn release(&mut self, id: u64, then: Then) {
        self.target.control.release(id, then).expect("it is held");
    }

    /// The target has exactly what the source has, and nothing of ours is left there.
    pub fn assert_moved(&mut self, table: &str) {
        let expected = transfer::source_content(&self.cluster.source, &self.database, table);
        assert_eq!(transfer::target_content(&mut self.target, table), expected, "{table}");
        self.assert_settled();
    }

    /// The target table is empty, as it was, and nothing of ours is left.
    pub fn assert_untouched(&mut self, table: &str) {
        assert_eq!(transfer::target_content(&mut self.target, table), Vec::<String>::new(), "{table}");
        self.assert_settled();
    }

    /// No stage is left and nothing is in custody.
    pub fn assert_settled(&mut self) {
        assert_eq!(self.target.stages(), Vec::<String>::new());
        assert!(self.target.custody().iter().all(|state| state == "clear"), "something is in custody");
    }

    /// How many publications the target has recorded.
    pub fn receipts(&mut self) -> String {
        self.target.value("SELECT COUNT(*) FROM dpone.dpone_load_receipt")
    }

    /// What a person would look at after a failure.
    pub fn dump(&self) {
        let namespace = self.namespace.as_str();
        for arguments in [
            vec!["get", NTR, "-n", namespace, "-o", "yaml"],
            vec!["get", "pods,pvc", "-n", namespace, "-o", "wide"],
            vec!["get", "events", "-n", namespace],
            vec!["logs", "deployment/native-transfer", "-n", crate::cluster::OPERATOR_NAMESPACE, "--tail=60"],
        ] {
            let answer = self.kubectl().try_run(&arguments, "");
            eprintln!("--- kubectl {}\n{}{}", arguments.join(" "), answer.out, answer.err);
        }
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.dump();
            return;
        }
        // Not waited for: what a case proves about deletion it has proved before.
        self.kubectl().try_run(&["delete", "namespace", &self.namespace, "--wait=false"], "");
        // The server still writes there until it ends with this value.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A condition of a transfer.
pub fn condition<'a>(transfer: &'a Value, kind: &str) -> Option<&'a Value> {
    transfer["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// UID of an object.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("a UID")
}
