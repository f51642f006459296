//! The frozen plan: the immutable part of a resource as the document that a worker reads.

use crate::canon::{Json, decode_object, strict};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::manifest::{self, Plan};

/// Longest manifest, bytes of its strict canonical form. The plan travels in an annotation of the pod, and all annotations
/// of an object together may have 256 KiB.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;

/// Longest document: a manifest, Kubernetes names, one time and the frame around them.
const DOCUMENT_BYTES_MAX: usize = MANIFEST_BYTES_MAX + 2 * 1024;

/// Longest name of an object or a namespace in Kubernetes.
const NAME_BYTES_MAX: usize = 253;

/// Longest time of an interval's end that any reader of ours accepts.
const INTERVAL_BYTES_MAX: usize = 64;

/// `{apiVersion, kind, metadata: {name, namespace}, spec: {manifest, interval?}}` in strict canonical JSON: a resource
/// reduced to what is immutable, so that a worker reads it as any other document and plans exactly as the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenPlan {
    namespace: String,
    name: String,
    manifest: Json,
    interval_end: Option<String>,
    document: String,
}

impl FrozenPlan {
    /// Freezes the parts of a resource.
    ///
    /// # Errors
    /// `native_transfer.frozen_plan_too_large` when the manifest exceeds [`MANIFEST_BYTES_MAX`],
    /// `native_transfer.frozen_plan_invalid` when it is no object, holds what the reader of documents would not read back
    /// unchanged (a control character, an integer beyond 64 bits), or a name or time is longer than any can be. That the
    /// manifest describes a transfer is not asked here but by [`Self::plan`].
    pub fn new(namespace: &str, name: &str, manifest: &Json, interval_end: Option<&str>) -> Result<Self, Refusal> {
        if strict(manifest).len() > MANIFEST_BYTES_MAX {
            return Err(Refusal::new(
                code::FROZEN_PLAN_TOO_LARGE,
                "the manifest has more than 64 KiB: it cannot travel to a worker pod; shorten texts and type overrides",
            ));
        }
        let named = |text: &str, most: usize| !text.is_empty() && text.len() <= most;
        let bounded = named(name, NAME_BYTES_MAX)
            && named(namespace, NAME_BYTES_MAX)
            && interval_end.is_none_or(|end| end.len() <= INTERVAL_BYTES_MAX);
        let plan = FrozenPlan {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            manifest: manifest.clone(),
            interval_end: interval_end.map(str::to_owned),
            document: document(namespace, name, manifest, interval_end)?,
        };
        if bounded && plan.reads_back() { Ok(plan) } else { Err(invalid()) }
    }

    /// Reads a frozen plan: exactly the bytes that [`Self::new`] makes, nothing else.
    ///
    /// # Errors
    /// `native_transfer.frozen_plan_invalid`, `native_transfer.frozen_plan_too_large`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(invalid());
        }
        let document = decode_object(bytes).map(Json::Object).map_err(|_| invalid())?;
        let text = |at: &[&str]| at.iter().try_fold(&document, |json, key| json.get(key)).and_then(Json::as_str);
        let manifest = document.get("spec").and_then(|spec| spec.get("manifest")).ok_or_else(invalid)?;
        let names = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
        let (Some(namespace), Some(name)) = names else { return Err(invalid()) };
        let plan = FrozenPlan::new(namespace, name, manifest, text(&["spec", "interval", "end"]))?;
        if plan.document.as_bytes() == bytes { Ok(plan) } else { Err(invalid()) }
    }

    /// The document: what the annotation carries and the worker's file holds, byte for byte.
    pub fn text(&self) -> &str {
        &self.document
    }

    /// SHA-256 of [`Self::text`]: `--plan-sha256`, `status.run.planSHA256`.
    pub fn sha256(&self) -> Digest {
        Digest::of(self.document.as_bytes())
    }

    /// Namespace of the resource.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Name of the resource.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The manifest.
    pub fn manifest(&self) -> &Json {
        &self.manifest
    }

    /// End of the interval.
    pub fn interval_end(&self) -> Option<&str> {
        self.interval_end.as_deref()
    }

    /// The plan that a worker will make of it.
    ///
    /// # Errors
    /// Those of [`manifest::parse`].
    pub fn plan(&self) -> Result<Plan, Refusal> {
        manifest::parse(&self.document, None, None)
    }

    /// The reader of the command line knows YAML, of which JSON is almost a part; what lies outside of it is found here
    /// and not by a worker.
    fn reads_back(&self) -> bool {
        manifest::processes(&self.document).is_ok_and(|processes| match processes.as_slice() {
            [process] => {
                process.selector == self.name
                    && process.manifest == self.manifest
                    && process.interval_end == self.interval_end
            }
            _ => false,
        })
    }
}

fn document(namespace: &str, name: &str, manifest: &Json, interval_end: Option<&str>) -> Result<String, Refusal> {
    let mut spec = vec![("manifest", manifest.clone())];
    if let Some(end) = interval_end {
        spec.push(("interval", Json::object([("end", Json::from(end))])));
    }
    let document = Json::object([
        ("apiVersion", Json::from(manifest::API_VERSION)),
        ("kind", Json::from("NativeTransfer")),
        ("metadata", Json::object([("name", Json::from(name)), ("namespace", Json::from(namespace))])),
        ("spec", Json::object(spec)),
    ]);
    // Canonical JSON is UTF-8 by construction.
    String::from_utf8(strict(&document)).map_err(|_| invalid())
}

fn invalid() -> Refusal {
    Refusal::new(
        code::FROZEN_PLAN_INVALID,
        "the frozen plan is not a NativeTransfer reduced to manifest and interval, in the bytes that its reader gives back",
    )
}
