//! A kind or a version that is renamed is what it would be if it had been created with that name.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Called, folder, kubewright, tree};

fn call(place: &Path, line: &str) -> Called {
    kubewright(place, &line.split_whitespace().collect::<Vec<_>>())
}

/// A project with everything that a kind can have, called so.
fn project(kind: &str, version: &str, other: &str) -> (tempfile::TempDir, PathBuf) {
    let (around, place) = folder("renamed");
    let it = format!("--group webapp --version {version} --kind {kind}");
    for line in [
        "init --domain my.domain --license copyright --owner Me".to_owned(),
        format!("create api {it} --make=false"),
        format!("create api {it} --resource=false --controller-name backup --make=false"),
        format!("create version {it} --to {other} --make=false"),
        format!(
            "create webhook {it} --defaulting --programmatic-validation --conversion --spoke {other} --make=false"
        ),
        "create api --group webapp --version v1 --kind Neighbour --make=false".to_owned(),
        "create api --group cache --version v1 --kind Store --image store:1 --make=false"
            .to_owned(),
    ] {
        call(&place, &line).works();
    }
    (around, place)
}

fn assert_same(made: &Path, expected: &Path) {
    let (made, expected) = (tree(made), tree(expected));
    let names = |tree: &std::collections::BTreeMap<PathBuf, String>| {
        tree.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names(&made), names(&expected));
    for (path, text) in made {
        assert_eq!(text, expected[&path], "{}", path.display());
    }
}

#[test]
fn kind_that_is_renamed_is_what_it_would_be_if_it_were_created_so() {
    let (_one, place) = project("Guestbook", "v1", "v2");
    let (_other, expected) = project("VisitorBook", "v1", "v2");
    let before = tree(&place);
    let rename = "rename api --group webapp --kind Guestbook --to VisitorBook --make=false";
    let said = call(&place, &format!("{rename} --dry-run")).works();
    assert!(
        said.contains("would create src/api/v1/visitorbook.rs"),
        "{said}"
    );
    assert_eq!(tree(&place), before);
    call(&place, rename).works();
    assert_same(&place, &expected);
    call(
        &place,
        "rename api --group webapp --kind VisitorBook --to Guestbook --make=false",
    )
    .works();
    assert_eq!(tree(&place), before);
}

#[test]
fn version_that_is_renamed_is_what_it_would_be_if_it_were_created_so() {
    let (_one, place) = project("Guestbook", "v1alpha1", "v2");
    let (_other, expected) = project("Guestbook", "v1beta1", "v3");
    let before = tree(&place);
    let kind = "--group webapp --kind Guestbook --make=false";
    call(
        &place,
        &format!("rename version {kind} --version v1alpha1 --to v1beta1"),
    )
    .works();
    call(
        &place,
        &format!("rename version {kind} --version v2 --to v3"),
    )
    .works();
    assert_same(&place, &expected);
    call(
        &place,
        &format!("rename version {kind} --version v3 --to v2"),
    )
    .works();
    call(
        &place,
        &format!("rename version {kind} --version v1beta1 --to v1alpha1"),
    )
    .works();
    assert_eq!(tree(&place), before);
}

#[test]
fn image_kinds_and_plurals_are_renamed_and_own_code_is_kept() {
    let (_around, place) = project("Guestbook", "v1", "v2");
    let own =
        "use crate::api::v1::store::Store;\n\nfn store(it: &Store) -> &str { &it.spec.image }\n";
    fs::write(place.join("src/controller/store/own.rs"), own).expect("it can be written");
    let rename = "rename api --group cache --kind Store --to Shop --plural shoppes --make=false";
    call(&place, rename).works();
    let files = tree(&place);
    let text = |path: &str| files[Path::new(path)].as_str();
    let moved =
        "use crate::api::v1::shop::Shop;\n\nfn store(it: &Shop) -> &str { &it.spec.image }\n";
    assert_eq!(text("src/controller/shop/own.rs"), moved);
    assert!(text("src/api/v1/shop.rs").contains("kind = \"Shop\",\n    plural = \"shoppes\","));
    assert!(text("src/controller/shop.rs").contains("const CONTAINER: &str = \"shop\";"));
    assert!(text("PROJECT").contains("plural: shoppes"));
    assert!(text("src/api/v1/shop.rs").contains("default = \"store:1\""));
}

#[test]
fn what_cannot_be_renamed_is_said_and_nothing_is_written() {
    let (_around, place) = project("Guestbook", "v1", "v2");
    let apps =
        "create api --group apps --version v1 --kind Deployment --resource=false --make=false";
    call(&place, apps).works();
    let before = tree(&place);
    for (line, reason) in [
        (
            "rename api --group webapp --kind Page --to Leaf",
            "there is no kind Page",
        ),
        (
            "rename api --group webapp --kind Guestbook --to neighbour",
            "CamelCase",
        ),
        (
            "rename api --group webapp --kind Guestbook --to NEIGHBOUR",
            "Neighbour is there already",
        ),
        (
            "rename api --group apps --kind Deployment --to Other",
            "somebody else's kind",
        ),
        (
            "rename version --group webapp --version v1 --kind Guestbook --to v2",
            "Guestbook v2 is there already",
        ),
        (
            "rename version --group webapp --version v7 --kind Guestbook --to v8",
            "no type of Guestbook v7",
        ),
        (
            "rename version --group webapp --version v1 --kind Guestbook --to one",
            "v1alpha1",
        ),
    ] {
        let said = call(&place, line).fails();
        assert!(said.contains(reason), "{line}: {said}");
        assert_eq!(tree(&place), before, "{line}");
    }
}
