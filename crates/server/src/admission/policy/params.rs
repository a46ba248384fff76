//! The parameters of a policy: objects of any kind that a binding names or selects.

use std::sync::Arc;

use kubewright_schema::selector::LabelSelector;
use serde_json::Value;

use crate::admission::AdmissionChain;
use crate::admission::PolicyError;
use crate::http::path::GroupVersion;
use crate::kinds::value::text;
use crate::object::StoredLabels;
use crate::resource::Served;
use crate::storage::At;

/// The kind of a policy's parameters.
#[derive(Debug)]
pub(super) struct ParamKind {
    api_version: String,
    kind: String,
}

impl ParamKind {
    pub(super) fn read(value: &Value) -> Option<Self> {
        value.is_object().then(|| Self {
            api_version: text(&value["apiVersion"]).to_owned(),
            kind: text(&value["kind"]).to_owned(),
        })
    }

    fn served(&self, chain: &AdmissionChain) -> Option<Arc<Served>> {
        let resources = chain.registry.now();
        let gv = GroupVersion::of_api_version(&self.api_version);
        let is_it = |served: &&Arc<Served>| *served.resource.kind == *self.kind;
        resources.of(&gv).find(is_it).cloned()
    }

    /// The parameters that a reference means for a request in a namespace.
    pub(super) async fn collect(
        &self,
        chain: &AdmissionChain,
        reference: &Value,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, PolicyError> {
        if !reference.is_object() {
            return Ok(vec![Value::Null]);
        }
        let served = self.served(chain).ok_or_else(|| {
            format!(
                "failed to find resource referenced by paramKind: '{}, Kind={}'",
                self.api_version, self.kind
            )
        })?;
        let namespace = place(&served, text(&reference["namespace"]), namespace)?;
        let found = find(chain, &served, reference, namespace).await?;
        let deny = text(&reference["parameterNotFoundAction"]) == "Deny";
        if found.is_empty() && deny {
            return Err(
                "no params found for policy binding with `Deny` parameterNotFoundAction".into(),
            );
        }
        Ok(found)
    }
}

/// The namespace where parameters are.
fn place<'a>(
    served: &Served,
    named: &'a str,
    of_request: Option<&'a str>,
) -> Result<Option<&'a str>, PolicyError> {
    match (served.is_namespaced(), named, of_request) {
        (false, "", _) => Ok(None),
        (false, ..) => {
            Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into())
        }
        (true, "", Some(namespace)) => Ok(Some(namespace)),
        (true, "", None) => Err(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                .into(),
        ),
        (true, named, _) => Ok(Some(named)),
    }
}

async fn find(
    chain: &AdmissionChain,
    served: &Served,
    reference: &Value,
    namespace: Option<&str>,
) -> Result<Vec<Value>, PolicyError> {
    let name = text(&reference["name"]);
    let records: Vec<_> = if name.is_empty() {
        let selector = match &reference["selector"] {
            Value::Null => LabelSelector::everything(),
            selector => LabelSelector::from_object(selector).map_err(|e| e.to_string())?,
        };
        let snapshot = served.collection.snapshot(At::Latest);
        let snapshot = snapshot.map_err(|e| e.to_string())?;
        let prefix = namespace.map_or(String::new(), |namespace| format!("{namespace}/"));
        let records = snapshot.range(&prefix, None);
        records
            .filter(|record| selector.matches(&StoredLabels(record.labels())))
            .cloned()
            .collect()
    } else {
        let key = served.key(namespace, name);
        served.collection.get(&key).into_iter().collect()
    };
    let mut found = Vec::with_capacity(records.len());
    for record in records {
        let value = chain.converter.revive(served, &record).await;
        found.push(value.map_err(|e| e.to_string())?);
    }
    Ok(found)
}
