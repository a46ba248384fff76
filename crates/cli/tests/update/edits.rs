//! What people made of the projects of scaffold 1: changes in ten places of each, none of them where the scaffold changed something.

/// A change that somebody made: the file, what was there, and what they made of it.
pub(crate) struct Edit {
    pub(crate) path: &'static str,
    pub(crate) before: &'static str,
    pub(crate) mine: &'static str,
}

const fn edit(path: &'static str, before: &'static str, mine: &'static str) -> Edit {
    Edit { path, before, mine }
}

const CARGO: Edit = edit(
    "Cargo.toml",
    "schemars = \"1\"\n",
    "rand = \"0.9\"\nschemars = \"1\"\n",
);
const MAIN: Edit = edit("src/main.rs", "mod api;\n", "mod api;\nmod mine;\n");
const MAKEFILE: Edit = edit(
    "Makefile",
    "all: build\n",
    "all: build\n\n.PHONY: mine\nmine:\n\ttrue\n",
);
const README: Edit = edit(
    "README.md",
    "An operator made with kubewright.",
    "My operator.",
);
const GITIGNORE: Edit = edit(".gitignore", "/target\n", "/target\n/secrets\n");
const WORKFLOW: Edit = edit(
    ".github/workflows/test.yml",
    "      - run: cargo test\n",
    "      - run: cargo test --release\n",
);
const PROFILE: Edit = edit(".cargo/config.toml", "lto = \"thin\"", "lto = \"fat\"");
const TESTS: Edit = edit(
    "src/tests.rs",
    "#[test]\nfn generated",
    "#[test]\nfn mine() {}\n\n#[test]\nfn generated",
);

/// A field more in the spec of a kind.
const fn field(path: &'static str) -> Edit {
    edit(
        path,
        "    pub size: Option<i32>,\n",
        "    pub size: Option<i32>,\n    /// Who may sign it.\n    pub guests: Option<Vec<String>>,\n",
    )
}

/// The code of a controller.
const fn reconciler(path: &'static str) -> Edit {
    edit(
        path,
        "// Your code: create and update what",
        "let mine = object; // what",
    )
}

/// A walk of another size.
const fn simulation(path: &'static str) -> Edit {
    edit(path, "walk.sample(1)", "walk.sample(99)")
}

/// A test of the controller.
const fn test(path: &'static str) -> Edit {
    edit(
        path,
        "//! What the controller does",
        "// my test\n//! What the controller does",
    )
}

/// The code of a controller of somebody else's kind.
const fn foreign(path: &'static str) -> Edit {
    edit(
        path,
        "        // Your code. The kind is not yours",
        "        tracing::info!(\"mine\");\n        // The kind is not yours",
    )
}

/// The changes by project.
pub(crate) const EDITS: [(&str, [Edit; 10]); 4] = [
    (
        "single",
        [
            field("src/api/v1/guestbook.rs"),
            reconciler("src/controller/guestbook.rs"),
            test("src/controller/guestbook/tests.rs"),
            simulation("src/controller/guestbook/simulation.rs"),
            edit(
                "src/webhook/v1/guestbook.rs",
                "    // Your code: rules that neither",
                "    // My rules: what neither",
            ),
            MAIN,
            CARGO,
            MAKEFILE,
            README,
            GITIGNORE,
        ],
    ),
    (
        "multigroup",
        [
            field("src/api/crew/v1/captain.rs"),
            field("src/api/sea_creatures/v1beta2/kraken.rs"),
            edit(
                "src/api/ship/v1/harbor.rs",
                "#[k8s(min = 1, default = 12)]",
                "#[k8s(min = 3, default = 12)]",
            ),
            reconciler("src/controller/crew/captain.rs"),
            reconciler("src/controller/crew/captain_backup.rs"),
            simulation("src/controller/ship/frigate/simulation.rs"),
            test("src/controller/ship/harbor/tests.rs"),
            MAKEFILE,
            README,
            WORKFLOW,
        ],
    ),
    (
        "cluster-scoped",
        [
            field("src/api/v1alpha1/tenant.rs"),
            reconciler("src/controller/tenant.rs"),
            test("src/controller/tenant/tests.rs"),
            simulation("src/controller/tenant/simulation.rs"),
            edit(
                "src/controller.rs",
                "pub mod tenant;\n",
                "mod mine;\npub mod tenant;\n",
            ),
            TESTS,
            MAKEFILE,
            README,
            PROFILE,
            GITIGNORE,
        ],
    ),
    (
        "external",
        [
            foreign("src/controller/certificate.rs"),
            foreign("src/controller/deployment.rs"),
            edit(
                "src/api/v1/certificate.rs",
                "    pub duration: Option<String>,\n",
                "    pub duration: Option<String>,\n    pub renewed: Option<bool>,\n",
            ),
            MAIN,
            TESTS,
            CARGO,
            MAKEFILE,
            README,
            WORKFLOW,
            edit(".dockerignore", "!src/**\n", "!src/**\n!proto/**\n"),
        ],
    ),
];
