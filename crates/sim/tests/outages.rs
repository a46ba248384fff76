//! Outages: whoever tries again without a pause is found, and the runtime's own backing off is not.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{Context, Controller, Error, Outcome, from_fn};
use kubewright_sim::{Campaign, FaultKind, Report, Violation};

/// What becomes of an error.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// The creation is tried until it succeeds.
    Insists,
    /// As before, with a pause that does not grow.
    Polls,
    /// The error is returned.
    Returns,
}

/// For each Secret a ConfigMap of the same name.
async fn copy(form: Form, secret: Arc<Secret>, cx: Context) -> Result<Outcome, Error> {
    if cx.client().get::<ConfigMap>(cx.key()).await?.is_some() {
        return Ok(Outcome::done());
    }
    let mut copy = ConfigMap::default();
    copy.metadata.name = secret.metadata.name.clone();
    copy.metadata.namespace = secret.metadata.namespace.clone();
    loop {
        match (cx.client().create(&copy).await, form) {
            (Ok(_), _) => return Ok(Outcome::done()),
            (Err(error), Form::Returns) => return Err(error.into()),
            (Err(_), Form::Insists) => {}
            (Err(_), Form::Polls) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}

fn run(form: Form) -> Report {
    let campaign = Campaign::new("copy", move |process| {
        let reconciler = from_fn(move |secret, cx| copy(form, secret, cx));
        let controller = Controller::of::<Secret>("copy").reconciler(reconciler);
        process.manager().name("copy").controller(controller)
    });
    campaign
        .cluster(|cluster| cluster.without_controllers())
        .step("create", async |user| {
            let mut secret = Secret::default();
            secret.metadata.name = Some("a".to_owned());
            secret.metadata.namespace = Some("default".to_owned());
            user.create(&secret).await?;
            Ok(())
        })
        .only([FaultKind::Outage, FaultKind::ReadOnly])
        .run()
}

#[test]
fn attempts_without_a_growing_pause_are_found() {
    for form in [Form::Insists, Form::Polls] {
        let report = run(form);
        let [failure] = &report.failures[..] else {
            panic!("{report}")
        };
        assert!(failure.plan.has(&[FaultKind::ReadOnly]), "{report}");
        let Violation::Attempts { by } = &failure.violation else {
            panic!("{report}")
        };
        assert_eq!(by, "copy default/a");
        assert!(failure.violation.oracle().starts_with("O6"), "{report}");
    }
}

#[test]
fn work_queue_and_informers_back_off_and_recover() {
    let report = run(Form::Returns);
    assert!(report.is_clean() && report.plans == 2, "{report}");
}
