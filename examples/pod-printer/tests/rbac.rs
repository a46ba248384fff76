//! The role in `rbac.yaml` is enough, and none of it is too much.

mod world;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kubewright_example_pod_printer::controller;
use kubewright_server::{Authorization, Server, User};
use kubewright_testing::{Fault, Wire};
use world::{Operator, admin, within};

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no printer panics").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn documents() -> (ServiceAccount, Role, RoleBinding) {
    let text = include_str!("../rbac.yaml");
    let [account, role, binding] = text.split("---\n").collect::<Vec<_>>()[..] else {
        panic!("three documents")
    };
    (
        serde_saphyr::from_str(account).expect("a service account"),
        serde_saphyr::from_str(role).expect("a role"),
        serde_saphyr::from_str(binding).expect("a binding"),
    )
}

/// A Pod that is there and one that comes later are printed, with this role and on a server that does not stream lists.
async fn does_its_work(role: &Role) -> bool {
    let server = Server::builder().authorization(Authorization::Rbac).start();
    let server = server.await.expect("a server starts");
    let user = admin(&server);
    let (account, _, binding) = documents();
    user.create(&account).await.expect("the account is created");
    user.create(role).await.expect("the role is created");
    user.create(&binding).await.expect("the binding is created");
    let name = "system:serviceaccount:default:pod-printer";
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default"];
    let wire = Wire::new(server.service_as(User::new(name, groups)));
    wire.plan(|call| match call.query.contains("sendInitialEvents") {
        true => Fault::Refuse {
            code: 422,
            reason: "Invalid",
        },
        false => Fault::None,
    });
    let paper = Paper::default();
    let _operator = Operator::start_on(wire, |_| controller(paper.clone(), &[]));
    let mut pod: Pod = serde_saphyr::from_str(include_str!("../sample.yaml")).expect("a Pod");
    for name in ["early", "late"] {
        pod.metadata.name = Some(name.to_owned());
        user.create(&pod).await.expect("it is created");
        let printed = within(Duration::from_secs(20), async || {
            let text = paper.0.lock().expect("no printer panics").clone();
            let text = String::from_utf8_lossy(&text).into_owned();
            text.contains(&format!("Pod {name}\n")).then_some(())
        });
        if printed.await.is_none() {
            return false;
        }
    }
    true
}

#[tokio::test(start_paused = true)]
async fn operator_needs_exactly_its_role() {
    let (_, role, _) = documents();
    assert!(does_its_work(&role).await, "the role is enough");
    for (number, rule) in role.rules.iter().flatten().enumerate() {
        for verb in &rule.verbs {
            let mut less = role.clone();
            let rules = less.rules.as_mut().expect("rules");
            rules[number].verbs.retain(|other| other != verb);
            let resources = rule.resources.as_deref().unwrap_or_default();
            assert!(
                !does_its_work(&less).await,
                "{verb} of {resources:?} is too much"
            );
        }
    }
}
