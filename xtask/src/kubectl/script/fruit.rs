//! The cluster as a database: the CRD of examples/fruit through kubectl and through plain HTTP.

use http::Method;

use super::super::step::{Group, Step, World, edit, http, kubectl, kubectl_with, meanwhile};

const HEAVY: &str = "
apiVersion: user.k8sasdb.org/v1
kind: Fruit
metadata: {name: melon}
spec: {weight: heavy}
";

const WEIGHTLESS: &str = "
apiVersion: user.k8sasdb.org/v1
kind: Fruit
metadata: {name: melon}
spec: {sweetness: 'yes'}
";

const COLOURED: &str = "
apiVersion: user.k8sasdb.org/v1
kind: Fruit
metadata: {name: plum}
spec: {weight: 60, colour: purple}
";

pub(crate) fn group() -> Group {
    Group {
        name: "fruit",
        world: World::Server,
        steps: [
            table(),
            rows(),
            refused(),
            unknown_fields(),
            changed(),
            over_http(),
            dropped(),
        ]
        .concat(),
    }
}

fn table() -> Vec<Step> {
    vec![
        kubectl("apply -f examples/fruit/crd.yaml").prints_exactly(
            "customresourcedefinition.apiextensions.k8s.io/fruits.user.k8sasdb.org created",
        ),
        kubectl("wait --for=condition=established crd/fruits.user.k8sasdb.org --timeout=10s")
            .prints("fruits.user.k8sasdb.org condition met"),
        kubectl("apply -f examples/fruit/crd.yaml").prints_exactly(
            "customresourcedefinition.apiextensions.k8s.io/fruits.user.k8sasdb.org unchanged",
        ),
        kubectl("api-resources --api-group=user.k8sasdb.org")
            .matches("^fruits +fr +user.k8sasdb.org/v1 +true +Fruit$"),
        kubectl("get crd fruits.user.k8sasdb.org").matches("^NAME +CREATED AT$"),
        kubectl("explain fruit.spec")
            .needs_openapi()
            .prints("What is known about it.")
            .matches(r"^ +weight\s+<integer>")
            .matches(r"^ +sweetness\s+<boolean>")
            .matches(r"^ +comment\s+<string>"),
    ]
}

fn rows() -> Vec<Step> {
    vec![
        kubectl("get fruits").complains("No resources found in default namespace."),
        kubectl("create -f examples/fruit/basket.yaml").prints_exactly(
            "fruit.user.k8sasdb.org/apple created\nfruit.user.k8sasdb.org/lemon created\nfruit.user.k8sasdb.org/strawberry created",
        ),
        kubectl("apply -f examples/fruit/basket.yaml").prints("fruit.user.k8sasdb.org/apple configured"),
        kubectl("apply -f examples/fruit/basket.yaml").prints("fruit.user.k8sasdb.org/apple unchanged"),
        kubectl("get fruits")
            .matches("^NAME +WEIGHT +SWEET +AGE$")
            .matches(r"^apple +150 +true +\d+s$")
            .matches(r"^lemon +90 +false +\d+s$"),
        kubectl("get fr -o wide")
            .matches("^NAME +WEIGHT +SWEET +COMMENT +AGE$")
            .matches(r"^lemon +90 +false +for the tea +\d+s$"),
        kubectl("get fruit strawberry -o jsonpath={.spec}")
            .prints_exactly(r#"{"sweetness":true,"weight":12}"#),
        kubectl("get fruits -l tree=yes -o name")
            .prints_exactly("fruit.user.k8sasdb.org/apple\nfruit.user.k8sasdb.org/lemon"),
        kubectl("describe fruit apple")
            .matches("^Kind: +Fruit$")
            .matches("^  Weight: +150$")
            .matches("^  Sweetness: +true$"),
    ]
}

fn refused() -> Vec<Step> {
    vec![
        kubectl_with("create -f - --validate=false", HEAVY).fails(
            "The Fruit \"melon\" is invalid: spec.weight: Invalid value: \"string\": spec.weight in body must be of type integer: \"string\"",
        ),
        kubectl_with("create -f - --validate=false", WEIGHTLESS)
            .code(1)
            .complains("spec.weight: Required value")
            .complains("spec.sweetness: Invalid value: \"string\": spec.sweetness in body must be of type boolean: \"string\""),
        kubectl("patch fruit apple --type=merge -p '{\"spec\":{\"weight\":0}}'").fails(
            "spec.weight: Invalid value: 0: spec.weight in body should be greater than or equal to 1",
        ),
        kubectl("patch fruit apple -p '{\"spec\":{\"weight\":1}}'").code(1),
        kubectl("get fruit apple -o jsonpath={.spec.weight}").prints_exactly("150"),
    ]
}

fn unknown_fields() -> Vec<Step> {
    vec![
        kubectl_with("create -f -", COLOURED)
            .needs_openapi()
            .since(27)
            .fails("strict decoding error: unknown field \"spec.colour\""),
        kubectl_with("create -f - --validate=false", COLOURED)
            .prints_exactly("fruit.user.k8sasdb.org/plum created"),
        kubectl("get fruit plum -o jsonpath={.spec}")
            .prints_exactly(r#"{"sweetness":true,"weight":60}"#),
    ]
}

fn changed() -> Vec<Step> {
    vec![
        kubectl("patch fruit apple --type=merge -p '{\"spec\":{\"weight\":140}}'")
            .prints_exactly("fruit.user.k8sasdb.org/apple patched"),
        kubectl("patch fruit apple --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/comment\"}]'")
            .prints_exactly("fruit.user.k8sasdb.org/apple patched"),
        kubectl("label fruit apple picked=today").prints_exactly("fruit.user.k8sasdb.org/apple labeled"),
        kubectl("annotate fruit apple note=shiny").prints("fruit.user.k8sasdb.org/apple annotate"),
        edit("edit fruit apple", "sed -i s/140/130/").prints("fruit.user.k8sasdb.org/apple edited"),
        kubectl("get fruit apple -o jsonpath='{.spec} {.metadata.generation}'")
            .prints_exactly(r#"{"sweetness":true,"weight":130} 4"#),
        kubectl("diff -f examples/fruit/basket.yaml")
            .needs_openapi()
            .code(1)
            .matches(r"^-  weight: 130$")
            .matches(r"^\+  weight: 150$"),
        kubectl("patch fruit apple --type=merge --subresource=status -p '{\"status\":{\"eaten\":true},\"spec\":{\"weight\":1}}'")
            .since(24)
            .prints_exactly("fruit.user.k8sasdb.org/apple patched"),
        kubectl("get fruit apple -o jsonpath='{.spec.weight} {.status.eaten}'")
            .since(24)
            .prints_exactly("130 true"),
        meanwhile(
            "get fruits --watch",
            "strawberry",
            "patch fruit lemon --type=merge -p '{\"spec\":{\"weight\":95}}'",
        )
        .matches(r"^lemon +90 +false +\d+s$")
        .matches(r"^lemon +95 +false +\d+s$"),
        meanwhile(
            "get fruits --watch-only --output-watch-events",
            "",
            "delete fruit plum",
        )
        .code(0),
        kubectl("scale fruit apple --replicas=2").code(1),
    ]
}

const PEAR: &str = r#"{"apiVersion":"user.k8sasdb.org/v1","kind":"Fruit","metadata":{"name":"pear"},"spec":{"weight":180,"colour":"green"}}"#;
const PEAR_AS_TEXT: &str = r#"{"apiVersion":"user.k8sasdb.org/v1","kind":"Fruit","metadata":{"name":"pear"},"spec":{"weight":"180"}}"#;
const FRUITS: &str = "/apis/user.k8sasdb.org/v1/namespaces/default/fruits";
const ONE_PEAR: &str = "/apis/user.k8sasdb.org/v1/namespaces/default/fruits/pear";

fn over_http() -> Vec<Step> {
    vec![
        http(
            Method::POST,
            "/apis/user.k8sasdb.org/v1/namespaces/default/fruits?fieldValidation=Strict",
            PEAR,
        )
        .code(400)
        .prints("strict decoding error: unknown field \\\"spec.colour\\\""),
        http(Method::POST, FRUITS, PEAR_AS_TEXT)
            .code(422)
            .prints("spec.weight in body must be of type integer: \\\"string\\\""),
        http(Method::POST, FRUITS, PEAR)
            .code(201)
            .prints(r#""spec":{"sweetness":true,"weight":180}"#)
            .lacks("colour"),
        http(Method::POST, FRUITS, PEAR).code(409).prints("AlreadyExists"),
        http(Method::GET, ONE_PEAR, "").prints(r#""weight":180"#),
        http(
            Method::PUT,
            ONE_PEAR,
            r#"{"apiVersion":"user.k8sasdb.org/v1","kind":"Fruit","metadata":{"name":"pear"},"spec":{"weight":170}}"#,
        )
        .code(422)
        .prints("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
        http(Method::PATCH, ONE_PEAR, r#"{"spec":{"comment":"from Conference"}}"#)
            .prints(r#""comment":"from Conference""#),
        http(
            Method::GET,
            "/apis/user.k8sasdb.org/v1/fruits?fieldSelector=metadata.name%3Dpear",
            "",
        )
        .prints(r#""kind":"FruitList""#)
        .prints(r#""name":"pear""#)
        .lacks("lemon"),
        http(
            Method::GET,
            "/apis/user.k8sasdb.org/v1/fruits?watch=true&resourceVersion=0&timeoutSeconds=1&fieldSelector=metadata.name%3Dpear",
            "",
        )
        .matches(r#"^\{"type":"ADDED","object":\{.*"name":"pear""#),
        http(Method::DELETE, ONE_PEAR, "")
            .prints(r#""status":"Success""#)
            .prints(r#""name":"pear""#)
            .prints(r#""group":"user.k8sasdb.org""#)
            .prints(r#""kind":"fruits""#),
        http(Method::GET, ONE_PEAR, "")
            .code(404)
            .prints("fruits.user.k8sasdb.org \\\"pear\\\" not found"),
    ]
}

fn dropped() -> Vec<Step> {
    vec![
        kubectl("delete fruit lemon").prints("fruit.user.k8sasdb.org \"lemon\" deleted"),
        kubectl("delete fruits --all").prints("fruit.user.k8sasdb.org \"apple\" deleted"),
        kubectl("delete -f examples/fruit/crd.yaml").prints(
            "customresourcedefinition.apiextensions.k8s.io \"fruits.user.k8sasdb.org\" deleted",
        ),
        kubectl("get --raw /apis/user.k8sasdb.org/v1/fruits")
            .fails("the server could not find the requested resource"),
    ]
}
