//! From the types to the definition: rules are put in their places, every text, list and map gets a bound, and formats that
//! the API server does not know are taken out.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use kube::CustomResourceExt;

use super::rules::{RULES, Rule};
use super::spec::NativeTransfer;

/// The definition's file in `crds/`.
pub const FILE: &str = "transfer.dpone.io_nativetransfers.yaml";

/// First line of the file.
const HEADER: &str = "# Printed by `native-transfer-operator crd`; never edited.\n";

/// Bound of a text that has none of its own, characters. Conditions have messages up to this length.
const TEXT_CHARS_MAX: i64 = 1024;

/// Bound of a list or a map that has none of its own.
const MEMBERS_MAX: i64 = 64;

/// Why there is no definition. Each is a bug of the types, found by this package's tests.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// A rule stands where the schema has no object.
    #[error("rule {0} has no place in the schema")]
    NoPlace(&'static str),
    /// The definition has no schema.
    #[error("the definition has no schema")]
    NoSchema,
    /// The definition cannot be written.
    #[error("the definition cannot be written as YAML")]
    Yaml(#[from] serde_norway::Error),
}

/// The definition of `NativeTransfer`.
///
/// # Errors
/// [`DefinitionError`].
pub fn native_transfer() -> Result<CustomResourceDefinition, DefinitionError> {
    let mut definition = NativeTransfer::crd();
    // The schema is too large for the annotation that client-side apply keeps.
    let annotations = definition.metadata.annotations.get_or_insert_default();
    annotations.insert("argocd.argoproj.io/sync-options".to_owned(), "ServerSideApply=true".to_owned());
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let root = schema.ok_or(DefinitionError::NoSchema)?;
        bound(root);
        for rule in RULES {
            place(root, rule)?;
        }
    }
    Ok(definition)
}

/// Every definition as YAML, the bytes of `crds/`.
///
/// # Errors
/// [`DefinitionError`].
pub fn yaml() -> Result<String, DefinitionError> {
    Ok(format!("{HEADER}{}", serde_norway::to_string(&native_transfer()?)?))
}

fn place(root: &mut JSONSchemaProps, rule: &Rule) -> Result<(), DefinitionError> {
    let node = rule.at.iter().try_fold(root, |node, key| node.properties.as_mut()?.get_mut(*key));
    let node = node.ok_or(DefinitionError::NoPlace(rule.name))?;
    node.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
        rule: rule.rule.to_owned(),
        message: Some(rule.message.to_owned()),
        field_path: rule.field_path.map(str::to_owned),
        reason: Some(rule.reason.to_owned()),
        ..ValidationRule::default()
    });
    Ok(())
}

fn bound(node: &mut JSONSchemaProps) {
    match node.format.as_deref() {
        Some("uint32" | "uint16" | "uint8") => node.format = Some("int32".to_owned()),
        Some("uint64" | "uint") => node.format = Some("int64".to_owned()),
        _ => {}
    }
    match node.type_.as_deref() {
        // A format of times has a length of its own, and an enum its members.
        Some("string") if node.format.is_none() && node.enum_.is_none() => {
            node.max_length.get_or_insert(TEXT_CHARS_MAX);
        }
        Some("array") => {
            node.max_items.get_or_insert(MEMBERS_MAX);
        }
        Some("object") if node.additional_properties.is_some() => {
            node.max_properties.get_or_insert(MEMBERS_MAX);
        }
        _ => {}
    }
    children(node).for_each(bound);
}

fn children(node: &mut JSONSchemaProps) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let items = node.items.as_mut().and_then(|items| match items {
        JSONSchemaPropsOrArray::Schema(schema) => Some(&mut **schema),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    });
    let values = node.additional_properties.as_mut().and_then(|values| match values {
        JSONSchemaPropsOrBool::Schema(schema) => Some(&mut **schema),
        JSONSchemaPropsOrBool::Bool(_) => None,
    });
    node.properties.iter_mut().flat_map(|properties| properties.values_mut()).chain(items).chain(values)
}
