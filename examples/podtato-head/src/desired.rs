//! What the Deployments and Services of a podtato head should be.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector,
    PodTemplateSpec, Probe, Service, ServicePort,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::{PodtatoHeadAppSpec, ServiceType, version_of};
use crate::part::Part;

/// The port of every part, of its pods and of its Service.
pub const PORT: u16 = 9000;

/// The name of the Deployment and the Service of a part.
pub fn name(app: &str, part: Part) -> String {
    format!("{app}-{part}")
}

/// Fills in what a part needs of its Deployment.
pub(crate) fn deployment(
    app: &str,
    spec: &PodtatoHeadAppSpec,
    part: Part,
    image: &str,
    object: &mut Deployment,
) {
    let labels = labels(app, part);
    object.metadata.labels = Some(labels.clone());
    object.spec.replicas = Some(spec.replicas_of(part));
    object.spec.progress_deadline_seconds = Some(spec.deadline());
    object.spec.selector.match_labels = Some(labels.clone());
    object.spec.template = template(app, part, image, labels);
}

/// Fills in what a part needs of its Service.
pub(crate) fn service(app: &str, spec: &PodtatoHeadAppSpec, part: Part, object: &mut Service) {
    object.metadata.labels = Some(labels(app, part));
    let kind = match part {
        Part::Entry => spec.service_type.unwrap_or(ServiceType::ClusterIP),
        _ => ServiceType::ClusterIP,
    };
    let service = object.spec.get_or_insert_default();
    service.type_ = Some(kind.as_str().to_owned());
    service.selector = Some(labels(app, part));
    service.ports = Some(vec![ServicePort {
        name: Some("http".to_owned()),
        port: i32::from(PORT),
        target_port: Some(IntOrString::String("http".to_owned())),
        ..ServicePort::default()
    }]);
}

fn labels(app: &str, part: Part) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "podtato-head"),
        ("app.kubernetes.io/instance", app),
        ("app.kubernetes.io/component", part.name()),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn template(
    app: &str,
    part: Part,
    image: &str,
    labels: BTreeMap<String, String>,
) -> PodTemplateSpec {
    let mut template = PodTemplateSpec::default();
    template.metadata.get_or_insert_default().labels = Some(labels);
    let container = Container {
        name: "server".to_owned(),
        image: Some(image.to_owned()),
        args: Some(vec![
            format!("--part={part}"),
            format!("--listen=$(POD_IP):{PORT}"),
        ]),
        env: Some(vec![
            from_field("POD_IP", "status.podIP"),
            from_field("POD_NAME", "metadata.name"),
            plain("PODTATO_APP", app),
            plain("PODTATO_VERSION", version_of(image)),
        ]),
        ports: Some(vec![ContainerPort {
            name: Some("http".to_owned()),
            container_port: i32::from(PORT),
            ..ContainerPort::default()
        }]),
        readiness_probe: Some(probe("/readyz", 1)),
        liveness_probe: Some(probe("/healthz", 10)),
        ..Container::default()
    };
    template.spec.get_or_insert_default().containers = vec![container];
    template
}

fn probe(path: &str, period: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("http".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        ..Probe::default()
    }
}

fn plain(name: &str, value: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..EnvVar::default()
    }
}

fn from_field(name: &str, path: &str) -> EnvVar {
    let field = ObjectFieldSelector {
        field_path: path.to_owned(),
        ..ObjectFieldSelector::default()
    };
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(field),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}
