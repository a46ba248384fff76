//! What the commands do with bad input: a clear message, and nothing half-written.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kubewright_server::Environment;
use kubewright_server::storage::{Draft, OpenOptions, Pairs, Store, Write};
use support::{folder, git, kubewright, tree};

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
            "not the path of a Rust type",
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
        ("lint --against nowhere", "is not in a git repository"),
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
fn outside_of_a_project_people_learn_how_to_make_one() {
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
    assert!(said.contains("is not a folder"), "{said}");
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
    assert!(
        !said.contains("api/v1"),
        "what was only scaffolded can go: {said}"
    );
    assert_eq!(tree(&place), before);

    git(&place, &["init", "--quiet"]);
    git(&place, &["add", "."]);
    git(&place, &["commit", "--quiet", "--message", "all"]);
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
fn command_that_is_killed_has_done_everything_or_nothing_once_the_next_has_run() {
    let (_around, place) = project();
    let before = tree(&place);
    create(&place).works();
    let after = tree(&place);
    let created = after.keys().filter(|path| !before.contains_key(*path));
    for file in created {
        delete(&place).works();
        assert_eq!(tree(&place), before);
        let words = [&["create"][..], &GUESTBOOK].concat();
        let mut command = support::command(&place, &words);
        let mut running = command.stdout(Stdio::null()).spawn().expect("it starts");
        // Killed when it has come as far as this file, unless it is faster than that.
        while !place.join(file).exists() && running.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        running.kill().expect("it is a child");
        running.wait().expect("it has ended");
        call(&place, "edit").works();
        let found = tree(&place);
        let shown = file.display();
        assert!(found == before || found == after, "{shown}: {found:#?}");
        create(&place).works();
        assert_eq!(tree(&place), after, "{shown}");
    }
}

#[test]
fn commands_that_are_called_at_once_take_turns() {
    let (_around, place) = project();
    let kinds = ["Captain", "Frigate", "Harbor", "Kraken", "Sailor", "Tide"];
    let calls = kinds.map(|kind| {
        let line = format!("create api --group sea --version v1 --kind {kind} --make=false");
        let place = place.clone();
        std::thread::spawn(move || call(&place, &line))
    });
    for called in calls {
        called.join().expect("it ends").works();
    }
    let file = |path: &str| fs::read_to_string(place.join(path)).expect("it is there");
    for kind in kinds {
        assert!(file("PROJECT").contains(&format!("kind: {kind}")), "{kind}");
        let line = format!("pub mod {};", kind.to_lowercase());
        assert!(file("src/controller.rs").contains(&line), "{kind}");
    }
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
fn license_header_is_kept_and_put_on_top_of_created_rust_files() {
    let (_around, place) = folder("guestbook");
    let init = ["init", "--license", "copyright", "--owner", "The Guests"];
    kubewright(&place, &init).works();
    kubewright(&place, &init).works();
    create(&place).works();
    call(
        &place,
        "create webhook --group webapp --version v1 --kind Guestbook --defaulting --make=false",
    )
    .works();
    let header = fs::read_to_string(place.join("hack/boilerplate.rs.txt")).expect("it is there");
    assert!(header.starts_with("// Copyright 2") && header.contains("The Guests."));
    let files = tree(&place);
    let sources = files.iter().filter(|(path, _)| path.starts_with("src"));
    for (path, text) in sources.clone() {
        let begins = text.starts_with(&format!("{header}\n//! "));
        assert!(begins, "{}: {text}", path.display());
    }
    assert!(sources.count() > 8);
    assert!(!files[Path::new("Makefile")].contains("The Guests"));

    // Those that are there are people's own; what is created afterwards has the new one.
    call(&place, "edit --license apache2").works();
    let before = tree(&place);
    assert_eq!(
        before[Path::new("src/main.rs")],
        files[Path::new("src/main.rs")]
    );
    call(
        &place,
        "create api --group webapp --version v1 --kind Page --make=false",
    )
    .works();
    let page = fs::read_to_string(place.join("src/api/v1/page.rs")).expect("it is there");
    assert!(
        page.contains("// Licensed under the Apache License"),
        "{page}"
    );
    call(
        &place,
        "delete api --group webapp --version v1 --kind Page --make=false",
    )
    .works();
    assert_eq!(tree(&place), before);
    fs::write(place.join("mine.txt"), "/*\nMine.\n*/\n").expect("it can be written");
    call(&place, "edit --license-file mine.txt").works();
    let kept = fs::read_to_string(place.join("hack/boilerplate.rs.txt")).expect("it is there");
    assert_eq!(kept, "/*\nMine.\n*/\n");
    let said = call(&place, "edit --license-file PROJECT").fails();
    assert!(said.contains("cannot stand at the top"), "{said}");
    call(&place, "edit --license none").works();
    assert!(!place.join("hack").exists());
    let said = call(&place, "edit --owner me").fails();
    assert!(said.contains("--license"), "{said}");
}

/// What a project with this layout is made with.
fn fleet(place: &Path, init: &str) {
    let captain = "--group crew --version v1 --kind Captain";
    for line in [
        init,
        "create api --group crew --version v1 --kind Captain --make=false",
        &format!("create api {captain} --resource=false --controller-name backup --make=false"),
        &format!("create version {captain} --to v2 --make=false"),
        &format!("create webhook {captain} --programmatic-validation --make=false"),
        "create api --group ship --version v1 --kind Frigate --make=false",
        "create api --group apps --version v1 --kind Deployment --resource=false --make=false",
    ] {
        call(place, line).works();
    }
}

#[test]
fn code_moves_when_the_layout_changes_and_back_again() {
    let (_one, by_version) = folder("fleet");
    let (_other, by_group) = folder("fleet");
    fleet(&by_version, "init --domain a.io");
    fleet(&by_group, "init --domain a.io --multigroup");
    let before = tree(&by_version);
    let said = call(&by_version, "edit --multigroup --dry-run").works();
    assert!(
        said.contains("would create src/api/crew/v1/captain.rs"),
        "{said}"
    );
    assert_eq!(tree(&by_version), before);
    call(&by_version, "edit --multigroup").works();
    assert_eq!(tree(&by_version), tree(&by_group));
    call(&by_version, "edit --multigroup").works();
    call(&by_version, "edit --multigroup=false").works();
    assert_eq!(tree(&by_version), before);
}

#[test]
fn own_files_move_along_and_one_in_the_way_stops_it() {
    let (_around, place) = folder("fleet");
    fleet(&place, "init --domain a.io");
    let own = "use crate::api::v1::captain::Captain;\n// mine\n";
    fs::write(place.join("src/controller/captain/plan.rs"), own).expect("it can be written");
    fs::create_dir_all(place.join("src/api/crew/v1")).expect("it can be made");
    fs::write(place.join("src/api/crew/v1/captain.rs"), "mine").expect("it can be written");
    let before = tree(&place);
    let said = call(&place, "edit --multigroup").fails();
    assert!(said.contains("src/api/crew/v1/captain.rs"), "{said}");
    assert_eq!(tree(&place), before);
    fs::remove_dir_all(place.join("src/api/crew")).expect("it is there");
    call(&place, "edit --multigroup").works();
    let moved = fs::read_to_string(place.join("src/controller/crew/captain/plan.rs"));
    assert_eq!(
        moved.expect("it is there"),
        own.replace("v1::captain", "crew::v1::captain")
    );
}

/// The JSON of what a golden project says of itself.
fn inventory(name: &str) -> serde_json::Value {
    let file = support::repository().join(format!("testdata/inventories/{name}.json"));
    let text = fs::read_to_string(file).expect("it is there");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn change_that_breaks_users_is_found_against_a_revision() {
    let (_around, place) = folder("single");
    support::copy(
        &support::repository().join("testdata/projects/single"),
        &place,
    );
    git(&place, &["init", "--quiet"]);
    git(&place, &["add", "."]);
    git(&place, &["commit", "--quiet", "--message", "first"]);
    git(&place, &["tag", "v1.0"]);
    let before = tree(&place.join("config"));
    let properties =
        "/definitions/0/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let same = inventory("single");
    let (mut more, mut less) = (same.clone(), same.clone());
    let fields = |value: &mut serde_json::Value, change: fn(&mut serde_json::Value)| {
        change(value.pointer_mut(properties).expect("it is there"));
    };
    fields(&mut more, |spec| {
        spec["color"] =
            serde_json::json!({"type": "string", "description": "Its color.", "maxLength": 9});
    });
    fields(&mut less, |spec| {
        spec.as_object_mut().expect("it is a map").remove("size");
    });
    let lint = |name: &str, value: &serde_json::Value, flags: &str| {
        fs::write(place.join(name), value.to_string()).expect("it can be written");
        call(
            &place,
            &format!("lint --inventory {name} --against {flags}"),
        )
    };
    lint("same.json", &same, "v1.0").works();
    lint("more.json", &more, "HEAD").works();
    let said = lint("less.json", &less, "v1.0").fails();
    assert!(
        said.contains("size") && said.contains("to be fixed"),
        "{said}"
    );
    let said = lint("less.json", &less, "v1.0 --json").fails();
    let first = said.lines().find(|line| line.contains("size"));
    let finding: serde_json::Value =
        serde_json::from_str(first.expect("it is found")).expect("it is JSON");
    assert_eq!(finding["severity"], "error", "{finding}");
    // Without a revision to compare with, nothing is wrong with it.
    call(&place, "lint --inventory less.json").works();
    assert_eq!(tree(&place.join("config")), before);

    git(&place, &["rm", "--quiet", "-r", "config"]);
    git(&place, &["commit", "--quiet", "--message", "nothing"]);
    for (revision, reason) in [
        ("HEAD", "was config/ committed there?"),
        ("v9", "there is no revision v9 in this git repository; see"),
        ("-x", "unexpected argument"),
    ] {
        let said = lint("same.json", &same, revision).fails();
        assert!(said.contains(reason), "{revision}: {said}");
    }
}

#[test]
fn no_other_program_and_no_network_is_needed() {
    let (_around, place) = folder("guestbook");
    let inventory = support::repository().join("testdata/inventories/single.json");
    let generate = format!("generate --inventory {}", inventory.display());
    for line in [
        "init --domain my.domain",
        "create api --group webapp --version v1 --kind Guestbook --make=false",
        "edit --image a:1",
        &generate,
        &format!("{generate} --check"),
        &format!("lint --inventory {}", inventory.display()),
        "delete api --group webapp --version v1 --kind Guestbook --make=false",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = support::command(&place, &words);
        // Nothing is on the path, and whoever goes out through a proxy meets nobody.
        command.env("PATH", "/nonexistent");
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(proxy, "http://127.0.0.1:1");
        }
        support::call(&mut command).works();
    }
}

#[test]
fn kinds_are_judged_without_a_cluster() {
    let (_around, place) = project();
    let mut inventory = inventory("single");
    let lint = |value: &serde_json::Value| {
        fs::write(place.join("i.json"), value.to_string()).expect("it can be written");
        call(&place, "lint --inventory i.json")
    };
    lint(&inventory).works();
    let field =
        "/definitions/0/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
    let size = inventory.pointer_mut(field).expect("it is there");
    size["default"] = "many".into();
    let said = lint(&inventory).fails();
    assert!(said.contains("size"), "{said}");
}

#[test]
fn doctor_says_what_is_missing_and_what_to_do() {
    let (_around, place) = project();
    create(&place).works();
    let said = call(&place, "doctor").works();
    for line in [
        "ok   rust",
        "ok   project",
        "ok   sources     1 kind\n",
        "kubewright up",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    fs::remove_file(place.join("src/api/v1/guestbook.rs")).expect("it is there");
    let mut command = support::command(&place, &["doctor"]);
    command.env("PATH", "/nonexistent").env_remove("CARGO");
    let said = support::call(&mut command).fails();
    for line in [
        "FAIL rust        cargo is missing; install Rust from https://rustup.rs",
        "-    git         not there",
        "-    images      image build needs the Rust target",
        "FAIL sources     PROJECT names files that are not there: src/api/v1/guestbook.rs",
        "2 of these have to be fixed",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// A data directory with some objects, as `up --data-dir` leaves it.
fn data_directory(directory: &Path, objects: usize) -> PathBuf {
    let path = directory.join("objects");
    let (store, _) =
        Store::open(&path, OpenOptions::default(), Environment::system()).expect("there is room");
    let collection = store.collection("configmaps");
    for n in 0..objects {
        let head = r#"{"metadata":{"resourceVersion":""#;
        let draft = Draft {
            uid: format!("uid-{n}").into(),
            labels: Pairs::default(),
            fields: Pairs::default(),
            body: format!(r#"{head}"}}}}"#).into_bytes(),
            version_at: head.len(),
        };
        let key = format!("default/c{n}");
        collection
            .commit(Write::Create { key, draft })
            .expect("it is new");
    }
    path
}

#[test]
fn doctor_names_damage_of_a_data_directory_and_repairs_it_on_request() {
    let (_around, place) = support::folder("place");
    let objects = data_directory(&place.join("data"), 5);
    let said = call(&place, "doctor --data-dir data").works();
    assert!(said.contains("ok   data        5 objects"), "{said}");
    let log = objects.join("log-00000000000000000001");
    let mut bytes = fs::read(&log).expect("there is a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, &bytes).expect("there is room");
    let said = call(&place, "up --port 0 --data-dir data").fails();
    for part in ["is damaged at byte ", "kubewright doctor --data-dir data"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = call(&place, "doctor --data-dir data").fails();
    for part in [
        "log-00000000000000000001 at byte ",
        "between revisions 3 and 5",
        "4 objects can be read",
        "doctor --data-dir data --repair",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(fs::read(&log).expect("it is still there"), bytes);
    let said = call(&place, "doctor --data-dir data --repair").works();
    assert!(said.contains("ok   repaired    4 objects"), "{said}");
    let kept = objects.join("damaged-1/log-00000000000000000001");
    assert_eq!(fs::read(kept).expect("it is kept"), bytes);
    let said = call(&place, "doctor --data-dir data").works();
    assert!(said.contains("ok   data        4 objects"), "{said}");
    let said = call(&place, "doctor --data-dir missing").fails();
    assert!(said.contains("missing/objects is missing"), "{said}");
}

#[test]
fn webhooks_and_conversions_are_deployed_unless_they_are_left_out() {
    let (_around, place) = project();
    create(&place).works();
    let inventory = support::repository().join("testdata/inventories/single.json");
    let generate = format!("generate --inventory {}", inventory.display());
    call(&place, &generate).works();
    let read = |path: &str| tree(&place)[Path::new(path)].clone();
    for text in [
        read("dist/install.yaml"),
        read("config/webhook/mutating.yaml"),
    ] {
        assert!(
            text.contains("kind: MutatingWebhookConfiguration"),
            "{text}"
        );
    }
    assert!(read("config/default/kustomization.yaml").contains("../webhook"));
    assert!(
        !read("dist/install.yaml").contains("name: webhook-service"),
        "it has a prefix"
    );
    assert!(read("config/manager/manager.yaml").contains("--cert-secret="));

    call(&place, "edit --certificates cert-manager").works();
    call(&place, &generate).works();
    let install = read("dist/install.yaml");
    assert!(
        install.contains("cert-manager.io/inject-ca-from"),
        "{install}"
    );
    assert!(install.contains("--webhook-cert-path=") && !install.contains("--cert-secret="));

    call(&place, "edit --certificates manager --webhooks=false").works();
    call(&place, &generate).works();
    let install = read("dist/install.yaml");
    for gone in [
        "WebhookConfiguration",
        "strategy: Webhook",
        "inject-ca-from",
        "--cert-secret=",
    ] {
        assert!(!install.contains(gone), "{gone}: {install}");
    }
}

#[test]
fn conversion_is_added_to_webhooks_that_somebody_has_written() {
    let (_around, place) = project();
    create(&place).works();
    let kind = "--group webapp --version v1 --kind Guestbook";
    let webhook = |flags: &str| {
        let line = format!("create webhook {kind} {flags} --make=false");
        call(&place, &line)
    };
    webhook("--programmatic-validation").works();
    let file = place.join("src/webhook/v1/guestbook.rs");
    let read = || fs::read_to_string(&file).expect("it is there");
    let mine = "    Err(\"mine\".to_owned())\n";
    let edited = read().replace("    Ok(())\n", mine) + "\n#[cfg(test)]\nmod tests {}\n";
    fs::write(&file, &edited).expect("it can be written");
    call(
        &place,
        &format!("create version {kind} --to v2 --make=false"),
    )
    .works();

    webhook("--conversion --spoke v2").works();
    let text = read();
    assert!(text.contains(mine), "{text}");
    let import = "use kubewright::webhook::{Spoke, same_fields};\n\nuse crate::api::v1";
    assert!(text.contains(import), "{text}");
    let spoke = text.find("impl Spoke<Guestbook> for crate::api::v2::guestbook::Guestbook");
    assert!(spoke.is_some() && spoke < text.find("mod tests"), "{text}");
    for version in ["v1", "v2"] {
        let types = place.join(format!("src/api/{version}/guestbook.rs"));
        let types = fs::read_to_string(types).expect("it is there");
        assert!(types.contains("conversion = \"webhook\""), "{types}");
    }

    webhook("--defaulting").works();
    let text = read();
    let parts = [mine, "pub fn default(", "impl Spoke", "pub fn validate("];
    for part in parts {
        assert_eq!(text.matches(part).count(), 1, "{part} in {text}");
    }
    let before = tree(&place);
    let said = webhook("--defaulting --defaulting-path /elsewhere").fails();
    assert!(said.contains("--force"), "{said}");
    assert_eq!(tree(&place), before);
    webhook("--defaulting --defaulting-path /elsewhere --force").works();
    assert!(!read().contains(mine), "it was to be overwritten");
}

#[test]
fn deleting_a_version_keeps_the_controller_of_the_kind() {
    let (_around, place) = project();
    create(&place).works();
    let kind = "--group webapp --kind Guestbook --make=false";
    call(
        &place,
        &format!("create version {kind} --version v1 --to v2"),
    )
    .works();
    let said = call(&place, &format!("delete api {kind} --version v1")).fails();
    assert!(
        said.contains("src/controller/guestbook.rs") && said.contains("use another version first"),
        "{said}"
    );
    let controller = place.join("src/controller/guestbook.rs");
    for file in [
        controller.clone(),
        place.join("src/controller/guestbook/tests.rs"),
        place.join("src/controller/guestbook/simulation.rs"),
    ] {
        let text = fs::read_to_string(&file).expect("it is there");
        fs::write(&file, text.replace("api::v1::", "api::v2::")).expect("it is written");
    }
    call(&place, &format!("delete version {kind} --version v1")).works();
    let files = tree(&place);
    assert!(controller.is_file(), "it is the kind's");
    assert!(!files.contains_key(Path::new("src/api/v1/guestbook.rs")));
    assert!(!files[Path::new("src/api/v2/guestbook.rs")].contains("storage = false"));
    assert!(files[Path::new("PROJECT")].contains("controller: true"));
    let said = call(&place, &format!("delete version {kind} --version v2")).fails();
    assert!(
        said.contains("kubewright delete api --group webapp"),
        "{said}"
    );
    call(&place, &format!("delete api {kind} --version v2 --force")).works();
    assert!(!controller.is_file(), "it went with the last version");
}

#[test]
fn mistakes_have_no_backtrace_and_dependencies_by_path_are_said() {
    let (_around, place) = folder("empty");
    let mut command = support::command(&place, &["generate"]);
    let said = support::call(command.env("RUST_BACKTRACE", "1")).fails();
    assert!(
        said.starts_with("Error: ") && !said.contains("backtrace"),
        "{said}"
    );
    let said = call(&place, "init --sdk path=/a/checkout").works();
    assert!(said.contains("nowhere else, CI included"), "{said}");
    let (_around, place) = folder("other");
    let said = call(&place, "init --sdk version=1.2").works();
    assert!(!said.contains("nowhere else"), "{said}");
}

#[test]
fn chart_is_generated_once_it_is_asked_for_and_with_everything_else_from_then_on() {
    let (_around, place) = project();
    create(&place).works();
    let inventory = support::repository().join("testdata/inventories/single.json");
    let generate = format!("generate --inventory {}", inventory.display());
    call(&place, &generate).works();
    assert!(!place.join("dist/chart").exists());
    call(&place, &format!("{generate} helm")).works();
    let values = fs::read_to_string(place.join("dist/chart/values.yaml")).expect("it is there");
    assert!(values.contains("replicas: 1"), "{values}");
    call(&place, &generate).works();
    assert!(place.join("dist/chart/Chart.yaml").is_file());
    call(&place, &format!("{generate} --check")).works();
    call(&place, "edit --helm=false").works();
    call(&place, &generate).works();
    assert!(!place.join("dist/chart").exists());
}

#[test]
fn check_accepts_the_image_that_was_chosen_for_the_installer() {
    let (_around, place) = project();
    create(&place).works();
    let inventory = support::repository().join("testdata/inventories/single.json");
    let generate = format!("generate --inventory {}", inventory.display());
    let check = format!("{generate} --check");
    call(&place, &generate).works();
    call(&place, &format!("{generate} install --image r.io/book:1")).works();
    let install = place.join("dist/install.yaml");
    let text = fs::read_to_string(&install).expect("it is there");
    assert!(text.contains("r.io/book:1"), "{text}");
    call(&place, &check).works();
    call(&place, &format!("{check} --image r.io/book:2")).fails();
    fs::write(&install, text.replace("replicas: 1", "replicas: 2")).expect("it can be written");
    let said = call(&place, &format!("{check} --diff")).fails();
    assert!(
        said.contains("replicas: 1") && !said.contains("r.io/book"),
        "nothing else is different: {said}"
    );
    // The image of the project is in config/ as well, and that is not chosen anew each time.
    fs::write(&install, text).expect("it can be written");
    call(&place, "edit --image r.io/book:3").works();
    let said = call(&place, &check).fails();
    assert!(said.contains("config/manager/manager.yaml"), "{said}");
}

/// The commands below one, as its help lists them; itself where it has none.
fn commands_below(line: &str) -> Vec<String> {
    let help = call(Path::new("/"), format!("{line} --help").trim_start()).works();
    let listed = help.split_once("\nCommands:\n").map(|(_, rest)| rest);
    let names = listed.into_iter().flat_map(|rest| {
        let lines = rest.lines().take_while(|line| !line.is_empty());
        let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        names.filter(|name| !name.is_empty() && *name != "help")
    });
    let below: Vec<String> = names
        .flat_map(|name| commands_below(format!("{line} {name}").trim_start()))
        .collect();
    if below.is_empty() {
        return vec![line.to_owned()];
    }
    below
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let commands = commands_below("");
    assert!(commands.len() > 25, "{commands:?}");
    assert!(commands.contains(&"create api".to_owned()), "{commands:?}");
    for line in commands {
        let said = call(Path::new("/"), &format!("{line} --help")).works();
        assert!(
            said.contains("Example") && said.contains("kubewright "),
            "{line}: {said}"
        );
    }
}

#[test]
fn shells_are_completed_and_versions_printed() {
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
fn every_command_has_a_page_of_the_manual() {
    let (_around, place) = folder("pages");
    let page = call(&place, "man").works();
    assert!(page.contains(".TH kubewright 1"), "{page}");
    call(&place, "man --dir pages/man1").works();
    for command in commands_below("") {
        let name = format!("kubewright-{}.1", command.replace(' ', "-"));
        let page = fs::read_to_string(place.join("pages/man1").join(&name));
        let page = page.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains("Example"), "{name}: {page}");
    }
}

#[test]
fn without_a_cluster_people_learn_how_to_get_one() {
    let (_around, place) = project();
    let empty = r#"{"definitions":[],"rules":[],"webhooks":[],"controllers":[]}"#;
    fs::write(place.join("i.json"), empty).expect("it can be written");
    let lines = ["deploy --inventory i.json", "undeploy --inventory i.json"];
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        // It is found out before anything is built.
        let said = support::call(support::command(&place, &words).env("CARGO", "/nonexistent"));
        let said = said.fails();
        assert!(said.contains("kubewright up"), "{line}: {said}");
    }
}

/// A program in place of cargo: it lists three tests, and has a campaign and a walk in two of them.
const CARGO: &str = "
case \"$*\" in
'test --tests -- --list') printf 'api::kind: test\\ncontroller::page::simulation::faults: test\\ncontroller::page::simulation::walk: test\\n' ;;
*) echo ran \"$@\"; if [ -n \"$KUBEWRIGHT_SIM_CAMPAIGNS\" ]; then printf 'page\\npage-walk\\n' >> \"$KUBEWRIGHT_SIM_CAMPAIGNS\"; fi ;;
esac
";

#[test]
fn simulation_in_which_nothing_runs_fails_and_names_what_there_is() {
    let (_around, place) = project();
    let cargo = place.join("cargo.sh");
    support::stand_in::script(&cargo, CARGO);
    let simulate = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        support::call(support::command(&place, &words).env("CARGO", &cargo))
    };
    let said = simulate("simulate").works();
    assert!(
        said.contains("ran test --tests simulation -- --nocapture"),
        "{said}"
    );
    assert!(
        simulate("simulate faults")
            .works()
            .contains("ran test --tests faults")
    );
    let said = simulate("simulate nosuch").fails();
    let tests = "controller::page::simulation::faults, controller::page::simulation::walk";
    let why = format!("there is no test with nosuch in its name; there are: {tests}");
    assert!(said.contains(&why) && !said.contains("ran"), "{said}");

    simulate("simulate --replay page:none").works();
    simulate("simulate --replay page-walk:walk:0:1").works();
    let said = simulate("simulate --replay nonsense:foo").fails();
    let why = "no campaign is called nonsense; there are: page, page-walk";
    assert!(said.contains(why), "{said}");
    let said = simulate("simulate --replay nonsense").fails();
    assert!(
        said.contains("NAME:PLAN") && !said.contains("ran"),
        "{said}"
    );
}

/// The targets in the Makefile of a project of kubebuilder 4.15.
const KNOWN_TARGETS: [&str; 28] = [
    "all",
    "build",
    "build-installer",
    "cleanup-test-e2e",
    "controller-gen",
    "deploy",
    "docker-build",
    "docker-buildx",
    "docker-push",
    "envtest",
    "fmt",
    "generate",
    "golangci-lint",
    "help",
    "install",
    "kustomize",
    "lint",
    "lint-config",
    "lint-fix",
    "manifests",
    "run",
    "setup-envtest",
    "setup-test-e2e",
    "test",
    "test-e2e",
    "undeploy",
    "uninstall",
    "vet",
];

#[test]
fn makefile_has_known_names_and_commands_that_exist() {
    let (_around, place) = project();
    let text = fs::read_to_string(place.join("Makefile")).expect("it is there");
    let targets = text.lines().filter_map(|line| line.split_once(':'));
    let targets: Vec<&str> = targets.map(|(name, _)| name).collect();
    let known = KNOWN_TARGETS.iter().filter(|it| targets.contains(it));
    assert_eq!(known.count(), 19, "{targets:?}");
    let commands = text
        .lines()
        .filter_map(|line| line.strip_prefix("\t$(KUBEWRIGHT) "));
    let mut count = 0;
    for line in commands {
        let line = line
            .replace("$(IMG)", "example.com/guestbook:1")
            .replace("$(PLATFORMS)", "linux/amd64");
        // Flags are read first, and one that does not exist is an error; nothing is done.
        call(&place, &format!("{line} --help")).works();
        count += 1;
    }
    assert!(count > 10, "{count} commands");
}
