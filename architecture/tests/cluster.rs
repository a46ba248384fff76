//! What ARCHITECTURE.md says must hold of controllers and nodes, as far as the source shows it.

use std::path::{Path, PathBuf};

use kubewright_architecture::source::{self, SourceFile};

fn root() -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::var_os("KUBEWRIGHT_REPOSITORY").map_or_else(own, PathBuf::from)
}

fn cluster() -> PathBuf {
    root().join("crates/cluster")
}

/// The files below these modules of the cluster, without their tests. `controllers/live` is tests alone.
fn below(modules: &[&str]) -> Vec<SourceFile> {
    let mut files = source::of_crate(&cluster());
    files.retain(|file| {
        let path = file.path.with_extension("");
        let is_below = modules.iter().any(|module| path.starts_with(module));
        is_below && !path.starts_with("controllers/live")
    });
    assert!(!files.is_empty(), "{modules:?} have moved");
    files
}

/// Words of code that reaches outside of itself or waits.
const OUTSIDE: [&str; 7] = [
    ".await",
    "async ",
    "tokio::",
    "std::fs",
    "std::net::Tcp",
    "kube::Client",
    "kubewright_runtime::Client",
];

fn reaching_out(files: &[SourceFile]) -> Vec<(&Path, &'static str)> {
    let mut found = Vec::new();
    for file in files {
        let words = OUTSIDE.iter().filter(|word| file.code.contains(**word));
        found.extend(words.map(|word| (file.path.as_path(), *word)));
    }
    found
}

#[test]
fn machine_of_a_pod_does_no_io() {
    let files = below(&["node/machine", "node/kubelet", "node/run", "node/signal"]);
    assert_eq!(reaching_out(&files), []);
}

#[test]
fn modules_that_call_themselves_pure_do_no_io() {
    let mut files = source::of_crate(&cluster());
    files.retain(|file| {
        let path = cluster().join("src").join(&file.path);
        let text = std::fs::read_to_string(path).expect("it was just read");
        let mut first = text.lines().take_while(|line| line.starts_with("//!"));
        first.any(|line| line.contains("Pure"))
    });
    assert!(files.len() > 30, "only {} are pure", files.len());
    assert_eq!(reaching_out(&files), []);
}

/// What controllers and nodes have of the server's crate: values that cross their border, the range of addresses that the server
/// never dials, and the certificate authority's signature, which no client can ask for. Everything else goes through the SDK.
const OF_THE_SERVER: [&str; 16] = [
    "CertificateRequest",
    "CertificateSigner",
    "KUBERNETES_MINOR",
    "LogLine",
    "LogOf",
    "LogPiece",
    "LogRun",
    "MoreLog",
    "NoLog",
    "PodLogs",
    "ServiceNetwork",
    "Streams",
    "Usage",
    "User",
    "Wanted",
    "serve_http",
];

#[test]
fn controllers_reach_the_cluster_through_the_sdk_alone() {
    let files = below(&["controllers", "scheduler", "node"]);
    let mut found = Vec::new();
    for file in &files {
        for used in file.code.split("kubewright_server::").skip(1) {
            let end = if used.starts_with('{') { '}' } else { ';' };
            let list = used.split(end).next().unwrap_or_default();
            let names = list.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let first = if used.starts_with('{') { usize::MAX } else { 1 };
            let names = names.filter(|name| !name.is_empty()).take(first);
            let unknown = names.filter(|name| !OF_THE_SERVER.contains(name));
            found.extend(unknown.map(|name| (file.path.clone(), name.to_owned())));
        }
    }
    assert_eq!(found, []);
}

#[test]
fn controllers_and_nodes_have_one_clock() {
    let files = below(&["controllers", "scheduler", "node", "pods"]);
    let clocks = ["Timestamp::now(", "SystemTime::now(", "Zoned::now("];
    for file in &files {
        let used = clocks.iter().find(|clock| file.code.contains(**clock));
        assert_eq!(used, None, "{}", file.path.display());
    }
}
