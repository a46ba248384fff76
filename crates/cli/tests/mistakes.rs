//! Mistakes of people, and what the command says about them.

mod support;

use std::fs;

use support::stand_in::{Project, script};
use support::{Called, call, command, folder, kubewright, repository, tree};

fn generate(project: &Project) -> Called {
    let mut command = command(&project.place, &["generate"]);
    call(command.env("CARGO", &project.cargo))
}

#[test]
fn error_of_the_compiler_is_shown_with_the_attribute_to_add() {
    let project = Project::new("single");
    let said = serde_json::json!({
        "reason": "compiler-message",
        "message": {
            "message": "cannot find attribute `k8s` in this scope",
            "rendered": "error: cannot find attribute `k8s` in this scope\n  --> src/api/v1/guestbook.rs:3:7\n",
        },
    });
    script(
        &project.cargo,
        &format!("cat <<'END'\n{said}\nEND\nexit 101\n"),
    );
    let said = generate(&project).fails();
    for part in [
        "  --> src/api/v1/guestbook.rs:3:7\n",
        "Error: the program does not build; the compiler says why above\n",
        "write #[kubewright::schema] above its #[derive(..)]",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn error_of_the_program_is_not_followed_by_advice_about_something_else() {
    let project = Project::new("single");
    let tools = project.cargo.parent().expect("it is in a folder");
    script(
        &tools.join("program"),
        "echo 'two versions are stored' >&2; exit 1\n",
    );
    let said = generate(&project).fails();
    assert!(said.contains("two versions are stored"), "{said}");
    assert!(
        said.contains("it says why above") && !said.contains("operator!"),
        "{said}"
    );
    script(&tools.join("program"), "echo hello\n");
    let said = generate(&project).fails();
    assert!(
        said.contains("src/main.rs has to call kubewright::operator!().run()"),
        "{said}"
    );
}

#[test]
fn the_side_that_is_too_old_is_named() {
    let (_around, place) = folder("guestbook");
    kubewright(&place, &["init", "--domain", "my.domain"]).works();
    let generate = |inventory: &str| {
        fs::write(place.join("i.json"), inventory).expect("it can be written");
        kubewright(&place, &["generate", "--inventory", "i.json"])
    };
    // A format of the future may have nothing that is known today.
    let said = generate(r#"{"format": 99, "everything": {}}"#).fails();
    assert!(
        said.contains("built with a newer toolkit than this command")
            && said.contains("install a newer kubewright"),
        "{said}"
    );
    let empty = r#""definitions": [], "rules": [], "webhooks": [], "controllers": []"#;
    let said = generate(&format!("{{{empty}}}")).works();
    assert!(
        said.contains("built with an older toolkit than this command"),
        "{said}"
    );
    let said = generate(&format!(r#"{{"format": 1, {empty}}}"#)).works();
    assert!(!said.contains("toolkit"), "{said}");
}

#[test]
fn kind_of_an_image_is_made_of_flags_that_fit_together() {
    let (_around, place) = folder("cache");
    kubewright(&place, &["init", "--domain", "my.domain"]).works();
    let before = tree(&place);
    let create = "create api --group cache --version v1 --kind Store --make=false";
    let line = |flags: &str| {
        let words = create.split(' ').chain(flags.split(' '));
        kubewright(&place, &words.collect::<Vec<_>>())
    };
    for (flags, reason) in [
        ("--image Store:1", "is not the name of an image"),
        ("--image-container-port 80", "--image <IMAGE>"),
        (
            "--image store:1 --image-container-port 0",
            "0 is not in 1..=65535",
        ),
        (
            "--image store:1 --image-container-command store,,-v",
            "an empty word",
        ),
        (
            "--image store:1 --controller=false",
            "a type and its controller",
        ),
        (
            "--image store:1 --resource=false",
            "a type and its controller",
        ),
        ("--image store:1 --namespaced=false", "live in namespaces"),
        (
            "--image store:1 --controller-name other",
            "add one of another name afterwards",
        ),
        (
            "--image store:1 --from-crd file.yaml",
            "cannot be used with",
        ),
    ] {
        let said = line(flags).fails();
        assert!(said.contains(reason), "{flags}: {said}");
        assert_eq!(tree(&place), before, "{flags}");
    }
    let flags = r#"--image store:1 --image-container-command store,-c,a"b"#;
    line(flags).works();
    let code = fs::read_to_string(place.join("src/controller/store.rs")).expect("it is there");
    assert!(code.contains(r#"&["store", "-c", "a\"b"]"#), "{code}");
    assert!(!code.contains("run_as_user"), "nobody asked for it: {code}");
    kubewright(
        &place,
        &create
            .replace("create", "delete")
            .split(' ')
            .collect::<Vec<_>>(),
    )
    .works();
    assert_eq!(tree(&place), before);
}

#[test]
fn copy_of_a_version_that_nobody_changed_can_be_deleted_at_once() {
    let (_around, place) = folder("guestbook");
    let call = |line: &str| kubewright(&place, &line.split(' ').collect::<Vec<_>>());
    call("init --domain my.domain").works();
    let kind = "--group webapp --kind Guestbook --make=false";
    call(&format!("create api {kind} --version v1")).works();
    let api = |version: &str| place.join(format!("src/api/{version}/guestbook.rs"));
    let text = fs::read_to_string(api("v1")).expect("it is there");
    // Work of somebody, which is in both versions then.
    fs::write(api("v1"), text + "// mine\n").expect("it can be written");
    let before = tree(&place);
    call(&format!("create version {kind} --version v1 --to v2")).works();
    let said = call("doctor").text();
    assert!(said.contains("ok   sources     1 kind\n"), "{said}");
    call(&format!("delete version {kind} --version v2")).works();
    assert_eq!(tree(&place), before);

    call(&format!("create version {kind} --version v1 --to v2")).works();
    let text = fs::read_to_string(api("v2")).expect("it is there");
    fs::write(api("v2"), text + "// more\n").expect("it can be written");
    let said = call(&format!("delete version {kind} --version v2")).fails();
    assert!(
        said.contains("src/api/v2/guestbook.rs") && said.contains("--force"),
        "{said}"
    );
}

#[test]
fn webhooks_are_served_where_people_say() {
    let (_around, place) = folder("guestbook");
    let call = |line: &str| kubewright(&place, &line.split(' ').collect::<Vec<_>>());
    call("init --domain my.domain").works();
    let kind = "--group webapp --version v1 --kind Guestbook --make=false";
    call(&format!("create api {kind}")).works();
    let webhook = format!("create webhook {kind}");
    for (flags, reason) in [
        (
            "--defaulting --defaulting-path default",
            "a path begins with /",
        ),
        (
            "--defaulting --validation-path /validate",
            "--programmatic-validation",
        ),
    ] {
        let said = call(&format!("{webhook} {flags}")).fails();
        assert!(said.contains(reason), "{flags}: {said}");
    }
    call(&format!(
        "{webhook} --defaulting --defaulting-path /default"
    ))
    .works();
    // The other is added later, and the first stays where it is.
    call(&format!("{webhook} --programmatic-validation")).works();
    let code = fs::read_to_string(place.join("src/webhook/v1/guestbook.rs")).expect("it is there");
    for path in [
        "path = \"/default\"",
        "path = \"/validate-webapp-my-domain-v1-guestbook\"",
    ] {
        assert!(code.contains(path), "{path}: {code}");
    }
    let project = fs::read_to_string(place.join("PROJECT")).expect("it is there");
    assert!(project.contains("defaultingPath: /default"), "{project}");
}

#[test]
fn workflow_for_ci_needs_nothing_but_rust_and_a_toolkit_that_can_be_found() {
    for (sdk, needs_folder) in [
        ("version", false),
        ("git", false),
        ("path=/a/checkout", true),
    ] {
        let (_around, place) = folder("guestbook");
        kubewright(&place, &["init", "--sdk", sdk]).works();
        let text = fs::read_to_string(place.join(".github/workflows/test.yml"));
        let text = text.expect("it is there");
        let workflow: serde_json::Value = serde_saphyr::from_str(&text).expect("it is YAML");
        let steps = workflow["jobs"]["test"]["steps"].as_array();
        let steps = steps.expect("it has steps").iter();
        let runs: Vec<&str> = steps.filter_map(|step| step["run"].as_str()).collect();
        let program = |run: &&str| run.split(' ').next().map(str::to_owned);
        let programs: Vec<String> = runs.iter().filter_map(program).collect();
        let expected: &[&str] = if needs_folder {
            &["test", "rustup", "cargo", "cargo", "cargo"]
        } else {
            &["rustup", "cargo", "cargo", "cargo"]
        };
        assert_eq!(programs, expected, "{sdk}: {text}");
        if needs_folder {
            let step = std::process::Command::new("sh")
                .args(["-e", "-c", runs[0]])
                .output();
            let step = step.expect("there is a shell");
            assert!(!step.status.success());
            let said = String::from_utf8_lossy(&step.stdout).into_owned();
            assert!(
                said.contains("take it from git or the registry instead"),
                "{said}"
            );
        }
        let manifest = fs::read_to_string(place.join("Cargo.toml")).expect("it is there");
        assert_eq!(manifest.contains("/a/checkout"), needs_folder, "{manifest}");
    }
    let golden = repository().join("testdata/projects/single/.github/workflows/test.yml");
    assert!(golden.is_file());
}
