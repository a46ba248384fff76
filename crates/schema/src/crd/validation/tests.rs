//! CRDs that are refused, and how the API server says so.

use serde_json::{Value, json};

use super::super::tests::{bars, lines};
use super::super::{carry_status, default_definition, reset_status};
use super::*;

fn prepared(mut crd: Value) -> Value {
    default_definition(&mut crd);
    reset_status(&mut crd);
    crd
}

/// A CRD `bars.ex.io` with this schema, without subresources and columns.
fn with_schema(schema: Value) -> Value {
    let mut crd = bars();
    crd["spec"]["versions"] = json!([
        {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
    ]);
    crd
}

#[track_caller]
fn check(crd: Value, expect: &[&str]) {
    assert_eq!(lines(&validate_definition(&prepared(crd))), expect);
}

/// Changes one place of `bars` and checks the errors.
#[track_caller]
fn check_change(pointer: &str, value: Value, expect: &[&str]) {
    let mut crd = bars();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    crd.pointer_mut(parent).expect("the parent exists")[key] = value;
    check(crd, expect);
}

/// Checks a schema of `spec`; `{}` in the errors stands for where it is.
#[track_caller]
fn check_spec(spec: Value, expect: &[&str]) {
    const AT: &str = "spec.validation.openAPIV3Schema.properties[spec]";
    let expect: Vec<String> = expect.iter().map(|line| line.replace("{}", AT)).collect();
    let crd = with_schema(json!({"type": "object", "properties": {"spec": spec}}));
    assert_eq!(lines(&validate_definition(&prepared(crd))), expect);
}

#[test]
fn captured_definition_is_accepted() {
    check(bars(), &[]);
}

#[test]
fn captured_bad_definition_is_refused() {
    let mut crd = with_schema(json!({"type": "object", "properties": {"spec": {}}}));
    crd["metadata"]["name"] = json!("x.y");
    check(
        crd,
        &[
            "metadata.name: Invalid value: \"x.y\": must be spec.names.plural+\".\"+spec.group",
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
        ],
    );
}

#[test]
fn schemas_that_differ_are_named_by_version() {
    let mut crd = with_schema(json!({"type": "object"}));
    let bad = json!({"name": "v2", "served": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}});
    crd["spec"]["versions"]
        .as_array_mut()
        .expect("a list")
        .push(bad);
    check(
        crd,
        &[
            "spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields",
        ],
    );
}

#[test]
fn group_scope_and_names_are_checked() {
    let label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                 character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                 validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    let name =
        "metadata.name: Invalid value: \"bars.ex.io\": must be spec.names.plural+\".\"+spec.group";
    check_change(
        "/spec/group",
        json!("ex"),
        &[
            name,
            "spec.group: Invalid value: \"ex\": should be a domain with at least one dot",
        ],
    );
    check_change(
        "/spec/group",
        json!(""),
        &[name, "spec.group: Required value"],
    );
    check_change(
        "/spec/scope",
        json!("Galaxy"),
        &[
            "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\"",
        ],
    );
    check_change("/spec/scope", json!(""), &["spec.scope: Required value"]);
    check_change(
        "/spec/names/shortNames",
        json!(["B"]),
        &[&format!(
            "spec.names.shortNames[0]: Invalid value: \"B\": {label}"
        )],
    );
    check_change(
        "/spec/names/categories",
        json!(["_"]),
        &[&format!(
            "spec.names.categories[0]: Invalid value: \"_\": {label}"
        )],
    );
    check_change(
        "/spec/names/kind",
        json!("B_r"),
        &[
            &format!("spec.names.singular: Invalid value: \"b_r\": {label}"),
            &format!(
                "spec.names.kind: Invalid value: \"B_r\": may have mixed case, but should otherwise match: {label}"
            ),
            &format!(
                "spec.names.listKind: Invalid value: \"B_rList\": may have mixed case, but should otherwise match: {label}"
            ),
        ],
    );
    check_change(
        "/spec/names/listKind",
        json!("Bar"),
        &["spec.names.listKind: Invalid value: \"Bar\": kind and listKind may not be the same"],
    );
    check_change(
        "/spec/versions/0/name",
        json!("1"),
        &[
            &format!("spec.versions[0].name: Invalid value: \"1\": {label}"),
            &format!("spec.version: Invalid value: \"1\": {label}"),
        ],
    );
}

#[test]
fn exactly_one_version_is_stored_and_names_are_unique() {
    let mut crd = with_schema(json!({"type": "object"}));
    let first = crd["spec"]["versions"][0].clone();
    crd["spec"]["versions"] = json!([first, first]);
    let printed = "{\"Name\":\"v1\",\"Served\":true,\"Storage\":true,\"Deprecated\":false,\"DeprecationWarning\":null,\
                   \"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}";
    check(
        crd,
        &[
            &format!(
                "spec.versions: Invalid value: [{printed},{printed}]: must contain unique version names"
            ),
            &format!(
                "spec.versions: Invalid value: [{printed},{printed}]: must have exactly one version marked as storage version"
            ),
        ],
    );
}

#[test]
fn version_needs_a_schema() {
    let mut crd = bars();
    crd["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true}]);
    check(
        crd,
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
}

#[test]
fn community_groups_need_an_approval() {
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let field = "metadata.annotations[api-approved.kubernetes.io]";
    let mut crd = bars();
    crd["spec"]["group"] = json!("ex.k8s.io");
    crd["metadata"] = json!({"name": "bars.ex.k8s.io"});
    check(
        crd.clone(),
        &[&format!(
            "{field}: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", {see}"
        )],
    );
    crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "yes"});
    check(
        crd.clone(),
        &[&format!(
            "{field}: Invalid value: \"yes\": protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", {see}"
        )],
    );
    for approval in ["https://github.com/x/y", "unapproved, a test"] {
        crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approval});
        check(crd.clone(), &[]);
    }
}

#[test]
fn unknown_fields_cannot_be_preserved_by_the_old_switch() {
    let mut crd = with_schema(json!({"type": "object"}));
    crd["spec"]["preserveUnknownFields"] = json!(true);
    check(
        crd,
        &[
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ],
    );
}

#[test]
fn webhook_conversion_needs_its_fields() {
    let client = "spec.conversion.webhookClientConfig";
    let versions = "spec.conversion.conversionReviewVersions";
    check_change(
        "/spec/conversion",
        json!({"strategy": "Magic"}),
        &[
            "spec.conversion.strategy: Unsupported value: \"Magic\": supported values: \"None\", \"Webhook\"",
        ],
    );
    check_change(
        "/spec/conversion",
        json!({"strategy": "Webhook"}),
        &[
            &format!("{client}: Required value: required when strategy is set to Webhook"),
            &format!("{versions}: Required value"),
        ],
    );
    let webhook = |client: Value, versions: Value| json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": versions}});
    check_change(
        "/spec/conversion",
        webhook(json!({"url": "https://a/b"}), json!(["v1"])),
        &[],
    );
    check_change(
        "/spec/conversion",
        webhook(json!({"url": "http://u@a/b?q#f"}), json!(["v2"])),
        &[
            &format!(
                "{client}.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"
            ),
            &format!(
                "{client}.url: Invalid value: \"u\": user information is not permitted in the URL"
            ),
            &format!("{client}.url: Invalid value: \"f\": fragments are not permitted in the URL"),
            &format!(
                "{client}.url: Invalid value: \"q\": query parameters are not permitted in the URL"
            ),
            &format!(
                "{versions}: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1"
            ),
        ],
    );
    check_change(
        "/spec/conversion",
        webhook(
            json!({"service": {"name": "a", "namespace": "b", "port": 0, "path": "x/"}}),
            json!(["v1", "v1"]),
        ),
        &[
            &format!(
                "{client}.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"
            ),
            &format!("{client}.service.path: Invalid value: \"x/\": must start with a '/'"),
            &format!("{client}.service.path: Invalid value: \"x/\": segment[0] may not be empty"),
            &format!("{versions}[1]: Invalid value: \"v1\": duplicate version"),
        ],
    );
    check_change(
        "/spec/conversion",
        json!({"strategy": "None", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}}),
        &[
            &format!("{client}: Forbidden: should not be set when strategy is not set to Webhook"),
            &format!(
                "{versions}: Forbidden: should not be set when strategy is not set to Webhook"
            ),
        ],
    );
}

#[test]
fn columns_and_scale_paths_are_checked() {
    check_change(
        "/spec/versions/0/additionalPrinterColumns",
        json!([{"type": "text", "format": "x", "jsonPath": "a"}]),
        &[
            "spec.additionalPrinterColumns[0].name: Required value",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].format: Invalid value: \"x\": must be one of byte,date,date-time,double,float,int32,int64,password",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"a\": must be a simple json path starting with .",
        ],
    );
    check_change(
        "/spec/versions/0/subresources/scale",
        json!({"specReplicasPath": ".status.n", "labelSelectorPath": "x"}),
        &[
            "spec.subresources.scale.specReplicasPath: Invalid value: \".status.n\": should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Required value",
            "spec.subresources.scale.labelSelectorPath: Invalid value: \"x\": must be a simple json path starting with .",
        ],
    );
}

#[test]
fn selectable_fields_point_to_scalars() {
    let field = |path: &str| json!({"jsonPath": path});
    let at = "spec.selectableFields";
    check_change(
        "/spec/versions/0/selectableFields",
        json!([field(".spec.mode"), field(".spec.num")]),
        &[],
    );
    check_change(
        "/spec/versions/0/selectableFields",
        json!([
            field(".spec.mode"),
            field(".spec.mode"),
            field(".spec"),
            field(".nope"),
            field(""),
            field(".spec['num']")
        ]),
        &[
            &format!("{at}[1].jsonPath: Duplicate value: \".spec.mode\""),
            &format!(
                "{at}[2].jsonPath: Invalid value: \".spec\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
            ),
            &format!(
                "{at}[3].jsonPath: Invalid value: \".nope\": is an invalid path: does not refer to a valid field"
            ),
            &format!("{at}[4].jsonPath: Required value"),
            &format!(
                "{at}[5].jsonPath: Invalid value: \".spec['num']\": is an invalid path: array notation is not allowed"
            ),
        ],
    );
    let names: Vec<String> = (0..9).map(|i| format!("f{i}")).collect();
    let properties: Value = names
        .iter()
        .map(|name| (name.clone(), json!({"type": "string"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut crd = with_schema(
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
    );
    crd["spec"]["versions"][0]["selectableFields"] = names
        .iter()
        .map(|name| field(&format!(".spec.{name}")))
        .collect();
    check(
        crd,
        &[&format!("{at}: Too many: 9: must have at most 8 items")],
    );
}

#[test]
fn deprecation_warning_needs_a_deprecated_version() {
    check_change(
        "/spec/versions/0/deprecationWarning",
        json!("x"),
        &[
            "spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for deprecated versions",
        ],
    );
}

/// Where rules are ANDed they could be checked; API servers refuse them all the same.
#[test]
fn rules_stand_outside_of_combinators() {
    let rules = json!({"x-kubernetes-validations": [{"rule": "self == 'a'"}]});
    let detail = "x-kubernetes-validations: Forbidden: must be empty to be structural";
    for keyword in ["allOf", "anyOf", "oneOf"] {
        check_spec(
            json!({"type": "string", keyword: [{"minLength": 1}, rules]}),
            &[&format!("{{}}.{keyword}[1].{detail}")],
        );
        check_spec(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, keyword: [{"properties": {"a": rules}}]}),
            &[&format!("{{}}.{keyword}[0].properties[a].{detail}")],
        );
    }
    check_spec(
        json!({"type": "string", "not": rules}),
        &[&format!("{{}}.not.{detail}")],
    );
    check_spec(
        json!({"type": "string", "allOf": [{"x-kubernetes-validations": [{"rule": " "}]}]}),
        &[
            &format!("{{}}.allOf[0].{detail}"),
            "{}.allOf[0].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ],
    );
}

#[test]
fn structure_is_specified_outside_of_combinators() {
    check_spec(
        json!({"type": "array"}),
        &["{}.items: Required value: must be specified"],
    );
    check_spec(
        json!({"type": "array", "items": {}}),
        &["{}.items.type: Required value: must not be empty for specified array items"],
    );
    check_spec(
        json!({"type": "string", "anyOf": [{"type": "string", "description": "x", "default": "a"}]}),
        &[
            "{}.anyOf[0].default: Forbidden: must be undefined to be structural",
            "{}.anyOf[0].description: Forbidden: must be empty to be structural",
            "{}.anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    );
    check_spec(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        &[],
    );
    check_spec(
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^x"}]}),
        &[],
    );
    check_spec(
        json!({"type": "string", "pattern": "("}),
        &[
            "{}.pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
        ],
    );
    check_spec(
        json!({"type": "string", "x-kubernetes-embedded-resource": true}),
        &[
            "{}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            "{}.type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource is true",
        ],
    );
    check(
        with_schema(
            json!({"type": "object", "properties": {"spec": {"type": "object"}}, "anyOf": [{"properties": {"a": {"minimum": 1}}}]}),
        ),
        &[
            "spec.validation.openAPIV3Schema.properties[a]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[a]",
        ],
    );
}

#[test]
fn metadata_is_specified_implicitly() {
    let metadata = |metadata: Value| {
        with_schema(json!({"type": "object", "properties": {"metadata": metadata}}))
    };
    check(
        metadata(
            json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}),
        ),
        &[],
    );
    check(
        metadata(json!({"type": "object", "properties": {"labels": {"type": "object"}}})),
        &[
            "spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    );
    check(
        metadata(json!({"type": "object", "default": {}})),
        &[
            "spec.validation.openAPIV3Schema.properties[metadata].default: Forbidden: must not be set in top-level metadata",
        ],
    );
    check(
        with_schema(json!({"type": "array", "items": {"type": "string"}})),
        &[
            "spec.validation.openAPIV3Schema.type: Invalid value: \"array\": must be object at the root",
        ],
    );
}

#[test]
fn unsupported_keywords_are_refused() {
    check_spec(
        json!({"type": "object", "$ref": "#/x"}),
        &["{}.$ref: Forbidden: $ref is not supported"],
    );
    check_spec(
        json!({"type": "object", "$schema": "x"}),
        &[
            // Nothing else complains, so the reason why the schema cannot be read is reported.
            "spec.validation.openAPIV3Schema: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported",
        ],
    );
    check_spec(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &[
            "{}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    check_spec(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &[
            "{}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
    check_spec(
        json!({"type": "text"}),
        &[
            "{}.type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ],
    );
    check_spec(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
        &[
            "{}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ],
    );
}

#[test]
fn list_and_map_types_are_checked() {
    check_spec(
        json!({"type": "string", "x-kubernetes-list-type": "set"}),
        &[
            "{}.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified",
        ],
    );
    check_spec(
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
        &[
            "{}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ],
    );
    check_spec(
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
        &[
            "{}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
    let keyed = |items: Value| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items});
    check_spec(
        keyed(json!({"type": "object", "properties": {"k": {"type": "string"}}})),
        &[
            "{}.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    check_spec(
        keyed(json!({"type": "object", "properties": {"k": {"type": "string", "default": "x"}}})),
        &[],
    );
    check_spec(
        keyed(json!({"type": "object"})),
        &[
            "{}.x-kubernetes-list-map-keys: Invalid value: [\"k\"]: entries must all be names of item properties",
        ],
    );
    check_spec(
        keyed(json!({"type": "string"})),
        &[
            "{}.items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map",
        ],
    );
    check_spec(
        keyed(
            json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "object"}}}),
        ),
        &[
            "{}.items.properties[k].type: Invalid value: \"object\": must be a scalar type if parent array's x-kubernetes-list-type is map",
        ],
    );
    check_spec(
        json!({"type": "object", "x-kubernetes-map-type": "big"}),
        &[
            "{}.x-kubernetes-map-type: Unsupported value: \"big\": supported values: \"atomic\", \"granular\"",
        ],
    );
}

#[test]
fn defaults_are_valid_values() {
    check_spec(
        json!({"type": "integer", "default": "x"}),
        &["{}.default: Invalid value: \"string\":  in body must be of type integer: \"string\""],
    );
    check_spec(
        json!({"type": "object", "default": {"a": 1}}),
        &["{}.default: Invalid value: {\"a\":1}: must not have unknown fields"],
    );
    check_spec(
        json!({"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "string"}}}),
        &[
            "{}.default.a: Invalid value: \"integer\": a in body must be of type string: \"integer\"",
        ],
    );
    check_spec(
        json!({"type": "object", "default": {}, "required": ["a"], "properties": {"a": {"type": "string"}}}),
        &["{}.default.a: Required value"],
    );
}

#[test]
fn expressions_are_checked_as_far_as_they_are_read() {
    let rule = |rule: Value| json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [rule]});
    check_spec(
        rule(json!({"rule": " "})),
        &["{}.x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    );
    check_spec(
        rule(json!({"rule": "a\nb"})),
        &[
            "{}.x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks",
        ],
    );
    check_spec(
        rule(json!({"rule": "true", "fieldPath": ".b"})),
        &["{}.x-kubernetes-validations[0].fieldPath: Invalid value: \".b\": must be a valid path"],
    );
    check_spec(
        rule(json!({"rule": "true", "fieldPath": "['a']", "reason": "Odd"})),
        &[
            "{}.x-kubernetes-validations[0].reason: Unsupported value: \"Odd\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
        ],
    );
}

#[test]
fn status_subresource_limits_the_root() {
    let mut crd = with_schema(json!({"type": "object", "anyOf": [{"minimum": 1}]}));
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let errors = lines(&validate_definition(&prepared(crd)));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].ends_with("XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"), "{errors:?}");
}

#[test]
fn schemas_beyond_the_limits_are_refused() {
    let mut deep = json!({"type": "object"});
    for _ in 0..64 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    check_spec(
        deep,
        &[
            "spec.validation.openAPIV3Schema: Invalid value: \"\": schema is nested more than 64 levels deep",
        ],
    );
    let many: serde_json::Map<String, Value> = (0..50_001)
        .map(|i| (i.to_string(), json!({"type": "string"})))
        .collect();
    check_spec(
        json!({"type": "object", "properties": many}),
        &["spec.validation.openAPIV3Schema: Invalid value: \"\": schema has more than 50000 nodes"],
    );
}

fn established(crd: Value) -> Value {
    let mut crd = prepared(crd);
    crd["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    crd
}

#[track_caller]
fn check_update(old: &Value, change: impl FnOnce(&mut Value), expect: &[&str]) {
    let mut new = old.clone();
    change(&mut new);
    carry_status(&mut new, old);
    assert_eq!(lines(&validate_definition_update(&new, old)), expect);
}

#[test]
fn identity_is_immutable() {
    let old = established(bars());
    check_update(&old, |_| {}, &[]);
    check_update(
        &old,
        |crd| crd["spec"]["scope"] = json!("Cluster"),
        &["spec.scope: Invalid value: \"Cluster\": field is immutable"],
    );
    check_update(
        &old,
        |crd| crd["spec"]["names"]["kind"] = json!("Baz"),
        &["spec.names.kind: Invalid value: \"Baz\": field is immutable"],
    );
    check_update(
        &old,
        |crd| crd["spec"]["names"]["plural"] = json!("bazs"),
        &["spec.names.plural: Invalid value: \"bazs\": field is immutable"],
    );
    check_update(
        &prepared(bars()),
        |crd| crd["spec"]["scope"] = json!("Cluster"),
        &[],
    );
}

#[test]
fn stored_versions_stay_in_the_spec() {
    let old = established(bars());
    check_update(
        &old,
        |crd| crd["spec"]["versions"][0]["name"] = json!("v2"),
        &[
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
        ],
    );
}

#[test]
fn rules_that_came_later_do_not_break_old_definitions() {
    let set = |items: Value| {
        with_schema(json!({"type": "object", "properties": {"spec": {
            "type": "array", "x-kubernetes-list-type": "set", "items": items,
        }}}))
    };
    let old = established(set(json!({"type": "object"})));
    check_update(
        &old,
        |crd| crd["spec"]["names"]["shortNames"] = json!(["b"]),
        &[],
    );
}
