//! What the commands do with bad input: a clear message, and nothing half-written.

mod support;

use std::fs;
use std::path::Path;

use support::{folder, kubewright, tree};

const GUESTBOOK: [&str; 8] = [
    "api",
    "--group",
    "webapp",
    "--version",
    "v1",
    "--kind",
    "Guestbook",
    "--make=false",
];

fn call(place: &Path, line: &str) -> support::Called {
    kubewright(place, &line.split(' ').collect::<Vec<_>>())
}

fn create(place: &Path) -> support::Called {
    kubewright(place, &[&["create"][..], &GUESTBOOK].concat())
}

fn delete(place: &Path) -> support::Called {
    kubewright(place, &[&["delete"][..], &GUESTBOOK].concat())
}

/// A new project.
fn project() -> (tempfile::TempDir, std::path::PathBuf) {
    let (around, place) = folder("guestbook");
    call(&place, "init --domain my.domain").works();
    (around, place)
}

#[test]
fn wrong_names_are_refused_with_a_reason_and_nothing_is_written() {
    let (_around, place) = project();
    let before = tree(&place);
    for (line, reason) in [
        (
            "create api --group Web --version v1 --kind A",
            "cannot be the name of a group",
        ),
        (
            "create api --group ../x --version v1 --kind A",
            "cannot be the name of a group",
        ),
        ("create api --group web --version 1 --kind A", "v1alpha1"),
        (
            "create api --group web --version v1 --kind guestbook",
            "CamelCase",
        ),
        (
            "create api --group web --version v1 --kind Type",
            "keyword of Rust",
        ),
        (
            "create api --group web --version v1 --kind A --plural A",
            "cannot be the name of a plural",
        ),
        (
            "create api --group web --version v1 --kind A --controller-name A",
            "--controller-name",
        ),
        ("create api --version v1 --kind A", "--group is missing"),
        ("create api --group web --version v1", "--kind"),
        (
            "create api --group web --version v1 --kind A --resource=false --controller=false",
            "nothing to create",
        ),
        (
            "create api --group web --version v1 --kind A --resource=false",
            "--external-api-path",
        ),
        (
            "create api --group web --version v1 --kind A --resource=false --external-api-path a/b",
            "no path of a Rust type",
        ),
        (
            "create api --group web --version v1 --kind A --from-crd missing.yaml",
            "does not exist",
        ),
        (
            "create webhook --group web --version v1 --kind A --defaulting",
            "there is no such kind",
        ),
        (
            "create webhook --group web --version v1 --kind A",
            "say what for",
        ),
        (
            "create version --group web --version v1 --kind A --to v2",
            "there is no such kind",
        ),
        ("init --domain other.domain", "is a project already"),
        ("lint --against nowhere", "git"),
        ("generate --inventory missing.json", "cannot be read"),
    ] {
        let said = call(&place, line).fails();
        assert!(said.contains(reason), "{line}: {said}");
        assert_eq!(tree(&place), before, "{line}");
    }
}

#[test]
fn wrong_names_of_projects_are_refused() {
    for (name, line, reason) in [
        (
            "My_Project",
            "init --project-name My_Project",
            "--project-name",
        ),
        ("a", "init --domain a..b", "--domain"),
        ("-a", "init", "give another with --project-name"),
        ("a", "init --sdk elsewhere", "version, git or path"),
    ] {
        let (_around, place) = folder(name);
        let said = call(&place, line).fails();
        assert!(said.contains(reason), "{line}: {said}");
        assert!(tree(&place).is_empty(), "{line}");
    }
}

#[test]
fn files_of_people_are_never_overwritten_without_force() {
    let (_around, place) = folder("guestbook");
    fs::write(place.join("Makefile"), "mine").expect("it can be written");
    let said = call(&place, "init").fails();
    assert!(
        said.contains("Makefile") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(tree(&place).len(), 1, "nothing was written");
    call(&place, "init --force").works();
    assert_ne!(tree(&place)[Path::new("Makefile")], "mine");

    let file = place.join("src/api/v1/guestbook.rs");
    fs::create_dir_all(file.parent().expect("it has one")).expect("it can be made");
    fs::write(&file, "mine").expect("it can be written");
    let before = tree(&place);
    let said = create(&place).fails();
    assert!(said.contains("src/api/v1/guestbook.rs"), "{said}");
    assert_eq!(tree(&place), before);
}

#[test]
fn plan_can_be_seen_and_changes_nothing() {
    let (_around, place) = project();
    let before = tree(&place);
    let said = call(
        &place,
        "create api --group webapp --version v1 --kind Guestbook --dry-run --diff",
    )
    .works();
    for part in [
        "+++ b/src/api/v1/guestbook.rs",
        "+pub mod v1;",
        "would create src/controller/guestbook.rs",
        "would change PROJECT",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(tree(&place), before);
}

#[test]
fn broken_project_file_is_named_and_left_alone() {
    for (text, reason) in [
        ("", "PROJECT cannot be used"),
        ("version: \"2\"\nprojectName: a\n", "only \"3\" can be read"),
        ("version: [", "PROJECT cannot be used"),
        (
            "version: \"3\"\nprojectName: a\nresources:\n- kind: ../../x\n  version: v1\n",
            "CamelCase",
        ),
    ] {
        let (_around, place) = project();
        fs::write(place.join("PROJECT"), text).expect("it can be written");
        let before = tree(&place);
        let said = create(&place).fails();
        assert!(said.contains(reason), "{text:?}: {said}");
        assert_eq!(tree(&place), before, "{text:?}");
    }
}

#[test]
fn outside_of_a_project_people_are_told_how_to_make_one() {
    let (_around, place) = folder("nothing");
    for line in ["generate", "lint", "deploy", "edit", "image build"] {
        let said = call(&place, line).fails();
        assert!(said.contains("kubewright init"), "{line}: {said}");
    }
}

#[test]
fn folder_that_cannot_be_written_to_is_named() {
    let (_around, place) = folder("guestbook");
    // Not even the administrator can write below a file.
    fs::write(place.join("file"), "").expect("it can be written");
    let said = call(&place, "init --project file/below").fails();
    assert!(said.contains("cannot be"), "{said}");
    let said = call(&place, "init --project file").fails();
    assert!(said.contains("is no folder"), "{said}");
    fs::write(place.join("src"), "a file where a folder should be").expect("it can be written");
    let before = tree(&place);
    call(&place, "init").fails();
    assert_eq!(tree(&place), before);
}

#[test]
fn work_that_no_commit_has_is_not_deleted() {
    let (_around, place) = project();
    create(&place).works();
    let file = place.join("src/controller/guestbook.rs");
    let scaffolded = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, scaffolded + "// my work\n").expect("it can be written");
    let before = tree(&place);
    let said = delete(&place).fails();
    assert!(
        said.contains("src/controller/guestbook.rs") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(tree(&place), before);

    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let output = command
            .current_dir(&place)
            .args(identity)
            .args(arguments)
            .output();
        assert!(
            output.is_ok_and(|output| output.status.success()),
            "{arguments:?}"
        );
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "all"]);
    delete(&place).works();
    assert!(!file.exists(), "what is committed can go");
}

#[test]
fn command_killed_in_the_middle_is_undone_by_the_next() {
    let (_around, place) = project();
    let before = tree(&place);
    // What a command leaves behind that was killed after its first step: the file in place, the journal beside it.
    let state = place.join(".kubewright/transaction");
    fs::create_dir_all(&state).expect("it can be made");
    fs::write(place.join("src/half.rs"), "half").expect("it can be written");
    fs::write(state.join("1.new"), "other").expect("it can be written");
    let journal = r#"{"steps":[{"path":"src/half.rs","had":false,"has":true},{"path":"src/other.rs","had":false,"has":true}],"folders":[]}"#;
    fs::write(state.join("journal.json"), journal).expect("it can be written");
    let said = call(&place, "edit").works();
    assert!(said.contains("put back"), "{said}");
    assert_eq!(tree(&place), before);
}

#[test]
fn file_whose_first_line_is_removed_is_left_alone() {
    let (_around, place) = project();
    let inventory = place.join("inventory.json");
    let empty = r#"{"definitions":[],"rules":[],"webhooks":[],"controllers":[]}"#;
    fs::write(&inventory, empty).expect("it can be written");
    let generate = "generate --inventory inventory.json";
    let file = place.join("config/manager/manager.yaml");
    fs::write(&file, "mine: true\n").expect("it can be written");
    let said = call(&place, generate).works();
    assert!(
        said.contains("left alone config/manager/manager.yaml"),
        "{said}"
    );
    call(&place, "generate --inventory inventory.json --check").works();
    fs::remove_file(place.join("config/rbac/service_account.yaml")).expect("it is there");
    let said = call(&place, "generate --inventory inventory.json --check").fails();
    assert!(
        said.contains("would create config/rbac/service_account.yaml"),
        "{said}"
    );
    assert!(!place.join("config/rbac/service_account.yaml").exists());
    call(&place, "generate --inventory inventory.json --force").works();
    assert_ne!(
        fs::read_to_string(&file).expect("it is there"),
        "mine: true\n"
    );
}

#[test]
fn every_command_has_an_example_in_its_help() {
    for line in [
        "init",
        "create api",
        "create webhook",
        "create version",
        "delete api",
        "edit",
        "generate",
        "manifests",
        "lint",
        "run",
        "dev",
        "up",
        "install",
        "uninstall",
        "deploy",
        "undeploy",
        "image build",
        "completion",
        "doctor",
        "version",
        "demo",
        "envtest",
    ] {
        let said = call(Path::new("/"), &format!("{line} --help")).works();
        assert!(
            said.contains("Example") && said.contains("kubewright "),
            "{line}: {said}"
        );
    }
}

#[test]
fn shells_are_completed_and_versions_told() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let said = call(Path::new("/"), &format!("completion {shell}")).works();
        assert!(said.contains("undeploy"), "{shell}");
    }
    assert!(
        call(Path::new("/"), "version")
            .works()
            .contains("kubernetes")
    );
}

#[test]
fn without_a_cluster_people_are_told_how_to_get_one() {
    let (_around, place) = project();
    let empty = r#"{"definitions":[],"rules":[],"webhooks":[],"controllers":[]}"#;
    fs::write(place.join("i.json"), empty).expect("it can be written");
    for line in ["deploy --inventory i.json", "undeploy --inventory i.json"] {
        let said = call(&place, line).fails();
        assert!(said.contains("kubewright up"), "{line}: {said}");
    }
}
