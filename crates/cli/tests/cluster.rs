//! The golden projects on a cluster of ours: installed, deployed, sampled, and gone without a trace.

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use support::{folder, kubewright, repository};

/// How long an answer may take before a test fails.
const LIMIT: Duration = Duration::from_secs(60);

/// A cluster in a process of its own, which ends with this value.
struct Cluster {
    process: Child,
    kubeconfig: PathBuf,
    _around: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        let (around, place) = folder("cluster");
        let kubeconfig = place.join("kubeconfig");
        let mut process = Command::new(env!("CARGO_BIN_EXE_kubewright"))
            .args(["up", "--port", "0", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        let lines = BufReader::new(process.stdout.take().expect("it is a pipe")).lines();
        let ready = lines
            .map_while(Result::ok)
            .any(|line| line.contains("Ctrl-C stops it"));
        assert!(ready, "the cluster starts");
        Self {
            process,
            kubeconfig,
            _around: around,
        }
    }

    /// Calls a command about a golden project on this cluster.
    fn call(&self, project: &str, line: &str) -> support::Called {
        let place = repository().join("testdata/projects").join(project);
        let inventory = repository().join(format!("testdata/inventories/{project}.json"));
        let text = |path: &Path| path.display().to_string();
        let (inventory, kubeconfig) = (text(&inventory), text(&self.kubeconfig));
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--kubeconfig", &kubeconfig, "--inventory", &inventory]);
        kubewright(&place, &words)
    }

    /// A client of the administrator, which gives up on an answer that does not come.
    async fn client(&self) -> kube::Client {
        let config = Kubeconfig::read_from(&self.kubeconfig).expect("it is a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(config, &options).await;
        let mut config = config.expect("it can be used");
        config.read_timeout = Some(LIMIT);
        kube::Client::try_from(config).expect("a client")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn projects_are_deployed_and_undeployed_without_a_trace() {
    let cluster = Cluster::start();
    for (project, samples) in [
        ("single", &[][..]),
        (
            "multigroup",
            &[
                "crew_v1_captain",
                "crew_v2_captain",
                "ship_v1_harbor",
                "ship_v1beta1_frigate",
            ],
        ),
        ("external", &[]),
    ] {
        let said = cluster
            .call(project, "deploy --image example.com/manager:1")
            .works();
        assert!(said.contains("controller-manager is ready"), "{said}");
        let said = cluster
            .call(project, "deploy --image example.com/manager:1")
            .works();
        assert!(
            !said.contains("created"),
            "{project} is there already: {said}"
        );
        for sample in samples {
            let line = format!("deploy --manifests config/samples/{sample}.yaml");
            cluster.call(project, &line).works();
        }
        let said = cluster.call(project, "undeploy").works();
        assert!(said.contains("Nothing of it is left"), "{said}");
        let said = cluster.call(project, "undeploy").works();
        assert!(
            !said.contains("deleted"),
            "{project} is gone already: {said}"
        );
    }
}

#[test]
fn webhooks_that_nobody_answers_can_be_left_out() {
    let cluster = Cluster::start();
    cluster.call("single", "deploy").works();
    let sample = "deploy --manifests config/samples/webapp_v1_guestbook.yaml";
    let said = cluster.call("single", sample).fails();
    assert!(
        said.contains("single-webhook-service"),
        "pods are simulated here: {said}"
    );
    let said = cluster.call("single", "deploy --without-webhooks").works();
    assert!(
        said.contains("single-mutating-webhook-configuration deleted"),
        "{said}"
    );
    assert!(
        said.contains("Guestbook serve their stored version alone"),
        "{said}"
    );
    cluster.call("single", sample).works();
    let other = "deploy --manifests config/samples/webapp_v2_guestbook.yaml";
    let said = cluster.call("single", other).fails();
    assert!(said.contains("does not know the kind Guestbook"), "{said}");
    cluster.call("single", "undeploy").works();
}

#[test]
fn kinds_are_installed_and_uninstalled() {
    let cluster = Cluster::start();
    let said = cluster.call("cluster-scoped", "install --dry-run").works();
    assert!(said.contains("dry run"), "{said}");
    for _ in 0..2 {
        let said = cluster.call("cluster-scoped", "install").works();
        assert!(
            said.contains("tenants.platform.example.com is ready"),
            "{said}"
        );
        assert!(said.contains("Next: kubewright run;"), "{said}");
    }
    let said = cluster.call("single", "install").works();
    let hint = "Guestbook: a webhook of the manager converts";
    let next = "Next: kubewright deploy, or kubewright dev";
    assert!(said.contains(hint) && said.contains(next), "{said}");
    cluster.call("single", "uninstall").works();
    let sample = "deploy --manifests config/samples/platform_v1alpha1_tenant.yaml";
    cluster.call("cluster-scoped", sample).works();
    cluster.call("cluster-scoped", "uninstall").works();
    // It wants a ServiceMonitor, and there is nobody who knows what that is.
    let said = cluster.call("cluster-scoped", "deploy").fails();
    assert!(
        said.contains("does not know the kind ServiceMonitor"),
        "{said}"
    );
    cluster.call("cluster-scoped", "undeploy").works();
}

#[tokio::test(flavor = "multi_thread")]
async fn install_applies_on_the_server_and_leaves_fields_of_others_alone() {
    let cluster = Cluster::start();
    let name = "tenants.platform.example.com";
    cluster.call("cluster-scoped", "install").works();
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client().await);
    let installed = definitions.get(name).await.expect("it is installed");
    let applied = installed.managed_fields().iter().find(|fields| {
        fields.manager.as_deref() == Some("kubewright")
            && fields.operation.as_deref() == Some("Apply")
    });
    assert!(applied.is_some(), "{:?}", installed.managed_fields());
    let last = "kubectl.kubernetes.io/last-applied-configuration";
    assert!(!installed.annotations().contains_key(last));

    let note = Patch::Merge(json!({"metadata": {"annotations": {"team": "red"}}}));
    let how = PatchParams::default();
    let noted = definitions.patch(name, &how, &note).await;
    noted.expect("it is noted");
    cluster.call("cluster-scoped", "install").works();
    let installed = definitions.get(name).await.expect("it is installed");
    let note = installed.annotations().get("team");
    assert_eq!(note.map(String::as_str), Some("red"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_of_an_image_is_scaled_by_its_subresource() {
    let cluster = Cluster::start();
    cluster.call("multigroup", "install").works();
    let sample = "deploy --manifests config/samples/cache_v1alpha1_memcached.yaml";
    cluster.call("multigroup", sample).works();
    let kind = GroupVersionKind::gvk("cache.testproject.org", "v1alpha1", "Memcached");
    let kind = ApiResource::from_gvk(&kind);
    let kind: Api<DynamicObject> = Api::default_namespaced_with(cluster.client().await, &kind);
    let name = "memcached-sample";
    let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let scaled = kind
        .patch_scale(name, &PatchParams::default(), &scale)
        .await;
    let scaled = scaled.expect("it is scaled").spec;
    assert_eq!(scaled.and_then(|spec| spec.replicas), Some(3));
    let found = kind.get(name).await.expect("it is there");
    assert_eq!(found.data["spec"]["replicas"], 3);
}
