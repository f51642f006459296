//! What was written through the API server, from its audit log.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;

/// A place in the log.
#[derive(Debug, Clone, Copy)]
pub struct Mark(u64);

/// The end of the log now.
pub fn mark(log: &Path) -> Mark {
    Mark(std::fs::metadata(log).map(|meta| meta.len()).unwrap_or_default())
}

/// Writes since a mark by users whose name has `user`, as `VERB RESOURCE NAMESPACE/NAME`; reads are left out.
pub fn writes(log: &Path, since: Mark, user: &str) -> Vec<String> {
    let mut file = File::open(log).expect("an audit log");
    file.seek(SeekFrom::Start(since.0)).expect("a place in the log");
    let mut found = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line.expect("a line");
        // The last line may be half written.
        let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let verb = word(&event["verb"]);
        let reads = ["get", "list", "watch"].contains(&verb.as_str());
        if reads || event["stage"] != "ResponseComplete" || !word(&event["user"]["username"]).contains(user) {
            continue;
        }
        let object = &event["objectRef"];
        let resource = [word(&object["resource"]), word(&object["subresource"])].join("/");
        found.push(format!("{verb} {resource} {}/{}", word(&object["namespace"]), word(&object["name"])));
    }
    found
}
