//! The storage class that the provisioner of `e2e/cluster/local` serves.

use serde_json::{Value, json};

/// Default class; a volume is made when its first pod is scheduled.
pub(crate) fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "testkit.native-transfer/local",
        "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete", "allowVolumeExpansion": false,
    })
}
