//! `kubectl` as a person uses it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a state may take to come.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// `kubectl` of the cluster, as an administrator.
#[derive(Debug, Clone)]
pub struct Kubectl {
    /// The program.
    pub program: PathBuf,
    /// Who it is, and where the API server is.
    pub kubeconfig: PathBuf,
}

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    /// Whether it succeeded.
    pub success: bool,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Kubectl {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command that may be refused, with `input` on its standard input.
    pub fn try_run(&self, arguments: &[&str], input: &str) -> Answer {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that does not read ends with the pipe closed, which is no failure of the command.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("kubectl ends");
        Answer {
            success: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command that succeeds; returns its standard output.
    pub fn run(&self, arguments: &[&str]) -> String {
        self.feed(arguments, "")
    }

    /// Runs a command that succeeds, with `input` on its standard input.
    pub fn feed(&self, arguments: &[&str], input: &str) -> String {
        let answer = self.try_run(arguments, input);
        assert!(answer.success, "kubectl {}: {}", arguments.join(" "), answer.err);
        answer.out
    }

    /// The JSON of a command that succeeds.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.extend(["-o", "json"]);
        serde_json::from_str(&self.run(&arguments)).expect("JSON of kubectl")
    }

    /// One object, or none.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let out = self.run(&["get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "json"]);
        (!out.trim().is_empty()).then(|| serde_json::from_str(&out).expect("JSON of kubectl"))
    }

    /// Objects of a kind with a label.
    pub fn list(&self, kind: &str, namespace: &str, selector: &str) -> Vec<Value> {
        let mut list = self.json(&["get", kind, "-n", namespace, "-l", selector]);
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Waits for an object of the namespace for which `done` holds; objects that are deleted meanwhile do not count.
    ///
    /// # Panics
    /// It did not come in [`PATIENCE`]; the last state of each object is shown.
    pub fn until(&self, kind: &str, namespace: &str, what: &str, mut done: impl FnMut(&Value) -> bool) -> Value {
        let mut watch = Watch::start(self, kind, namespace);
        let patience = Instant::now() + PATIENCE;
        let mut last = Value::Null;
        loop {
            let left = patience.saturating_duration_since(Instant::now());
            match watch.events.recv_timeout(left) {
                Ok(event) => {
                    let deleted = event["type"] == "DELETED";
                    let object = event.get("object").cloned().unwrap_or_default();
                    if !deleted && done(&object) {
                        return object;
                    }
                    last = object;
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{kind} in {namespace}: {what}: not in {PATIENCE:?}; last seen:\n{last:#}")
                }
                // The API server ends long watches; the next one begins with what there is.
                Err(RecvTimeoutError::Disconnected) => watch = Watch::start(self, kind, namespace),
            }
        }
    }

    /// Waits until an object is gone.
    ///
    /// # Panics
    /// It was still there after [`PATIENCE`].
    pub fn until_gone(&self, kind: &str, namespace: &str, name: &str) {
        let object = format!("{kind}/{name}");
        let timeout = format!("--timeout={}s", PATIENCE.as_secs());
        self.run(&["wait", "--for=delete", &object, "-n", namespace, &timeout]);
    }
}

/// A running `kubectl get --watch`; it ends with this value.
struct Watch {
    child: Child,
    events: mpsc::Receiver<Value>,
}

impl Watch {
    fn start(kubectl: &Kubectl, kind: &str, namespace: &str) -> Watch {
        let mut command =
            kubectl.command(&["get", kind, "-n", namespace, "--watch", "--output-watch-events", "-o", "json"]);
        let mut child = command.stderr(Stdio::null()).spawn().expect("kubectl starts");
        let stdout = child.stdout.take().expect("a pipe");
        Watch { child, events: read(stdout) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(stdout: ChildStdout) -> mpsc::Receiver<Value> {
    let (sender, events) = mpsc::channel();
    std::thread::spawn(move || {
        let documents = serde_json::Deserializer::from_reader(std::io::BufReader::new(stdout)).into_iter::<Value>();
        // A killed kubectl leaves half a document, which is the end as well.
        for event in documents.map_while(Result::ok) {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    events
}
