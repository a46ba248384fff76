//! Projects of an earlier scaffold become what is scaffolded today, and what people have changed in them stays.

#[path = "update/edits.rs"]
mod edits;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use edits::{EDITS, Edit};
use support::{Called, command, folder, kubewright, repository, tree};

/// The projects that are kept as scaffold 1 wrote them, and the calls that made them.
const PROJECTS: [(&str, &[&str]); 4] = [
    (
        "single",
        &[
            "init --domain my.domain --sdk path=../../..",
            "create api --group webapp --version v1 --kind Guestbook --make=false",
            "create version --group webapp --version v1 --kind Guestbook --to v2 --make=false",
            "create webhook --group webapp --version v1 --kind Guestbook --defaulting --programmatic-validation --conversion --spoke v2 --make=false",
        ],
    ),
    (
        "multigroup",
        &[
            "init --domain testproject.org --multigroup --sdk path=../../..",
            "create api --group crew --version v1 --kind Captain --plural admirales --make=false",
            "create api --group crew --version v1 --kind Captain --resource=false --controller-name captain-backup --make=false",
            "create version --group crew --version v1 --kind Captain --to v2 --make=false",
            "create api --group ship --version v1beta1 --kind Frigate --make=false",
            "create api --group ship --version v1 --kind Harbor --from-crd testdata/harbors.yaml --make=false",
            "create api --group sea-creatures --version v1beta2 --kind Kraken --controller=false --make=false",
        ],
    ),
    (
        "cluster-scoped",
        &[
            "init --domain example.com --sdk path=../../..",
            "create api --group platform --version v1alpha1 --kind Tenant --namespaced=false --make=false",
            "edit --prometheus=true --image registry.example.com/tenants:1.0",
        ],
    ),
    (
        "external",
        &[
            "init --domain example.com --namespaced --sdk path=../../..",
            "create api --group apps --version v1 --kind Deployment --resource=false --make=false",
            "create api --group cert-manager --version v1 --kind Certificate --resource=false \
             --external-api-domain io --from-crd testdata/certificates.yaml --make=false",
        ],
    ),
];

/// Writes a project as scaffold 1 wrote it into a folder.
fn old_project(name: &str, place: &Path) {
    let archive = repository().join(format!("testdata/scaffolds/1/{name}.txt"));
    let archive = fs::read_to_string(archive).expect("it is there");
    let mut files = BTreeMap::<&str, String>::new();
    let mut current = None;
    for line in archive.split_inclusive('\n') {
        let path = line
            .strip_prefix("-- ")
            .and_then(|it| it.strip_suffix(" --\n"));
        match (path, current) {
            (Some(path), _) => current = Some(path),
            (None, Some(path)) => files.entry(path).or_default().push_str(line),
            (None, None) => {}
        }
    }
    assert!(files.len() > 15, "{name} has its files");
    for (path, text) in files {
        let file = place.join(path);
        fs::create_dir_all(file.parent().expect("it has one")).expect("it can be made");
        fs::write(file, text).expect("it can be written");
    }
}

/// Everything in a project that is not generated.
fn own_files(place: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = tree(place);
    files.retain(|path, _| !path.starts_with("config") || path.starts_with("config/overlays"));
    files.retain(|path, _| !path.starts_with("dist"));
    files
}

/// Merges without any other program on the path.
fn update(place: &Path, flags: &[&str]) -> Called {
    let mut command = command(place, &[&["alpha", "update"], flags].concat());
    support::call(command.env("PATH", "/nonexistent"))
}

fn change(place: &Path, path: &str, change: impl FnOnce(String) -> String) {
    let file = place.join(path);
    let text = fs::read_to_string(&file).unwrap_or_default();
    let changed = change(text.clone());
    assert_ne!(text, changed, "{path} is changed");
    fs::write(file, changed).expect("it can be written");
}

/// What today's commands write for one of the projects.
fn scaffolded_today(name: &str, calls: &[&str]) -> BTreeMap<PathBuf, String> {
    let (_around, place) = folder(name);
    for line in calls {
        let project = place.display().to_string();
        let words = line.split_whitespace().chain(["--project", &project]);
        kubewright(&repository(), &words.collect::<Vec<_>>()).works();
    }
    own_files(&place)
}

#[test]
fn projects_that_nobody_changed_become_what_is_scaffolded_today() {
    for (name, calls) in PROJECTS {
        let (_around, place) = folder(name);
        old_project(name, &place);
        let before = own_files(&place);
        let said = update(&place, &["--dry-run"]).works();
        assert!(said.contains("would change Makefile"), "{said}");
        assert_eq!(own_files(&place), before, "{name}");
        let said = update(&place, &[]).works();
        assert!(said.contains("Next: kubewright generate"), "{said}");
        let expected = scaffolded_today(name, calls);
        let made = own_files(&place);
        let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&made), names(&expected), "{name}");
        for (path, text) in made {
            assert_eq!(text, expected[&path], "{name} {}", path.display());
        }
        let said = update(&place, &[]).works();
        assert!(said.contains("nothing was written"), "{said}");
    }
}

/// The line of the Makefile that both change in every project: as it is today, and by people.
const THEIRS: &str = "lint-fix: ## Fix what can be fixed.\n";
const MINE: &str = "lint-fix: ## My own words.\n";

/// A Makefile in which somebody described a target in other words.
fn described_by_people(makefile: &str) -> String {
    let mut described = String::new();
    for line in makefile.split_inclusive('\n') {
        let is_it = line.starts_with("lint-fix: ##");
        described.push_str(if is_it { MINE } else { line });
    }
    described
}

/// Makes ten changes and one that the scaffold makes as well, adds a file and deletes another. The project has to become today's
/// with these changes, and with one conflict.
fn check_changes(name: &str, calls: &[&str], edits: &[Edit]) {
    let (_around, place) = folder(name);
    old_project(name, &place);
    for it in edits {
        change(&place, it.path, |text| text.replacen(it.before, it.mine, 1));
    }
    change(&place, "Makefile", |text| described_by_people(&text));
    fs::write(place.join("src/mine.rs"), "//! Mine.\n").expect("it can be written");
    fs::remove_file(place.join("Dockerfile")).expect("it is there");
    let said = update(&place, &[]).fails();
    assert!(
        said.contains("1 conflict has to be resolved"),
        "{name}: {said}"
    );

    let mut expected = scaffolded_today(name, calls);
    expected.insert("src/mine.rs".into(), "//! Mine.\n".to_owned());
    expected.remove(Path::new("Dockerfile"));
    for it in edits {
        let text = expected.get_mut(Path::new(it.path)).expect("it is there");
        assert!(text.contains(it.before), "{name} {}", it.path);
        *text = text.replacen(it.before, it.mine, 1);
    }
    let made = own_files(&place);
    let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&made), names(&expected), "{name}");
    for (path, text) in made {
        let text = if path == Path::new("Makefile") {
            resolved(&text)
        } else {
            text
        };
        assert_eq!(text, expected[&path], "{name} {}", path.display());
    }
}

/// The Makefile with what the scaffold has in the place of its one conflict.
fn resolved(makefile: &str) -> String {
    let (before, rest) = makefile.split_once("<<<<<<< yours\n").expect("a conflict");
    let (mine, rest) = rest.split_once("=======\n").expect("two sides");
    let (theirs, rest) = rest.split_once(">>>>>>> kubewright ").expect("an end");
    assert_eq!((mine, theirs), (MINE, THEIRS));
    let (_, after) = rest.split_once('\n').expect("the end of a line");
    format!("{before}{theirs}{after}")
}

#[test]
fn changes_of_people_stay_and_conflicts_are_marked_where_both_changed() {
    for ((name, calls), (of, edits)) in PROJECTS.into_iter().zip(EDITS) {
        assert_eq!(name, of);
        check_changes(name, calls, &edits);
    }
}

#[test]
fn lines_that_both_changed_are_marked_and_have_to_be_resolved() {
    let (_around, place) = folder("single");
    old_project("single", &place);
    change(&place, "Makefile", |text| described_by_people(&text));
    change(&place, "src/webhook/v1/guestbook.rs", |text| {
        text.replace(
            "/// Completes an object before it is judged and stored.",
            "/// My words.",
        )
    });
    let before = own_files(&place);
    let said = update(&place, &["--dry-run"]).works();
    assert!(said.contains("  conflict Makefile:"), "{said}");
    assert_eq!(own_files(&place), before);
    let said = update(&place, &[]).fails();
    for part in [
        "  conflict Makefile:",
        "  conflict src/webhook/v1/guestbook.rs:",
        "2 conflicts have to be resolved",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let files = own_files(&place);
    let makefile = &files[Path::new("Makefile")];
    let marked = "<<<<<<< yours\nlint-fix: ## My own words.\n=======\nlint-fix: ## Fix what can be fixed.\n>>>>>>> kubewright ";
    assert!(makefile.contains(marked), "{makefile}");
    assert_eq!(makefile.matches("<<<<<<<").count(), 1, "{makefile}");
    assert!(
        makefile.contains("update: ## Merge"),
        "what is not in conflict is merged"
    );
    let number = makefile
        .lines()
        .position(|line| line.starts_with("<<<<<<<"));
    let place_of = format!("conflict Makefile:{}", number.expect("it is there") + 1);
    assert!(said.contains(&place_of), "{said}");

    let said = update(&place, &[]).fails();
    assert!(
        said.contains("are not resolved") && said.contains("Makefile:"),
        "{said}"
    );
    assert_eq!(own_files(&place), files, "nothing was written");
    for path in ["Makefile", "src/webhook/v1/guestbook.rs"] {
        change(&place, path, |text| {
            let lines = text.lines().filter(|line| !line.starts_with(">>>>>>> "));
            let mut kept = String::new();
            let mut inside = false;
            for line in lines {
                match line {
                    "<<<<<<< yours" => continue,
                    "=======" => inside = true,
                    _ if inside => inside = false,
                    _ => kept.push_str(&format!("{line}\n")),
                }
            }
            kept
        });
    }
    let said = update(&place, &[]).works();
    assert!(said.contains("nothing was written"), "{said}");
}

#[test]
fn license_headers_stay_and_new_scaffolds_of_a_newer_command_are_refused() {
    let (_around, place) = folder("single");
    old_project("single", &place);
    let header = "// Copyright 2026 Me.\n";
    fs::create_dir(place.join("hack")).expect("it can be made");
    fs::write(place.join("hack/boilerplate.rs.txt"), header).expect("it can be written");
    let headed = |text: String| format!("{header}\n{text}");
    change(&place, "src/webhook/v1/guestbook.rs", headed);
    change(&place, "src/main.rs", headed);
    update(&place, &[]).works();
    let files = own_files(&place);
    let webhooks = &files[Path::new("src/webhook/v1/guestbook.rs")];
    assert!(
        webhooks.starts_with(&format!("{header}\n//! Webhooks of")),
        "{webhooks}"
    );
    assert!(webhooks.contains("/// Sets defaults of"), "{webhooks}");

    change(&place, "PROJECT", |text| {
        text.replace("number: ", "number: 9")
    });
    let said = update(&place, &[]).fails();
    assert!(
        said.contains("scaffolded by a newer kubewright") && said.contains("install a newer"),
        "{said}"
    );
}
