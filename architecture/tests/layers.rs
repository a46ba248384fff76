//! What ARCHITECTURE.md says about crates and modules, held against the source. Counts may fall and not grow: whoever makes
//! one smaller lowers the limit here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kubewright_architecture::source::{self, SourceFile};
use kubewright_architecture::{counts, modules::Graph};

/// The crates from the bottom up: each uses those before it and none after it.
const CRATES: [&str; 19] = [
    "workqueue",
    "store",
    "cel",
    "schema",
    "server",
    "cache",
    "testing",
    "webhook",
    "derive",
    "runtime",
    "proxy",
    "manifests",
    "cluster",
    "sim",
    "process",
    "console",
    "kubewright",
    "demo",
    "cli",
];

/// Modules of a crate from the bottom up.
const LAYERS: [(&str, &[&[&str]]); 2] = [
    (
        "store",
        &[
            &["environment", "pairs", "wakers"],
            &["event", "record"],
            &["history", "root"],
            &["pins"],
            &[
                "collection",
                "cursor",
                "durable",
                "snapshot",
                "state",
                "store",
            ],
        ],
    ),
    (
        "server",
        &[
            &[
                "agents",
                "connection",
                "logs",
                "memory",
                "network",
                "object",
                "printers",
                "private_file",
                "status",
            ],
            &["auth", "http", "kinds", "kubeconfig", "pki", "request"],
            &[
                "callout",
                "conversion",
                "definitions",
                "documents",
                "registry",
                "resource",
            ],
            &["access", "aggregation", "converter", "flow"],
            &["admission", "derived"],
            &["core"],
            &["health", "reconcile", "write"],
            &["api", "bootstrap"],
            &["fork", "listen", "server", "service"],
        ],
    ),
];

/// How many modules of a crate are in a cycle, at most.
const CYCLES: [(&str, usize); 9] = [
    ("workqueue", 3),
    ("store", 8),
    ("cel", 7),
    ("cache", 5),
    ("webhook", 3),
    ("runtime", 6),
    ("manifests", 3),
    ("cluster", 6),
    ("sim", 7),
];

/// The repository; another checkout can be measured by naming it.
fn repository() -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::var_os("KUBEWRIGHT_REPOSITORY").map_or_else(own, PathBuf::from)
}

fn files(name: &str) -> Vec<SourceFile> {
    source::of_crate(&repository().join("crates").join(name))
}

/// The crates that hold the server, which the review of counts is about.
fn server_side() -> Vec<SourceFile> {
    ["store", "cel", "schema", "server"]
        .into_iter()
        .flat_map(files)
        .collect()
}

#[test]
fn crates_use_only_those_below_them() {
    for (at, name) in CRATES.iter().enumerate() {
        let manifest = repository().join("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("every crate has a manifest");
        let own = text.split("[dev-dependencies]").next().unwrap_or_default();
        for line in own.lines().filter(|line| line.starts_with("kubewright")) {
            let used = line.split(['.', ' ']).next().unwrap_or_default();
            let used = used.strip_prefix("kubewright-").unwrap_or(used);
            let place = CRATES.iter().position(|known| *known == used);
            assert!(place.is_none_or(|place| place < at), "{name} uses {used}");
        }
    }
    let there = std::fs::read_dir(repository().join("crates")).expect("it exists");
    assert_eq!(there.count(), CRATES.len(), "a crate has no place");
}

#[test]
fn modules_use_only_those_below_them() {
    for (name, layers) in LAYERS {
        let graph = Graph::of(&files(name));
        let upward = graph.upward(layers);
        assert!(upward.is_empty(), "{name}: {upward:?}");
        let placed = |module: &&str| layers.iter().any(|layer| layer.contains(module));
        let unplaced: Vec<&str> = graph.modules().filter(|m| !placed(m)).collect();
        assert!(unplaced.is_empty(), "{name}: no layer for {unplaced:?}");
    }
}

#[test]
fn verbs_do_not_ask_whether_a_kind_is_built_in() {
    let verbs: Vec<SourceFile> = files("server")
        .into_iter()
        .filter(|file| file.path.starts_with("api"))
        .collect();
    assert!(!verbs.is_empty());
    for file in &verbs {
        for question in ["Nature", ".custom()", ".nature"] {
            let asks = file.code.contains(question);
            assert!(!asks, "{} asks {question}", file.path.display());
        }
    }
}

#[test]
fn cycles_do_not_grow() {
    let limits: BTreeMap<&str, usize> = CYCLES.into();
    let mut grown = Vec::new();
    for name in CRATES {
        let cycles = Graph::of(&files(name)).cycles();
        let count: usize = cycles.iter().map(|cycle| cycle.len()).sum();
        println!("{name}: {count} modules in a cycle {cycles:?}");
        if count > limits.get(name).copied().unwrap_or_default() {
            grown.push((name, cycles));
        }
    }
    assert!(grown.is_empty(), "{grown:?}");
}

#[test]
fn counts_do_not_grow() {
    let files = server_side();
    let repeated = counts::repeated_types(&files);
    let found = [
        (
            "functions with six or more parameters",
            counts::functions_with_parameters(&files, 6),
            // A method of rustls, whose trait has six.
            1,
        ),
        (
            "results whose error is a text",
            counts::untyped_errors(&files),
            0,
        ),
        (
            "indexings by a literal string",
            counts::string_indexings(&files),
            2005,
        ),
        (
            "type names that are defined more than once",
            repeated.len(),
            93,
        ),
    ];
    println!(
        "doc and comment share: {:.1} %",
        counts::comment_share(&files)
    );
    for (what, count, limit) in found {
        println!("{what}: {count}");
        assert!(count <= limit, "{what}: {count} are more than {limit}");
    }
}
