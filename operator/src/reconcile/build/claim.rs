//! The journal claim.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

use super::{Owner, labels};
use crate::names;
use crate::reconcile::validate::Settings;

/// The claim of a transfer's journal.
///
/// It has no ownerReference: a foreground deletion of the transfer would delete it at once, whatever finalizers say.
pub fn claim(owner: &Owner<'_>, settings: &Settings) -> PersistentVolumeClaim {
    let requests = BTreeMap::from([("storage".to_owned(), Quantity(settings.journal_size.clone()))]);
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(names::claim(owner.uid)),
            namespace: Some(owner.namespace.to_owned()),
            labels: Some(labels(owner)),
            annotations: Some(BTreeMap::from([(names::TRANSFER_ANNOTATION.to_owned(), owner.name.to_owned())])),
            finalizers: Some(vec![names::JOURNAL_CUSTODY.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec![settings.access_mode.as_str().to_owned()]),
            resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
            storage_class_name: settings.storage_class.clone(),
            volume_mode: Some("Filesystem".to_owned()),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
