use serde_json::from_str;

use super::*;

/// What Helm makes of the part of its language that charts use here.
fn render(template: &str, values: &Value) -> String {
    let mut out = String::new();
    // Whether each `if` around a line holds.
    let mut open: Vec<bool> = Vec::new();
    let template = template
        .split("{{- /*")
        .last()
        .and_then(|rest| rest.split_once("-}}\n"))
        .expect("a header")
        .1;
    let template = template.trim_start_matches(IMAGE_NAME);
    for line in template.lines() {
        let words: Vec<&str> = line
            .trim()
            .trim_matches(['{', '}', '-', ' '])
            .split(' ')
            .collect();
        let holds = |path: &str| {
            let pointer = path.trim_start_matches(".Values").replace('.', "/");
            values
                .pointer(&pointer)
                .and_then(Value::as_bool)
                .expect("it is a value")
        };
        match (line.trim_start().starts_with("{{-"), words.as_slice()) {
            (true, ["if", "not", path]) => open.push(!holds(path)),
            (true, ["if", path]) => open.push(holds(path)),
            (true, ["else"]) => {
                let last = open.pop().expect("there is an if");
                open.push(!last);
            }
            (true, ["end"]) => drop(open.pop().expect("there is an if")),
            _ if open.iter().all(|it| *it) => {
                out.push_str(&substituted(line, values));
                out.push('\n');
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "every if has its end");
    out
}

fn substituted(line: &str, values: &Value) -> String {
    let manager = &values["manager"];
    let image = format!(
        "{}:{}",
        manager["image"]["repository"].as_str().expect("a text"),
        manager["image"]["tag"].as_str().expect("a text")
    );
    let mut line = line
        .replace("{{ .Release.Namespace | quote }}", "\"elsewhere\"")
        .replace("{{ .Release.Namespace }}", "elsewhere")
        .replace("{{ include \"image\" . | quote }}", &format!("{image:?}"))
        .replace(
            "{{ .Values.manager.replicas }}",
            &manager["replicas"].to_string(),
        )
        .replace("{{ \"{{\" }}", "{{");
    if let Some(start) = line.find("{{- toYaml") {
        let resources = manager["resources"].to_string();
        line.replace_range(start.., &resources);
    }
    line
}

fn project() -> Project {
    let mut project = Project::new("single", "my.domain", "v0");
    let text = std::fs::read_to_string(repository("testdata/projects/single/PROJECT"))
        .expect("it is there");
    let found = Project::parse(&text).expect("it is a project");
    project.resources = found.resources;
    project
}

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn inventory() -> Inventory {
    let text = std::fs::read_to_string(repository("testdata/inventories/single.json"))
        .expect("it is there");
    from_str(&text).expect("it is an inventory")
}

/// The objects of a chart by name, as they would be on a cluster.
fn rendered(values: &Value) -> BTreeMap<String, Value> {
    let files = files(&project(), &inventory(), &Settings::default()).expect("it can be made");
    let mut found = BTreeMap::new();
    for (path, text) in files
        .iter()
        .filter(|(path, _)| path.starts_with(format!("{FOLDER}/templates")))
    {
        let text = render(text, values);
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text)
            .unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
        for object in objects.into_iter().filter(|object| !object.is_null()) {
            found.insert(name(&object), object);
        }
    }
    found
}

fn default_values() -> Value {
    let files = files(&project(), &inventory(), &Settings::default()).expect("it can be made");
    let text = &files[&PathBuf::from(format!("{FOLDER}/values.yaml"))];
    serde_saphyr::from_str(text).expect("it is YAML")
}

/// The same objects as they are deployed without Helm, in the namespace of the release.
fn expected(values: &Value) -> BTreeMap<String, Value> {
    let is_on = |value: &str| values[value]["enabled"] == true;
    let mut all = objects(
        &project(),
        &inventory(),
        &Settings::default(),
        (is_on("webhooks"), is_on("monitoring")),
    )
    .expect("they can be made");
    all.retain(|object| is_on("networkPolicy") || object["kind"] != "NetworkPolicy");
    all.retain(|object| is_on("crds") || object["kind"] != "CustomResourceDefinition");
    let elsewhere = |mut object: Value| {
        visit(&mut object, &|text| {
            *text = text.replace("single-system", "elsewhere")
        });
        (name(&object), object)
    };
    all.into_iter().map(elsewhere).collect()
}

#[test]
fn chart_is_what_is_deployed_without_helm_whatever_the_values() {
    for mask in 0..16 {
        let mut values = default_values();
        for (bit, value) in ["webhooks", "monitoring", "networkPolicy", "crds"]
            .into_iter()
            .enumerate()
        {
            values[value]["enabled"] = json!(mask >> bit & 1 == 1);
        }
        let (mut found, expected) = (rendered(&values), expected(&values));
        for object in found
            .values_mut()
            .filter(|object| object["kind"] == "CustomResourceDefinition")
        {
            let annotations = object["metadata"]
                .as_object_mut()
                .and_then(|it| it.remove("annotations"));
            assert_eq!(
                annotations.expect("they are there")["helm.sh/resource-policy"],
                "keep"
            );
        }
        let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{values}");
        for (name, object) in &expected {
            // As text, since numbers of a schema come back from YAML as whole ones.
            assert_eq!(
                yaml::document(&found[name]),
                yaml::document(object),
                "{name} {values}"
            );
        }
    }
}

#[test]
fn values_reach_the_manager() {
    let mut values = default_values();
    values["manager"]["replicas"] = json!(3);
    values["manager"]["image"]["tag"] = json!("9.9");
    values["manager"]["resources"] = json!({"limits": {"cpu": "2"}});
    let found = rendered(&values);
    let deployment = &found["deployment-single-controller-manager"];
    assert_eq!(deployment["spec"]["replicas"], 3);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "single:9.9");
    assert_eq!(container["resources"], json!({"limits": {"cpu": "2"}}));
    values["crds"]["keep"] = json!(false);
    let found = rendered(&values);
    let definition = &found["customresourcedefinition-guestbooks.webapp.my.domain"];
    assert!(definition["metadata"]["annotations"]["helm.sh/resource-policy"].is_null());
}

#[test]
fn what_looks_like_a_template_is_text() {
    assert_eq!(filled("a: x{{ y }}\n"), "a: x{{ \"{{\" }} y }}\n");
}
