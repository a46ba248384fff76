use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use super::super::plan::Existing;
use super::*;

/// A project of three files.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    for (path, text) in [
        ("kept", "kept"),
        ("a/changed", "before"),
        ("b/c/deleted", "gone"),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    folder
}

/// Creates a file in new folders, changes one, deletes one.
fn plan(root: &Path) -> Plan {
    let mut plan = Plan::new(root);
    for (path, text) in [
        ("a/changed", "after"),
        ("x/y/created", "new"),
        ("x/other", "new"),
    ] {
        plan.write(path, text, Existing::Replace)
            .expect("it is planned");
    }
    plan.delete("b/c/deleted").expect("it is planned");
    plan
}

/// All files and folders below, with what is in them.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(folder).expect("it is a folder") {
            let path = entry.expect("it can be read").path();
            let name = path.strip_prefix(root).expect("it is below").to_path_buf();
            if path.is_dir() {
                found.insert(name, "a folder".into());
                walk(&path, root, found);
            } else {
                found.insert(name, fs::read_to_string(&path).expect("it is text"));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

#[test]
fn plan_is_carried_out_and_leaves_nothing_else() {
    let folder = folder();
    commit(&plan(folder.path())).expect("it works");
    let names: Vec<String> = tree(folder.path())
        .into_iter()
        .map(|(path, text)| format!("{}: {text}", path.display()))
        .collect();
    let expected = [
        "a: a folder",
        "a/changed: after",
        "kept: kept",
        "x: a folder",
        "x/other: new",
        "x/y: a folder",
        "x/y/created: new",
    ];
    assert_eq!(names, expected);
}

#[test]
fn failure_at_any_step_leaves_everything_as_it_was() {
    for failing in 0..4 {
        let folder = folder();
        let before = tree(folder.path());
        let result = commit_with(&plan(folder.path()), |step| {
            if step == failing {
                Err(io::Error::other("disk full"))
            } else {
                Ok(())
            }
        });
        assert!(result.is_err());
        assert_eq!(tree(folder.path()), before, "failing at {failing}");
    }
}

#[test]
fn process_killed_at_any_step_is_put_right_by_the_next() {
    for killed in 0..4 {
        let folder = folder();
        let before = tree(folder.path());
        let plan = plan(folder.path());
        // A panic runs none of the code that would put things back, as a kill does not.
        let killed = std::panic::catch_unwind(AssertUnwindSafe(|| {
            commit_with(&plan, |step| {
                if step == killed {
                    std::panic::resume_unwind(Box::new("killed"))
                } else {
                    Ok(())
                }
            })
        }));
        assert!(killed.is_err());
        assert!(recover(folder.path()).expect("it can be put right"));
        assert_eq!(tree(folder.path()), before);
        assert!(!recover(folder.path()).expect("there is nothing to do"));
    }
}

#[test]
fn process_killed_before_it_began_left_only_its_drafts() {
    let folder = folder();
    let before = tree(folder.path());
    let drafts = folder.path().join(STATE).join(FOLDER);
    fs::create_dir_all(&drafts).expect("it can be made");
    fs::write(drafts.join("0.new"), "half").expect("it can be written");
    assert!(!recover(folder.path()).expect("it can be put right"));
    assert_eq!(tree(folder.path()), before);
}

#[test]
fn file_changed_since_the_plan_stops_it() {
    let folder = folder();
    let plan = plan(folder.path());
    fs::write(folder.path().join("b/c/deleted"), "edited").expect("it can be written");
    let before = tree(folder.path());
    let error = commit(&plan).expect_err("it was changed");
    assert!(
        format!("{error:#}").contains("was changed meanwhile"),
        "{error:#}"
    );
    assert_eq!(tree(folder.path()), before);
}

#[test]
fn folder_that_cannot_be_written_to_does_not_change() {
    let folder = folder();
    let mut plan = Plan::new(folder.path());
    // A file where a folder should be: nobody can write below it, not even the administrator.
    fs::write(folder.path().join(STATE), "in the way").expect("it can be written");
    plan.write("new", "new", Existing::Refuse)
        .expect("it is planned");
    let before = tree(folder.path());
    assert!(commit(&plan).is_err());
    assert_eq!(tree(folder.path()), before);
}

#[test]
fn command_waits_for_another_that_is_still_writing() {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let root = folder.path().to_path_buf();
    let mut plan = Plan::new(&root);
    plan.write("a", "one\n".to_owned(), Existing::Refuse)
        .expect("it is planned");
    let (entered, inside) = std::sync::mpsc::channel();
    let (leave, go) = std::sync::mpsc::channel();
    let (plan, root) = (&plan, &root);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let pause = |_| {
                entered.send(()).expect("somebody listens");
                go.recv().expect("somebody says so");
                Ok(())
            };
            commit_with(plan, pause).expect("it works");
        });
        inside.recv().expect("it is in the middle");
        let held = File::open(root).expect("it is a folder").try_lock();
        assert!(matches!(held, Err(TryLockError::WouldBlock)), "{held:?}");
        let other = scope.spawn(|| recover(root).expect("it works"));
        leave.send(()).expect("it waits");
        assert!(
            !other.join().expect("it ends"),
            "there is nothing to put back"
        );
    });
    assert_eq!(
        std::fs::read_to_string(root.join("a")).expect("it is there"),
        "one\n"
    );
}
