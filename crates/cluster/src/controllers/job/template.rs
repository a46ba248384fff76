//! The pods of a job, made from its template.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

use super::TRACKING;
use super::per_index::{FAILURES, Failures, IGNORED};
use crate::pods::claim::controller_reference;
use crate::pods::from_template;

/// Carries the index of a pod, as a label and as an annotation.
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The index of a pod of an indexed job.
pub(crate) fn index_of(pod: &Pod) -> Option<i32> {
    let text = pod.metadata.annotations.as_ref()?.get(INDEX)?;
    text.parse().ok().filter(|index| *index >= 0)
}

/// A new pod; with an index if the job gives its pods one, and with the failures of that index if they are limited.
pub(super) fn pod(job: &Job, index: Option<i32>, failures: Option<Failures>) -> Pod {
    let template = job.spec.as_ref().map(|spec| spec.template.clone());
    let owner = controller_reference(job);
    let namespace = job.metadata.namespace.clone();
    let mut pod = from_template(&template.unwrap_or_default(), namespace, owner);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|name| name == TRACKING) {
        finalizers.push(TRACKING.to_owned());
    }
    if let Some(index) = index {
        give_index(job, &mut pod, index);
    }
    if let Some(Failures { counted, ignored }) = failures {
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.insert(FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED.to_owned(), ignored.to_string());
        }
    }
    pod
}

fn give_index(job: &Job, pod: &mut Pod, index: i32) {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let own = format!("{name}-{index}");
    pod.metadata.generate_name = Some(format!("{own}-"));
    for texts in [&mut pod.metadata.labels, &mut pod.metadata.annotations] {
        let texts = texts.get_or_insert_default();
        texts.insert(INDEX.to_owned(), index.to_string());
    }
    let spec = pod.spec.get_or_insert_default();
    spec.hostname.get_or_insert(own);
    let containers = spec.init_containers.iter_mut().flatten();
    containers.chain(&mut spec.containers).for_each(tell_index);
}

/// Tells a container its index, unless the user has another idea of that variable.
fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector {
        api_version: None,
        field_path: format!("metadata.labels['{INDEX}']"),
    };
    variables.push(EnvVar {
        name: VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(field),
            ..EnvVarSource::default()
        }),
    });
}
