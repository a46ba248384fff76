//! CustomResourceDefinitions: validated, compiled, and used on an object. An input is `{"document": …, "patch": …}` with
//! the definition as document and an object as patch, so that the corpora of patches can lend to this one.

use kubewright_schema::crd::{
    CompiledVersion, Definition, default, default_definition, definition_warnings, prune, validate,
    validate_definition, validate_definition_update,
};
use kubewright_schema::decode::{self, Format};
use serde_json::Value;

use super::{Verdict, start};

pub(super) fn read(input: &[u8]) -> Verdict {
    let mut value = match decode::parse(input, Format::Json) {
        Ok(parsed) => parsed.value,
        Err(error) => return Verdict::refused(start(&error.to_string())),
    };
    let mut take = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
    let (mut definition, object) = (take("document"), take("patch"));
    if !definition["spec"].is_object() {
        return Verdict::refused("no definition");
    }
    default_definition(&mut definition);
    let _ = definition_warnings(&definition, None);
    let errors = validate_definition(&definition);
    let _ = validate_definition_update(&definition, &definition);
    if let Some(error) = errors.first() {
        return Verdict::refused(start(&error.to_string()));
    }
    use_it(&definition, &object)
}

fn use_it(definition: &Value, object: &Value) -> Verdict {
    let mut verdict = String::new();
    for version in &Definition::parse(definition).versions {
        let compiled = match CompiledVersion::new(version, None) {
            Ok(compiled) => compiled,
            Err(error) => return Verdict::refused(start(&error.to_string())),
        };
        let mut object = object.clone();
        let _ = prune(&compiled, &mut object);
        default(&compiled, &mut object);
        let once = object.clone();
        default(&compiled, &mut object);
        assert_eq!(object, once, "defaulting twice is defaulting once");
        assert!(
            prune(&compiled, &mut object).is_empty(),
            "pruning leaves nothing to prune"
        );
        let errors = validate(&compiled, &object, None, Vec::new());
        verdict.extend(errors.first().map(ToString::to_string));
    }
    Verdict::accepted(start(&verdict))
}
