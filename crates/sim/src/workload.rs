//! Workloads as files: a directory of YAML is what people do to the cluster, step by step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::{self, Scope};
use kubewright_runtime::Error;
use serde_json::Value;

use crate::campaign::Campaign;
use crate::target;
use crate::user::User;

/// The folder of what is there before the first step.
const SETUP: &str = "setup";
/// The largest file that is read.
const MAX_FILE: u64 = 8 << 20;

/// Why a directory is not a workload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A file or a directory cannot be read.
    #[error("{} cannot be read", .path.display())]
    Read {
        /// Where the file or directory is.
        path: PathBuf,
        /// Why it cannot be read.
        #[source]
        source: io::Error,
    },
    /// A file is not YAML, or not of objects.
    #[error("{} does not hold Kubernetes objects: {why}", .path.display())]
    Content {
        /// Where the file or directory is.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A directory has no steps.
    #[error("{} has no step: a file whose name ends in .yaml is one", .0.display())]
    Empty(PathBuf),
}

/// What a step does with its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Apply,
    Delete,
}

impl Campaign {
    /// Takes the workload from a directory. What is in its folder `setup` is created before anything starts: definitions,
    /// namespaces. Each file `*.yaml` beside it is a step, in the order of their names: its objects are applied, as `kubectl
    /// apply --server-side` does, or deleted if the name ends in `.delete.yaml`.
    ///
    /// # Errors
    /// When a file cannot be read, does not hold objects, or the directory has no step.
    pub fn workload(mut self, directory: &Path) -> Result<Self, WorkloadError> {
        let setup = directory.join(SETUP);
        if setup.is_dir() {
            for file in files(&setup)? {
                for object in objects(&file)? {
                    self = self.install(&object);
                }
            }
        }
        let steps = files(directory)?;
        if steps.is_empty() {
            return Err(WorkloadError::Empty(directory.to_owned()));
        }
        for file in steps {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            let deed = if name.ends_with(".delete") {
                Deed::Delete
            } else {
                Deed::Apply
            };
            let objects = objects(&file)?;
            self = self.step(&name, async move |user| {
                carry_out(deed, &objects, &user).await
            });
        }
        Ok(self)
    }
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, WorkloadError> {
    let failed = |source| WorkloadError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().and_then(|it| it.to_str());
        if path.is_file() && matches!(extension, Some("yaml" | "yml")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn objects(path: &Path) -> Result<Vec<Value>, WorkloadError> {
    let failed = |source| WorkloadError::Read {
        path: path.to_owned(),
        source,
    };
    let wrong = |why: String| WorkloadError::Content {
        path: path.to_owned(),
        why,
    };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(wrong(format!("it has more than {MAX_FILE} bytes")));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| wrong(error.to_string()))?;
    let documents = documents.into_iter().filter(|document| !document.is_null());
    let documents: Vec<Value> = documents.collect();
    for object in &documents {
        let named = ["apiVersion", "kind"]
            .iter()
            .all(|name| object[name].is_string());
        if !named || !object["metadata"]["name"].is_string() {
            return Err(wrong(
                "an object has apiVersion, kind and metadata.name".to_owned(),
            ));
        }
    }
    Ok(documents)
}

async fn carry_out(deed: Deed, objects: &[Value], user: &User) -> Result<(), Error> {
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        let kind = object.types.as_ref().map(GroupVersionKind::try_from);
        let kind = kind
            .transpose()
            .map_err(|error| Error::msg(error.to_string()))?;
        let kind = kind.ok_or_else(|| Error::msg("an object has a kind"))?;
        let (resource, capabilities) = discovery::pinned_kind(&user.client(), &kind).await?;
        let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
        let (api, key): (Api<DynamicObject>, _) = match capabilities.scope {
            Scope::Namespaced => (
                Api::namespaced_with(user.client(), namespace, &resource),
                format!("{namespace}/"),
            ),
            Scope::Cluster => (Api::all_with(user.client(), &resource), String::new()),
        };
        let name = object.metadata.name.clone().unwrap_or_default();
        match deed {
            Deed::Delete => drop(api.delete(&name, &DeleteParams::default()).await?),
            Deed::Apply => {
                let how = PatchParams::apply("user").force();
                api.patch(&name, &how, &Patch::Apply(&object)).await?;
                let resource = target::resource(&resource.group, &resource.plural);
                user.note((resource, format!("{key}{name}")));
            }
        }
    }
    Ok(())
}
