//! One set of features: what a package asks for alone is what the tests of the whole workspace ask for.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The sets of features that each crate is compiled with: those for this machine and those for the target can differ.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Reads `cargo tree --prefix none --format {p}|{f}`.
fn features(tree: &str) -> Features {
    let mut features = Features::new();
    for line in tree.lines() {
        let line = line.trim_end_matches(" (*)");
        let Some((package, of_it)) = line.split_once('|') else {
            continue;
        };
        // A package of this workspace has its folder behind its version.
        let package = package.split(" (").next().unwrap_or(package);
        let sets = features.entry(package.to_owned()).or_default();
        sets.insert(of_it.to_owned());
    }
    features
}

/// The crates that would be compiled once more, with the features that they would have.
fn compiled_again(package: &Features, workspace: &Features) -> Vec<String> {
    let missing = |(name, sets): (&String, &BTreeSet<String>)| {
        let known = workspace.get(name)?;
        let other = sets.difference(known).next()?;
        Some(format!("{name} with {other}"))
    };
    package.iter().filter_map(missing).collect()
}

fn tree(arguments: &[&str]) -> Features {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(crate::root());
    cargo.args(["tree", "--locked", "--offline", "--prefix", "none"]);
    cargo.args(["--format", "{p}|{f}"]).args(arguments);
    let output = cargo.output().expect("cargo can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    features(&String::from_utf8_lossy(&output.stdout))
}

#[test]
fn set_of_features_that_nobody_else_has_is_reported() {
    let workspace =
        features("tokio v1.0.0|rt,time\nserde v1.0.0|std\nserde v1.0.0|derive,std (*)\n");
    let package = features("own v0.1.0 (/folder)|\ntokio v1.0.0|rt\nserde v1.0.0|std\n");
    assert_eq!(
        compiled_again(&package, &workspace),
        ["tokio v1.0.0 with rt"]
    );
}

#[test]
fn programs_of_the_workspace_ask_for_one_set_of_features() {
    let workspace = tree(&["--workspace", "--edges", "normal,build,dev"]);
    let programs = [
        "kubewright-bench",
        "kubewright-example-cronjob",
        "kubewright-example-etcd",
        "kubewright-example-foo",
        "kubewright-example-informers",
        "kubewright-example-pod-printer",
        "kubewright-example-podtato-head",
        "kubewright-example-postgres",
        "kubewright-example-secsynch",
        "xtask",
    ];
    for program in programs {
        let alone = tree(&["--package", program, "--edges", "normal,build"]);
        let mut again = compiled_again(&alone, &workspace);
        // The facade, and what it is made of, have features for tests, and a program is not one.
        again.retain(|it| !it.starts_with("kubewright"));
        assert!(
            again.is_empty(),
            "cargo run --package {program} compiles crates that cargo test --workspace has compiled with other features; \
             add what is missing to features/Cargo.toml: {again:#?}"
        );
    }
}
