//! What is written down is what the program says.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kubewright_example_foo::Foo;

#[test]
fn definition_on_file_is_that_of_the_type() {
    let wanted = Foo::crd();
    let text = serde_saphyr::to_string(&wanted).expect("it is YAML");
    let on_file: Result<CustomResourceDefinition, _> =
        serde_saphyr::from_str(include_str!("../crd.yaml"));
    assert!(
        on_file.is_ok_and(|on_file| on_file == wanted),
        "crd.yaml should be\n{text}"
    );
}

#[test]
fn first_steps_show_the_code_of_the_example() {
    let text = include_str!("../../../docs/first-operator.md");
    let code = include_str!("../src/lib.rs");
    let mut blocks = text.split("```rust\n").skip(1);
    for step in ["the type", "the reconciler", "the controller"] {
        let block = blocks.next().and_then(|rest| rest.split("```").next());
        // Above the first blank line is what the block needs to stand alone.
        let (_, shown) = block
            .and_then(|block| block.split_once("\n\n"))
            .expect(step);
        assert!(code.contains(shown), "{step} is not in lib.rs:\n{shown}");
    }
}
