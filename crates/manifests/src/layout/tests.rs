use std::collections::BTreeSet;

use serde_json::from_value;

use super::*;
use crate::project::CertificateSource;
use crate::{Rule, Webhook, WebhookKind};

fn inventory() -> Inventory {
    let definition = json!({
        "metadata": {"name": "guestbooks.webapp.my.domain"},
        "spec": {
            "group": "webapp.my.domain",
            "scope": "Namespaced",
            "names": {"plural": "guestbooks", "singular": "guestbook", "kind": "Guestbook"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
                }}},
            }],
        },
    });
    Inventory {
        definitions: vec![from_value(definition).expect("it is a definition")],
        rules: vec![Rule {
            groups: vec!["webapp.my.domain".into()],
            resources: vec!["guestbooks".into()],
            verbs: vec!["get".into(), "list".into(), "watch".into()],
            ..Rule::default()
        }],
        ..Inventory::default()
    }
}

fn webhook() -> Webhook {
    from_value(json!({
        "kind": WebhookKind::Validating, "name": "vguestbook.webapp.my.domain", "path": "/validate",
        "groups": ["webapp.my.domain"], "versions": ["v1"], "resources": ["guestbooks"],
        "verbs": ["create"], "admissionReviewVersions": ["v1"],
    }))
    .expect("it is a webhook")
}

fn project() -> Project {
    let mut project = Project::new("book", "my.domain", "v0");
    let resource =
        json!({"group": "webapp", "domain": "my.domain", "version": "v1", "kind": "Guestbook"});
    project
        .resources
        .push(from_value(resource).expect("it is a resource"));
    project
}

fn objects(project: &Project, inventory: &Inventory) -> Vec<Value> {
    deployed(project, inventory, &Settings::default()).expect("it can be laid out")
}

/// The one object of this kind whose name ends so.
fn find(objects: &[Value], kind: &str, name: &str) -> Value {
    let mut found = objects.iter().filter(|object| {
        let called = object["metadata"]["name"].as_str().unwrap_or_default();
        object["kind"] == kind && called.ends_with(name)
    });
    let one = found
        .next()
        .unwrap_or_else(|| panic!("there is no {kind} {name}"));
    assert!(found.next().is_none(), "there is one {kind} {name}");
    one.clone()
}

#[test]
fn every_file_says_that_it_is_generated_and_is_where_people_look() {
    let files = files(&project(), &inventory(), &Settings::default()).expect("it can be laid out");
    for path in [
        "config/crd/bases/webapp.my.domain_guestbooks.yaml",
        "config/crd/kustomization.yaml",
        "config/rbac/service_account.yaml",
        "config/rbac/role.yaml",
        "config/rbac/role_binding.yaml",
        "config/rbac/leader_election_role.yaml",
        "config/rbac/leader_election_role_binding.yaml",
        "config/rbac/metrics_auth_role.yaml",
        "config/rbac/metrics_auth_role_binding.yaml",
        "config/rbac/metrics_reader_role.yaml",
        "config/rbac/guestbook_admin_role.yaml",
        "config/manager/manager.yaml",
        "config/default/kustomization.yaml",
        "config/default/metrics_service.yaml",
        "config/samples/webapp_v1_guestbook.yaml",
        "config/prometheus/monitor.yaml",
        "config/network-policy/allow-metrics-traffic.yaml",
        "dist/install.yaml",
        "docs/api.md",
    ] {
        assert!(files.contains_key(Path::new(path)), "{path}");
    }
    for (path, text) in &files {
        assert!(is_generated(text), "{}", path.display());
    }
}

#[test]
fn everything_deployed_is_in_the_order_of_its_needs() {
    let objects = objects(&project(), &inventory());
    let kinds: Vec<&str> = objects
        .iter()
        .filter_map(|object| object["kind"].as_str())
        .collect();
    let ranks: Vec<usize> = kinds.iter().map(|kind| rank(kind)).collect();
    assert!(ranks.is_sorted(), "{kinds:?}");
    assert_eq!(kinds.first(), Some(&"Namespace"));
    assert_eq!(kinds.last(), Some(&"Deployment"));
    let files = files(&project(), &inventory(), &Settings::default()).expect("it can be laid out");
    let install = &files[Path::new("dist/install.yaml")];
    let again: Vec<Value> = serde_saphyr::from_multiple(install).expect("it is YAML");
    // As text, since numbers of a schema come back from YAML as whole ones.
    let written = |objects: &[Value]| objects.iter().map(yaml::document).collect::<String>();
    assert_eq!(written(&again), written(&objects));
}

#[test]
fn kustomizations_name_files_that_are_there() {
    let mut with_webhooks = inventory();
    with_webhooks.webhooks.push(webhook());
    for inventory in [Inventory::default(), inventory(), with_webhooks] {
        let files =
            files(&project(), &inventory, &Settings::default()).expect("it can be laid out");
        let paths: BTreeSet<&PathBuf> = files.keys().collect();
        for (path, text) in &files {
            if !path.ends_with("kustomization.yaml") {
                continue;
            }
            let value: Value = serde_saphyr::from_str(text).expect("it is YAML");
            let resources = value["resources"].as_array().expect("it has some");
            assert!(!resources.is_empty(), "{}", path.display());
            for name in resources.iter().filter_map(Value::as_str) {
                let folder = path.parent().expect("it is in a folder");
                let found = match name.strip_prefix("../") {
                    Some(other) => Path::new("config").join(other).join("kustomization.yaml"),
                    None => folder.join(name),
                };
                assert!(paths.contains(&found), "{} names {name}", path.display());
            }
        }
    }
}

#[test]
fn manager_runs_restricted() {
    let objects = objects(&project(), &inventory());
    let namespace = find(&objects, "Namespace", "book-system");
    assert_eq!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "restricted"
    );
    let deployment = find(&objects, "Deployment", "controller-manager");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    let container = &pod["containers"][0];
    let context = &container["securityContext"];
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], 8081);
    }
    assert!(container["resources"]["limits"]["memory"].is_string());
    assert_eq!(container["image"], "book:0.1.0");
    let selector = &deployment["spec"]["selector"]["matchLabels"];
    assert_eq!(
        *selector,
        deployment["spec"]["template"]["metadata"]["labels"]
    );
}

#[test]
fn manager_may_do_no_more_than_it_has_to() {
    let objects = objects(&project(), &inventory());
    let role = find(&objects, "Role", "leader-election-role");
    let text = role["rules"].to_string();
    assert!(
        !text.contains("configmaps") && !text.contains('*'),
        "{text}"
    );
    // Replicas that share the objects find each other by their leases.
    let verbs = json!(["get", "list", "create", "update", "delete"]);
    assert_eq!(role["rules"][0]["verbs"], verbs);
    let role = find(&objects, "ClusterRole", "manager-role");
    assert_eq!(role["rules"].as_array().map(Vec::len), Some(1));
    let binding = find(&objects, "ClusterRoleBinding", "manager-rolebinding");
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    let subject = json!([{"kind": "ServiceAccount", "name": "book-controller-manager", "namespace": "book-system"}]);
    assert_eq!(binding["subjects"], subject);
    find(&objects, "ServiceAccount", "book-controller-manager");
}

#[test]
fn every_kind_has_roles_for_people() {
    let objects = objects(&project(), &inventory());
    for (role, verbs) in [("admin", 1), ("editor", 7), ("viewer", 3)] {
        let role = find(
            &objects,
            "ClusterRole",
            &format!("book-guestbook-{role}-role"),
        );
        assert_eq!(
            role["rules"][0]["verbs"].as_array().map(Vec::len),
            Some(verbs)
        );
        assert_eq!(role["rules"][1]["resources"], json!(["guestbooks/status"]));
    }
}

#[test]
fn network_policies_name_the_ports_of_pods() {
    let mut inventory = inventory();
    inventory.webhooks.push(webhook());
    let objects = objects(&project(), &inventory);
    for (name, port) in [
        ("allow-metrics-traffic", 8443),
        ("allow-webhook-traffic", 9443),
    ] {
        let policy = find(&objects, "NetworkPolicy", name);
        assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], port);
    }
    let files = files(&project(), &inventory, &Settings::default()).expect("it can be laid out");
    let configuration = &files[Path::new("config/webhook/validating.yaml")];
    let configuration: Value = serde_saphyr::from_str(configuration).expect("it is YAML");
    let service = &configuration["webhooks"][0]["clientConfig"]["service"];
    assert_eq!(service["name"], "book-webhook-service");
    assert_eq!(service["namespace"], "book-system");
    let found = find(
        &objects,
        "ValidatingWebhookConfiguration",
        "book-validating-webhook-configuration",
    );
    assert_eq!(
        found, configuration,
        "what is in the file is what is deployed"
    );
    let mut project = project();
    let mut options = project.options();
    options.without_network_policy = true;
    project.set_options(&options);
    let objects = deployed(&project, &inventory, &Settings::default()).expect("it can be laid out");
    assert!(
        objects
            .iter()
            .all(|object| object["kind"] != "NetworkPolicy")
    );
}

#[test]
fn scrapers_check_the_certificate() {
    let mut project = project();
    assert!(
        objects(&project, &inventory())
            .iter()
            .all(|object| object["kind"] != "ServiceMonitor")
    );
    let mut options = project.options();
    options.prometheus = true;
    project.set_options(&options);
    let objects = objects(&project, &inventory());
    let monitor = find(&objects, "ServiceMonitor", "metrics-monitor");
    let tls = &monitor["spec"]["endpoints"][0]["tlsConfig"];
    assert!(tls["insecureSkipVerify"].is_null());
    assert_eq!(
        tls["serverName"],
        "book-controller-manager-metrics-service.book-system.svc"
    );
    let secret = &tls["ca"]["secret"]["name"];
    let found = find(&objects, "Secret", "book-server-cert");
    assert_eq!(found["metadata"]["name"], *secret, "the manager fills it");
    let arguments = arguments(&objects);
    assert!(
        arguments.contains(&"--cert-service=book-controller-manager-metrics-service".to_owned())
    );

    options.certificates = CertificateSource::Secret;
    project.set_options(&options);
    let objects =
        super::deployed(&project, &inventory(), &Settings::default()).expect("it can be laid out");
    let deployment = find(&objects, "Deployment", "controller-manager");
    let volume = &deployment["spec"]["template"]["spec"]["volumes"][0];
    assert_eq!(volume["secret"]["secretName"], "book-metrics-server-cert");
}

/// What the manager is called with.
fn arguments(objects: &[Value]) -> Vec<String> {
    let deployment = find(objects, "Deployment", "controller-manager");
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    from_value(arguments.clone()).expect("they are texts")
}

/// A kind of two versions that the program converts, with a webhook.
fn converted() -> Inventory {
    let mut inventory = inventory();
    inventory.webhooks.push(webhook());
    let definition = &mut inventory.definitions[0];
    let mut second = definition.spec.versions[0].clone();
    (second.name, second.storage) = ("v2".to_owned(), false);
    definition.spec.versions.push(second);
    let placeholder = crate::webhook::service();
    definition.spec.conversion = Some(crate::definition::converted_by(&placeholder));
    inventory
}

#[test]
fn conversions_lead_to_the_service_of_the_project() {
    let inventory = converted();
    let objects = objects(&project(), &inventory);
    let definition = find(
        &objects,
        "CustomResourceDefinition",
        "guestbooks.webapp.my.domain",
    );
    let service = &definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"];
    let expected =
        json!({"name": "book-webhook-service", "namespace": "book-system", "path": "/convert"});
    assert_eq!(*service, expected);
    find(&objects, "Service", "book-webhook-service");
    let files = files(&project(), &inventory, &Settings::default()).expect("it can be laid out");
    let file = &files[Path::new("config/crd/bases/webapp.my.domain_guestbooks.yaml")];
    assert!(file.contains("name: book-webhook-service"), "{file}");
    let names: Vec<&str> = ["v1", "v2"]
        .iter()
        .map(|version| {
            files[&PathBuf::from(format!("config/samples/webapp_{version}_guestbook.yaml"))]
                .as_str()
        })
        .map(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix("  name: "))
                .expect("it has one")
        })
        .collect();
    assert_eq!(names, ["guestbook-sample", "guestbook-sample-v2"]);
}

#[test]
fn without_webhooks_only_stored_versions_are_served() {
    let settings = Settings::default().webhooks(WebhookSetting::LeftOut);
    let objects = deployed(&project(), &converted(), &settings).expect("it can be laid out");
    let definition = find(
        &objects,
        "CustomResourceDefinition",
        "guestbooks.webapp.my.domain",
    );
    assert!(definition["spec"]["conversion"].is_null());
    let versions = definition["spec"]["versions"]
        .as_array()
        .expect("it has some");
    let served: Vec<&Value> = versions.iter().map(|version| &version["served"]).collect();
    assert_eq!(served, [true, false]);
    let is_about_webhooks = |object: &&Value| {
        let text = object.to_string();
        text.contains("webhook") || text.contains("server-cert")
    };
    let left: Vec<&Value> = objects.iter().filter(is_about_webhooks).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn manager_may_change_its_own_certificates_and_nothing_else_of_that_kind() {
    let objects = objects(&project(), &converted());
    let roles = objects
        .iter()
        .filter(|object| object["metadata"]["name"] == "book-certificates-role");
    let rules = roles.flat_map(|role| role["rules"].as_array().expect("it has some"));
    let rules: Vec<String> = rules
        .map(|rule| {
            format!(
                "{} {} {}",
                rule["resources"][0], rule["resourceNames"], rule["verbs"]
            )
        })
        .collect();
    let expected = [
        r#""secrets" ["book-server-cert"] ["get","update"]"#,
        r#""validatingwebhookconfigurations" ["book-validating-webhook-configuration"] ["get","patch"]"#,
        r#""customresourcedefinitions" ["guestbooks.webapp.my.domain"] ["get","patch"]"#,
    ];
    let (mut rules, mut expected) = (rules, expected.map(str::to_owned).to_vec());
    rules.sort();
    expected.sort();
    assert_eq!(rules, expected);
    let arguments = arguments(&objects);
    for wanted in [
        "--cert-secret=book-server-cert",
        "--cert-service=book-webhook-service",
        "--validating-webhook-configuration=book-validating-webhook-configuration",
    ] {
        assert!(
            arguments.iter().any(|it| it == wanted),
            "{wanted}: {arguments:?}"
        );
    }
    let secret = find(&objects, "Secret", "book-server-cert");
    assert!(
        secret["data"].is_null(),
        "what the manager puts there is left alone"
    );
}

#[test]
fn cert_manager_makes_certificates_and_has_them_trusted() {
    let mut project = project();
    let mut options = project.options();
    options.certificates = CertificateSource::CertManager;
    project.set_options(&options);
    let objects = objects(&project, &converted());
    let certificate = find(&objects, "Certificate", "book-serving-cert");
    assert_eq!(
        certificate["spec"]["dnsNames"][0],
        "book-webhook-service.book-system.svc"
    );
    find(
        &objects,
        "Issuer",
        &text_of(&certificate["spec"]["issuerRef"]["name"]),
    );
    for (kind, name) in [
        ("CustomResourceDefinition", "guestbooks.webapp.my.domain"),
        (
            "ValidatingWebhookConfiguration",
            "book-validating-webhook-configuration",
        ),
    ] {
        let object = find(&objects, kind, name);
        let from = &object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert_eq!(*from, "book-system/book-serving-cert", "{kind}");
    }
    let deployment = find(&objects, "Deployment", "controller-manager");
    let volume = &deployment["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"];
    assert_eq!(*volume, certificate["spec"]["secretName"]);
    assert!(
        !objects
            .iter()
            .any(|object| object["metadata"]["name"] == "book-certificates-role")
    );
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[test]
fn webhooks_about_kinds_of_others_leave_the_namespace_of_the_manager_alone() {
    let mut inventory = inventory();
    let mut pods = webhook();
    (pods.groups, pods.resources) = (vec![String::new()], vec!["pods".to_owned()]);
    pods.name = "vpod.my.domain".to_owned();
    inventory.webhooks = vec![webhook(), pods];
    let objects = objects(&project(), &inventory);
    let configuration = find(&objects, "ValidatingWebhookConfiguration", "configuration");
    let selectors: Vec<&Value> = ["vguestbook.webapp.my.domain", "vpod.my.domain"]
        .iter()
        .map(|name| {
            let hooks = configuration["webhooks"].as_array().expect("it has some");
            let hook = hooks.iter().find(|hook| hook["name"] == *name);
            &hook.expect("it is there")["namespaceSelector"]
        })
        .collect();
    assert!(selectors[0].is_null());
    let outside = json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["book-system"]});
    assert_eq!(selectors[1]["matchExpressions"], json!([outside]));
}

#[test]
fn namespaced_projects_have_roles_in_their_namespaces() {
    let mut project = project();
    project.namespaced = true;
    let mut options = project.options();
    options.watch_namespaces = vec!["team-a".into(), "team-b".into()];
    project.set_options(&options);
    let objects = objects(&project, &inventory());
    let places: Vec<&Value> = objects
        .iter()
        .filter(|object| {
            object["kind"] == "Role" && object["metadata"]["name"] == "book-manager-role"
        })
        .map(|object| &object["metadata"]["namespace"])
        .collect();
    assert_eq!(places, [&json!("team-a"), &json!("team-b")]);
    let deployment = find(&objects, "Deployment", "controller-manager");
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(
        *env,
        json!([{"name": "WATCH_NAMESPACE", "value": "team-a,team-b"}])
    );
}

#[test]
fn stale_files_are_found_and_own_files_are_not() {
    let folder = std::env::temp_dir().join(format!("kubewright-layout-{}", std::process::id()));
    let write = |path: &Path, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    };
    let (project, inventory) = (project(), inventory());
    write(Path::new("PROJECT"), &project.to_text());
    for (path, text) in
        files(&project, &inventory, &Settings::default()).expect("it can be laid out")
    {
        write(&path, &text);
    }
    let look = || stale(&folder, &inventory).expect("it can be read");
    assert!(look().is_empty(), "{:?}", look());
    let chosen = Settings::image(Some("registry.example.com/book:1.0".to_owned()));
    let chosen = files(&project, &inventory, &chosen).expect("it can be laid out");
    let install = Path::new(INSTALL);
    write(install, &chosen[install]);
    assert!(look().is_empty(), "the image of a release is chosen");
    write(
        install,
        &chosen[install].replace("replicas: 1", "replicas: 2"),
    );
    assert_eq!(look(), [install], "everything else in it is generated");
    write(install, &chosen[install]);
    write(Path::new("config/manager/manager.yaml"), "mine: true\n");
    assert!(
        look().is_empty(),
        "a file without the mark is somebody's own"
    );
    write(Path::new("config/rbac/role.yaml"), &format!("# {MARK}\n"));
    write(Path::new("config/rbac/old.yaml"), &format!("# {MARK}\n"));
    let stale = look();
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    let expected = ["config/rbac/old.yaml", "config/rbac/role.yaml"].map(PathBuf::from);
    assert_eq!(stale, expected);
}
