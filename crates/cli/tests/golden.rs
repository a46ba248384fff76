//! Projects in the repository are what the commands in this table write, byte for byte.
//!
//! They are members of the workspace, so that their own tests run with all others: those compare the compiled program with
//! the generated files, which closes the circle. `cargo xtask golden` writes them anew.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{folder, kubewright, repository, tree};

/// A project, and the calls that make it.
struct Golden {
    name: &'static str,
    calls: &'static [&'static str],
}

const GOLDENS: [Golden; 4] = [
    Golden {
        name: "single",
        calls: &[
            "init --domain my.domain --sdk path=../../..",
            "create api --group webapp --version v1 --kind Guestbook --make=false",
            "create version --group webapp --version v1 --kind Guestbook --to v2 --make=false",
            "create webhook --group webapp --version v1 --kind Guestbook --defaulting --programmatic-validation --conversion --spoke v2 --make=false",
        ],
    },
    Golden {
        name: "multigroup",
        calls: &[
            "init --domain testproject.org --multigroup --sdk path=../../..",
            "create api --group crew --version v1 --kind Captain --plural admirales --make=false",
            "create api --group crew --version v1 --kind Captain --resource=false --controller-name captain-backup --make=false",
            "create version --group crew --version v1 --kind Captain --to v2 --make=false",
            "create api --group ship --version v1beta1 --kind Frigate --make=false",
            "create api --group ship --version v1 --kind Harbor --from-crd testdata/harbors.yaml --make=false",
            "create api --group sea-creatures --version v1beta2 --kind Kraken --controller=false --make=false",
            "create api --group cache --version v1alpha1 --kind Memcached --image memcached:1.6-alpine \
             --image-container-command memcached,--memory-limit=64,-v --image-container-port 11211 \
             --run-as-user 1001 --make=false",
        ],
    },
    Golden {
        name: "cluster-scoped",
        calls: &[
            "init --domain example.com --sdk path=../../..",
            "create api --group platform --version v1alpha1 --kind Tenant --namespaced=false --make=false",
            "edit --prometheus=true --image registry.example.com/tenants:1.0",
        ],
    },
    Golden {
        name: "external",
        calls: &[
            "init --domain example.com --namespaced --sdk path=../../..",
            "create api --group apps --version v1 --kind Deployment --resource=false --make=false",
            "create api --group cert-manager --version v1 --kind Certificate --resource=false \
             --external-api-domain io --from-crd testdata/certificates.yaml --make=false",
        ],
    },
];

impl Golden {
    fn place(&self) -> PathBuf {
        repository().join("testdata/projects").join(self.name)
    }

    /// What the compiled program says of itself, as it is kept beside the projects.
    fn inventory(&self) -> PathBuf {
        repository().join(format!("testdata/inventories/{}.json", self.name))
    }

    fn call(&self, place: &Path, line: &str) {
        let place = place.display().to_string();
        let words = line.split_whitespace().chain(["--project", &place]);
        let words: Vec<&str> = words.collect();
        kubewright(&repository(), &words).works();
    }

    fn scaffold(&self, place: &Path) {
        for line in self.calls {
            self.call(place, line);
        }
    }

    fn generate(&self, place: &Path) {
        let inventory = self.inventory().display().to_string();
        self.call(place, &format!("generate --inventory {inventory}"));
    }

    /// Makes the project in its place, from the program as it is compiled now.
    fn write(&self) {
        let place = self.place();
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).expect("it can be made");
        self.scaffold(&place);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["run", "--quiet", "--package", self.name, "--", "inventory"])
            .current_dir(repository())
            .output();
        let output = output.expect("cargo can be run");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let value: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("an inventory is JSON");
        let text = serde_json::to_string_pretty(&value).expect("it is JSON") + "\n";
        fs::create_dir_all(self.inventory().parent().expect("it has one")).expect("it can be made");
        fs::write(self.inventory(), text).expect("it can be written");
        self.generate(&place);
    }
}

#[test]
fn golden_projects_are_what_the_commands_write() {
    if std::env::var_os("KUBEWRIGHT_WRITE_GOLDENS").is_some() {
        GOLDENS.iter().for_each(Golden::write);
        return;
    }
    for golden in &GOLDENS {
        let (_around, place) = folder(golden.name);
        golden.scaffold(&place);
        golden.generate(&place);
        let (made, kept) = (tree(&place), tree(&golden.place()));
        let names = |tree: &std::collections::BTreeMap<PathBuf, String>| {
            tree.keys().cloned().collect::<Vec<_>>()
        };
        let advice = "run `cargo xtask golden` and look at the differences";
        assert_eq!(names(&made), names(&kept), "{}: {advice}", golden.name);
        for (path, text) in made {
            assert_eq!(
                text,
                kept[&path],
                "{} {}: {advice}",
                golden.name,
                path.display()
            );
        }
    }
}

#[test]
fn definition_that_becomes_an_own_kind_comes_out_as_it_went_in() {
    let text = fs::read_to_string(repository().join("testdata/harbors.yaml")).expect("it is there");
    let went_in: serde_json::Value = serde_saphyr::from_str(&text).expect("it is YAML");
    let made = repository()
        .join("testdata/projects/multigroup/config/crd/bases/ship.testproject.org_harbors.yaml");
    let text = fs::read_to_string(made).expect("it is there");
    let came_out: serde_json::Value = serde_saphyr::from_str(&text).expect("it is YAML");
    for part in ["group", "names", "scope"] {
        assert_eq!(came_out["spec"][part], went_in["spec"][part], "{part}");
    }
    let version = |definition: &serde_json::Value| {
        let version = &definition["spec"]["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"];
        let mut parts = ["spec", "status"].map(|part| schema["properties"][part].clone());
        // Conditions are those of Kubernetes, which describe themselves.
        let condition = &mut parts[1]["properties"]["conditions"]["items"];
        let fields = condition["properties"].as_object_mut().into_iter();
        for field in fields.flat_map(|fields| fields.values_mut()) {
            field
                .as_object_mut()
                .map(|field| field.remove("description"));
        }
        condition
            .as_object_mut()
            .map(|condition| condition.remove("description"));
        (version["additionalPrinterColumns"].clone(), parts)
    };
    assert_eq!(version(&came_out), version(&went_in));
}

#[test]
fn commands_given_twice_change_nothing() {
    for golden in &GOLDENS {
        let (_around, place) = folder(golden.name);
        golden.scaffold(&place);
        golden.generate(&place);
        let before = tree(&place);
        // All but init, which says that there is a project already once it has changed.
        for line in &golden.calls[1..] {
            golden.call(&place, line);
            assert_eq!(tree(&place), before, "{} {line}", golden.name);
        }
        golden.generate(&place);
        assert_eq!(tree(&place), before, "{}", golden.name);
    }
}

#[test]
fn what_is_created_and_deleted_leaves_no_difference() {
    for golden in &GOLDENS {
        let (_around, place) = folder(golden.name);
        golden.call(&place, golden.calls[0]);
        let before = tree(&place);
        golden.scaffold_all_but_init(&place);
        for line in golden.calls[1..].iter().rev() {
            let is_kind = line.starts_with("create api") || line.starts_with("create version");
            if is_kind {
                // A type from a definition, and a copy of a version, may be the only ones there are.
                let alone = line.contains("--from-crd") || line.contains("--to");
                let force = if alone { " --force" } else { "" };
                let line = format!("delete api {} --make=false{force}", kind(line));
                golden.call(&place, &line);
            }
        }
        let edits = golden.calls.iter().any(|line| line.starts_with("edit"));
        let mut after = tree(&place);
        if edits {
            // Settings are not a kind's: they stay.
            after.insert("PROJECT".into(), before[Path::new("PROJECT")].clone());
        }
        assert_eq!(after, before, "{}", golden.name);
    }
}

impl Golden {
    fn scaffold_all_but_init(&self, place: &Path) {
        for line in &self.calls[1..] {
            self.call(place, line);
        }
    }
}

/// The flags of a line that name the kind it makes.
fn kind(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let value = |flag: &str| {
        let place = words.iter().position(|word| *word == flag);
        place.map(|place| words[place + 1])
    };
    let version = value("--to").or(value("--version"));
    format!(
        "--group {} --version {} --kind {}",
        value("--group").expect("it has one"),
        version.expect("it has one"),
        value("--kind").expect("it has one")
    )
}
