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
