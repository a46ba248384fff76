//! A Helm chart of a project, made from the objects that are deployed without one.
//!
//! The chart is exact by construction: the objects of every choice that its values offer are computed as `deploy` would compute
//! them, and where they differ a template chooses between them. Nothing is written twice by hand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::layout::{LayoutError, MARK, Settings, WebhookSetting, deployed};
use crate::project::Project;
use crate::{Inventory, yaml};

/// Where the chart is, from the root of a project.
pub const FOLDER: &str = "dist/chart";
/// What stands for a value until the text is written. Names of objects cannot contain it.
const NAMESPACE: &str = "KUBEWRIGHT.NAMESPACE";
const IMAGE: &str = "KUBEWRIGHT.IMAGE";
const REPLICAS: &str = "KUBEWRIGHT.REPLICAS";
const RESOURCES: &str = "KUBEWRIGHT.RESOURCES";
const KEEP: &str = "    helm.sh/resource-policy: keep\n";

/// The choices that values offer and that change more than one place.
const CHOICES: [Choice; 4] = [(true, true), (true, false), (false, true), (false, false)];

/// Whether webhooks are deployed, and whether metrics are scraped.
type Choice = (bool, bool);

/// An object in each of the choices; nothing where it is not deployed.
type Variants = [Option<String>; 4];

/// The files of the chart, by path from the root of the project.
///
/// # Errors
/// When the objects cannot be made.
pub fn files(
    project: &Project,
    inventory: &Inventory,
    settings: &Settings,
) -> Result<BTreeMap<PathBuf, String>, LayoutError> {
    let mut variants: BTreeMap<String, Variants> = BTreeMap::new();
    let mut image = String::new();
    for (place, choice) in CHOICES.into_iter().enumerate() {
        for object in objects(project, inventory, settings, choice)? {
            if object["kind"] == "Deployment" {
                let found = &object["spec"]["template"]["spec"]["containers"][0]["image"];
                image = found.as_str().unwrap_or_default().to_owned();
            }
            let text = template(project, object.clone());
            variants.entry(name(&object)).or_default()[place] = Some(text);
        }
    }
    let mut files = BTreeMap::new();
    for (name, variants) in variants {
        let text = format!(
            "{{{{- /* {MARK}; `kubewright generate` writes it again. */ -}}}}\n{}",
            chosen(&name, &variants)
        );
        files.insert(
            PathBuf::from(format!("{FOLDER}/templates/{name}.yaml")),
            text,
        );
    }
    let header = format!(
        "# {MARK}; `kubewright generate` writes it again. Your own values: helm install --values.\n"
    );
    let (repository, tag) = split(&image);
    files.insert(
        format!("{FOLDER}/Chart.yaml").into(),
        header.clone() + &about(project, &tag),
    );
    files.insert(
        format!("{FOLDER}/values.yaml").into(),
        header + &values(&repository, &tag),
    );
    Ok(files)
}

/// All objects of one choice but the namespace, which is the release's.
fn objects(
    project: &Project,
    inventory: &Inventory,
    settings: &Settings,
    (webhooks, monitoring): Choice,
) -> Result<Vec<Value>, LayoutError> {
    let mut project = project.clone();
    let mut options = project.options();
    options.without_webhooks = !webhooks;
    options.without_network_policy = false;
    options.prometheus = monitoring;
    project.set_options(&options);
    let setting = if webhooks {
        WebhookSetting::Deployed
    } else {
        WebhookSetting::LeftOut
    };
    let mut objects = deployed(&project, inventory, &settings.clone().webhooks(setting))?;
    objects.retain(|object| object["kind"] != "Namespace");
    Ok(objects)
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
    format!(
        "{}-{}",
        text(&object["kind"]),
        text(&object["metadata"]["name"])
    )
}

/// The text of an object, with values in the places of what they change.
fn template(project: &Project, mut object: Value) -> String {
    let namespace = project.namespace();
    visit(&mut object, &|text| {
        let inside = format!(".{namespace}.");
        if *text == namespace {
            NAMESPACE.clone_into(text);
        } else if text.contains(&inside) {
            *text = text.replace(&inside, &format!(".{NAMESPACE}."));
        } else if let Some(rest) = text.strip_prefix(&format!("{namespace}/")) {
            *text = format!("{NAMESPACE}/{rest}");
        }
    });
    if object["kind"] == "Deployment" {
        object["spec"]["replicas"] = json!(REPLICAS);
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        container["image"] = json!(IMAGE);
        container["resources"] = json!(RESOURCES);
    }
    if object["kind"] == "CustomResourceDefinition" {
        object["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    }
    filled(&yaml::document(&object))
}

/// Calls a function with every text in a value.
fn visit(value: &mut Value, see: &dyn Fn(&mut String)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, see)),
        Value::Object(map) => map.values_mut().for_each(|item| visit(item, see)),
        _ => {}
    }
}

/// The text as Helm reads it.
fn filled(text: &str) -> String {
    // What looks like a template is text of somebody's description.
    let text = text.replace("{{", "{{ \"{{\" }}");
    let mut filled = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        let line = line
            .replace(&format!(": {NAMESPACE}/"), ": {{ .Release.Namespace }}/")
            .replace(&format!(": {NAMESPACE}."), ": {{ .Release.Namespace }}.")
            .replace(&format!(".{NAMESPACE}."), ".{{ .Release.Namespace }}.");
        let line = match line.trim_end().rsplit_once(' ') {
            Some((before, NAMESPACE)) => format!("{before} {{{{ .Release.Namespace | quote }}}}"),
            Some((before, IMAGE)) => format!("{before} {{{{ include \"image\" . | quote }}}}"),
            Some((before, REPLICAS)) => format!("{before} {{{{ .Values.manager.replicas }}}}"),
            Some((before, RESOURCES)) => {
                let deeper = indent + 2;
                format!("{before} {{{{- toYaml .Values.manager.resources | nindent {deeper} }}}}")
            }
            _ => line,
        };
        filled.push_str(&line);
        filled.push('\n');
    }
    filled.replace(
        KEEP,
        &format!("    {{{{- if .Values.crds.keep }}}}\n{KEEP}    {{{{- end }}}}\n    kubewright.dev/part-of-chart: \"true\"\n"),
    )
}

/// One of the variants, by the values that they depend on.
fn chosen(name: &str, variants: &Variants) -> String {
    let [both, webhooks, monitoring, neither] = variants;
    let text = if both == monitoring && webhooks == neither {
        either("monitoring", both.as_deref(), webhooks.as_deref())
    } else {
        let with = either("monitoring", both.as_deref(), webhooks.as_deref());
        let without = either("monitoring", monitoring.as_deref(), neither.as_deref());
        either("webhooks", Some(&with), Some(&without))
    };
    let extra = match name.split('-').next() {
        Some("deployment") => IMAGE_NAME,
        _ => "",
    };
    let guard = match name.split('-').next() {
        Some("networkpolicy") => Some("networkPolicy"),
        Some("customresourcedefinition") => Some("crds"),
        _ => None,
    };
    match guard {
        Some(value) => either(value, Some(&text), None),
        None => format!("{extra}{text}"),
    }
}

/// One text if a value is on, the other if it is off.
fn either(value: &str, on: Option<&str>, off: Option<&str>) -> String {
    let (on, off) = (on.unwrap_or_default(), off.unwrap_or_default());
    if on == off {
        return on.to_owned();
    }
    let open = format!("{{{{- if .Values.{value}.enabled }}}}\n");
    match (on, off) {
        (on, "") => format!("{open}{on}{{{{- end }}}}\n"),
        ("", off) => format!("{{{{- if not .Values.{value}.enabled }}}}\n{off}{{{{- end }}}}\n"),
        (on, off) => format!("{open}{on}{{{{- else }}}}\n{off}{{{{- end }}}}\n"),
    }
}

/// The name of the image: by digest if there is one, else by tag.
const IMAGE_NAME: &str = "{{- define \"image\" -}}
{{- with .Values.manager.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end -}}
";

/// The name of an image without its tag, and the tag.
fn split(image: &str) -> (String, String) {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name.to_owned(), tag.to_owned()),
        _ => (image.to_owned(), "latest".to_owned()),
    }
}

fn about(project: &Project, tag: &str) -> String {
    let name = &project.project_name;
    let text = yaml::document(&json!({
        "apiVersion": "v2",
        "appVersion": tag,
        "description": format!("The operator {name}"),
        "name": name,
        "type": "application",
        "version": "0.1.0",
    }));
    text.trim_start_matches("---\n").to_owned()
}

fn values(repository: &str, tag: &str) -> String {
    let text = yaml::document(&json!({
        "crds": { "enabled": true, "keep": true },
        "manager": {
            "image": { "digest": "", "repository": repository, "tag": tag },
            "replicas": 1,
            "resources": {
                "limits": { "cpu": "500m", "memory": "128Mi" },
                "requests": { "cpu": "10m", "memory": "64Mi" },
            },
        },
        "monitoring": { "enabled": false },
        "networkPolicy": { "enabled": true },
        "webhooks": { "enabled": true },
    }));
    text.trim_start_matches("---\n").to_owned()
}

#[cfg(test)]
mod tests;
