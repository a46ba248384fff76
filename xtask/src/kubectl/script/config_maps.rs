//! Everything that can be done to one simple object.

use super::super::step::{Group, Step, World, edit, kubectl, kubectl_with, meanwhile};

const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: shop}
data: {colour: blue, size: large}
";

const SETTINGS_WITHOUT_SIZE: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: shop}
data: {colour: red}
";

const STALE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, resourceVersion: '1'}
data: {colour: stale}
";

const UNKNOWN_FIELD: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: typo}
dta: {colour: blue}
";

const BAD_NAME: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: Upper_Case}
";

pub(crate) fn group() -> Group {
    Group {
        name: "configmaps",
        world: World::Server,
        steps: [
            create(),
            get(),
            labels(),
            patch(),
            apply(),
            replace(),
            watch(),
        ]
        .concat(),
    }
}

fn create() -> Vec<Step> {
    vec![
        kubectl_with("create -f - --dry-run=server", SETTINGS)
            .needs_openapi()
            .prints_exactly("configmap/settings created (server dry run)"),
        kubectl("get configmap settings")
            .fails("Error from server (NotFound): configmaps \"settings\" not found"),
        kubectl_with("create -f - --save-config", SETTINGS)
            .prints_exactly("configmap/settings created"),
        kubectl_with("create -f -", SETTINGS).fails(
            "Error from server (AlreadyExists): error when creating \"STDIN\": configmaps \"settings\" already exists",
        ),
        kubectl_with("create -f -", UNKNOWN_FIELD)
            .needs_openapi()
            .since(25)
            .fails("unknown field \"dta\""),
        kubectl_with("create -f -", BAD_NAME)
            .fails("The ConfigMap \"Upper_Case\" is invalid: metadata.name: Invalid value: \"Upper_Case\": "),
    ]
}

fn get() -> Vec<Step> {
    vec![
        kubectl("get configmap settings")
            .matches("^NAME +DATA +AGE$")
            .matches(r"^settings +2 +\d+s$"),
        kubectl("get configmaps -o wide --show-labels")
            .matches("^NAME +DATA +AGE +LABELS$")
            .matches(r"^settings +2 +\d+s +app=shop$"),
        kubectl("get cm settings -o yaml")
            .matches("^apiVersion: v1$")
            .matches("^kind: ConfigMap$")
            .matches("^  colour: blue$")
            .matches("^  namespace: default$")
            .matches(
                r"^  uid: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
            ),
        kubectl("get cm settings -o json").matches(r#"^    "kind": "ConfigMap","#),
        kubectl("get cm settings -o jsonpath='{.data.colour} {.metadata.labels.app}'")
            .prints_exactly("blue shop"),
        kubectl("get cm -o name").matches("^configmap/settings$"),
        kubectl("get cm settings -o custom-columns=N:.metadata.name,C:.data.colour")
            .matches("^settings +blue$"),
        kubectl("get cm --field-selector metadata.name=settings -o name")
            .prints_exactly("configmap/settings"),
        kubectl("get cm -A --sort-by=.metadata.name").matches("^default +settings +2 "),
        kubectl("describe configmap settings")
            .matches("^Name: +settings$")
            .matches("^Labels: +app=shop$")
            .matches("^colour:$"),
    ]
}

fn labels() -> Vec<Step> {
    vec![
        kubectl("label cm settings tier=gold").prints_exactly("configmap/settings labeled"),
        kubectl("label cm settings tier=silver")
            .fails("'tier' already has a value (gold), and --overwrite is false"),
        kubectl("label cm settings tier=silver --overwrite")
            .prints_exactly("configmap/settings labeled"),
        kubectl("get cm -l tier=silver,app!=bank -o name").prints_exactly("configmap/settings"),
        kubectl("get cm -l 'tier in (gold)' -o name").prints_exactly(""),
        kubectl("label cm settings tier-").prints("configmap/settings "),
        kubectl("get cm -l '!tier,app' -o name").prints_exactly("configmap/settings"),
        kubectl("label cm settings 'bad=a b'")
            .fails("a valid label must be an empty string or consist of"),
        kubectl("annotate cm settings example.com/owner='the shop'")
            .prints("configmap/settings annotate"),
        kubectl(r"get cm settings -o jsonpath={.metadata.annotations.example\.com/owner}")
            .prints_exactly("the shop"),
        kubectl("annotate cm settings example.com/owner-").prints("configmap/settings annotate"),
    ]
}

fn patch() -> Vec<Step> {
    vec![
        kubectl("patch cm settings -p '{\"data\":{\"size\":\"small\"}}'")
            .prints_exactly("configmap/settings patched"),
        kubectl("patch cm settings --type=merge -p '{\"data\":{\"shape\":\"round\",\"size\":null}}'")
            .prints_exactly("configmap/settings patched"),
        kubectl("patch cm settings --type=merge -p '{\"data\":{\"shape\":\"round\"}}'")
            .prints_exactly("configmap/settings patched (no change)"),
        kubectl("patch cm settings --type=json -p '[{\"op\":\"test\",\"path\":\"/data/shape\",\"value\":\"round\"},{\"op\":\"replace\",\"path\":\"/data/shape\",\"value\":\"square\"}]'")
            .prints_exactly("configmap/settings patched"),
        kubectl("get cm settings -o jsonpath={.data}")
            .prints_exactly(r#"{"colour":"blue","shape":"square"}"#),
        kubectl("patch cm settings --type=json -p '[{\"op\":\"remove\",\"path\":\"/data/nothing\"}]'")
            .fails("The request is invalid"),
        kubectl("patch cm settings --type=merge -p '{\"data\":{\"n\":1}}'").code(1),
    ]
}

fn apply() -> Vec<Step> {
    vec![
        kubectl_with("diff -f -", SETTINGS)
            .needs_openapi()
            .code(1)
            .matches(r"^\+  size: large$"),
        kubectl_with("apply -f -", SETTINGS).prints_exactly("configmap/settings configured"),
        kubectl_with("diff -f -", SETTINGS)
            .needs_openapi()
            .prints_exactly(""),
        kubectl_with("apply -f -", SETTINGS).prints_exactly("configmap/settings unchanged"),
        kubectl_with("apply -f - --dry-run=server", SETTINGS_WITHOUT_SIZE)
            .needs_openapi()
            .prints_exactly("configmap/settings configured (server dry run)"),
        kubectl_with("apply -f -", SETTINGS_WITHOUT_SIZE)
            .prints_exactly("configmap/settings configured"),
        // What an earlier apply brought and this one does not is taken away; what a patch brought stays.
        kubectl("get cm settings -o jsonpath={.data}")
            .prints_exactly(r#"{"colour":"red","shape":"square"}"#),
        kubectl("apply view-last-applied cm settings").matches("^  colour: red$"),
    ]
}

fn replace() -> Vec<Step> {
    vec![
        kubectl_with("replace -f -", SETTINGS).prints_exactly("configmap/settings replaced"),
        kubectl("get cm settings -o jsonpath={.data}")
            .prints_exactly(r#"{"colour":"blue","size":"large"}"#),
        kubectl_with("replace -f -", STALE)
            .fails("Operation cannot be fulfilled on configmaps \"settings\": the object has been modified; please apply your changes to the latest version and try again"),
        edit("edit cm settings", "sed -i s/blue/green/").prints("configmap/settings edited"),
        kubectl("get cm settings -o jsonpath={.data.colour}").prints_exactly("green"),
        edit("edit cm settings", "true").complains("Edit cancelled, no changes made."),
    ]
}

fn watch() -> Vec<Step> {
    vec![
        meanwhile(
            "get cm settings --watch",
            "settings",
            "patch cm settings --type=merge -p '{\"data\":{\"a\":\"1\",\"b\":\"2\"}}'",
        )
        .matches(r"^settings +2 +\d+s\n(.*\n)*settings +4 +\d+s$"),
        meanwhile(
            "get cm --watch --output-watch-events -l app=shop",
            "ADDED",
            "label cm settings app=bank --overwrite",
        )
        .matches(r"^EVENT +NAME +DATA +AGE$")
        .matches(r"^ADDED +settings +4 ")
        .matches(r"^DELETED +settings +4 "),
        meanwhile(
            "get cm settings --watch -o jsonpath={.data.a}{\"\\n\"}",
            "1\n",
            "patch cm settings --type=merge -p '{\"data\":{\"a\":\"one\"}}'",
        )
        .prints("one\n"),
        kubectl("delete cm settings").prints("configmap \"settings\" deleted"),
        kubectl("get cm settings --ignore-not-found").prints_exactly(""),
    ]
}
