use std::path::Path;

use serde_json::from_str;
use serde_saphyr::from_str as from_yaml;

use super::*;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn read(name: &str) -> (Project, Inventory) {
    let text = |path: String| std::fs::read_to_string(repository(&path)).expect("it is there");
    let project = text(format!("testdata/projects/{name}/PROJECT"));
    let inventory = text(format!("testdata/inventories/{name}.json"));
    let project = Project::parse(&project).expect("it is a project");
    (project, from_str(&inventory).expect("it is an inventory"))
}

/// The objects of a bundle, by path in it.
fn bundle(project: &Project, inventory: &Inventory) -> BTreeMap<String, Value> {
    let files = files(project, inventory, &Settings::default()).expect("a bundle");
    let objects = files.into_iter().map(|(path, text)| {
        assert!(layout::is_generated(&text), "{}", path.display());
        let path = path.strip_prefix(FOLDER).expect("it is in the folder");
        let object = serde_saphyr::from_str(&text).expect("it is YAML");
        (path.display().to_string(), object)
    });
    objects.collect()
}

fn service_version(objects: &BTreeMap<String, Value>) -> &Value {
    let mut found = objects.values();
    found
        .find(|object| object["kind"] == "ClusterServiceVersion")
        .expect("there is one")
}

/// Texts in the order of a set, so that two lists can be compared.
fn sorted(rules: &Value) -> Vec<String> {
    let rules = rules.as_array().expect("a list").iter();
    let mut texts: Vec<String> = rules.map(Value::to_string).collect();
    texts.sort();
    texts
}

#[test]
fn bundle_has_what_the_format_asks_for() {
    let (project, inventory) = read("single");
    let objects = bundle(&project, &inventory);
    let annotations = &objects["metadata/annotations.yaml"]["annotations"];
    for (field, value) in [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", "single"),
        ("channels.v1", "alpha"),
        ("channel.default.v1", "alpha"),
    ] {
        assert_eq!(annotations[format!("{ANNOTATION}.{field}")], value);
    }
    let version = service_version(&objects);
    assert_eq!(version["metadata"]["name"], "single.v0.1.0");
    assert_eq!(version["spec"]["version"], "0.1.0");
    let owned = version["spec"]["customresourcedefinitions"]["owned"].as_array();
    let owned: Vec<&Value> = owned
        .expect("kinds")
        .iter()
        .map(|it| &it["version"])
        .collect();
    assert_eq!(owned, ["v1", "v2"]);
    let examples = version["metadata"]["annotations"]["alm-examples"].as_str();
    let examples: Vec<Value> = from_str(examples.expect("a text")).expect("it is JSON");
    assert_eq!(examples.len(), 2, "a sample of each version");
    let modes = version["spec"]["installModes"].as_array().expect("modes");
    assert_eq!(modes.len(), 4);
    let kinds: BTreeMap<&str, &Value> = version["spec"]["webhookdefinitions"]
        .as_array()
        .expect("webhooks")
        .iter()
        .map(|hook| (hook["type"].as_str().expect("a type"), hook))
        .collect();
    let types = [
        "ConversionWebhook",
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionWebhook",
    ];
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), types);
    let conversion = kinds["ConversionWebhook"];
    assert_eq!(
        conversion["conversionCRDs"][0],
        "guestbooks.webapp.my.domain"
    );
    assert_eq!(conversion["webhookPath"], "/convert");
    assert_eq!(
        kinds["MutatingAdmissionWebhook"]["rules"][0]["resources"][0],
        "guestbooks"
    );
}

#[test]
fn certificates_are_left_to_the_lifecycle_manager() {
    let (project, inventory) = read("single");
    let objects = bundle(&project, &inventory);
    let install = &service_version(&objects)["spec"]["install"]["spec"];
    let pod = &install["deployments"][0]["spec"]["template"]["spec"];
    assert!(pod["volumes"].is_null() && pod["containers"][0]["volumeMounts"].is_null());
    let arguments = pod["containers"][0]["args"].to_string();
    assert!(arguments.contains("--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs"));
    assert!(!arguments.contains("--cert-secret"), "{arguments}");
    assert!(!objects.values().any(|object| object["kind"] == "Secret"));
}

#[test]
fn roles_and_definitions_are_those_that_are_deployed() {
    for name in ["single", "multigroup"] {
        let (project, inventory) = read(name);
        let objects = bundle(&project, &inventory);
        let deployed = layout::deployed(&project, &inventory, &Settings::default());
        let deployed = deployed.expect("objects");
        let role = |kind: &str, name: &str| {
            let name = format!("{}-{name}", project.project_name);
            let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == *name;
            deployed
                .iter()
                .find(is_it)
                .map(|role| role["rules"].clone())
        };
        let install = &service_version(&objects)["spec"]["install"]["spec"];
        // All that the manager has without its own certificates, which nobody needs here.
        let mut expected = Vec::new();
        for name in ["manager-role", "metrics-auth-role"] {
            let rules = role("ClusterRole", name).expect("it is deployed");
            expected.extend(rules.as_array().cloned().expect("rules"));
        }
        let found = &install["clusterPermissions"][0]["rules"];
        assert_eq!(sorted(found), sorted(&json!(expected)), "{name}");
        let leases = role("Role", "leader-election-role").expect("it is deployed");
        assert_eq!(sorted(&install["permissions"][0]["rules"]), sorted(&leases));
        let is_definition = |it: &&Value| it["kind"] == "CustomResourceDefinition";
        let definitions = deployed.iter().filter(is_definition);
        for definition in definitions {
            let name = definition["metadata"]["name"].as_str().expect("a name");
            // As it is read again, like the file that it is compared with.
            let definition: Value = from_yaml(&yaml::document(definition)).expect("YAML");
            assert_eq!(objects[&format!("manifests/{name}.yaml")], definition);
        }
    }
}

#[test]
fn version_is_the_tag_of_the_image() {
    let (project, inventory) = read("single");
    for (image, version) in [
        ("a:1.2.3", "1.2.3"),
        ("a:v2.0.1", "2.0.1"),
        ("a:latest", "0.1.0"),
        ("localhost:5000/a", "0.1.0"),
    ] {
        let settings = Settings::image(Some(image.to_owned()));
        let files = files(&project, &inventory, &settings).expect("a bundle");
        let path = format!("{FOLDER}/manifests/single.clusterserviceversion.yaml");
        let text = &files[Path::new(&path)];
        assert!(
            text.contains(&format!("name: single.v{version}\n")),
            "{image}"
        );
    }
}
