//! `run` and `dev` from start to end. The compiler and the operator are stand-ins, everything else is real.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::process::Running;
use support::stand_in::Project;
use support::{command, tree};

fn start(project: &Project, line: &str) -> Running {
    let words: Vec<&str> = line.split(' ').collect();
    Running::start(command(&project.place, &words).env("CARGO", &project.cargo))
}

/// Whether there is a process of this number.
fn is_alive(id: &str) -> bool {
    let asked = Command::new("kill").args(["-0", id]).output();
    asked.is_ok_and(|output| output.status.success())
}

/// The number that a line begins with.
fn number(line: &str) -> String {
    line.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn program_runs_in_the_place_of_the_command_and_gets_its_signals() {
    let project = Project::new("single");
    let before = tree(&project.place);
    let mut running = start(&project, "run --kubeconfig some/file -- --log-level debug");
    running.until("Ctrl-C stops it");
    let line = running.until("started");
    let kubeconfig = std::path::absolute(project.place.join("some/file")).expect("it is a path");
    let flags = format!("--kubeconfig {} --log-level debug", kubeconfig.display());
    assert!(line.ends_with(&flags), "{line}");
    let (status, said) = running.end();
    assert!(status.success(), "{status}");
    assert!(said.contains("was asked to end"), "{said}");
    assert!(!is_alive(&number(&line)));
    assert_eq!(tree(&project.place), before);
}

#[test]
fn context_is_checked_before_the_build_and_given_to_the_program() {
    let project = Project::new("single");
    let context = |name: &str| serde_json::json!({"name": name, "context": {"cluster": "c"}});
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [context("a"), context("b")],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    });
    fs::write(project.place.join("k"), kubeconfig.to_string()).expect("it can be written");
    let before = tree(&project.place);
    let mut running = start(&project, "run --kubeconfig k --context b");
    let line = running.until("started");
    assert!(line.ends_with("--context b"), "{line}");
    running.end();

    fs::write(&project.broken, "").expect("it can be written");
    let words = ["run", "--kubeconfig", "k", "--context", "c"];
    let mut wrong = command(&project.place, &words);
    let said = support::call(wrong.env("CARGO", &project.cargo)).fails();
    assert!(said.contains("it has: a, b"), "{said}");
    let mut broken = command(&project.place, &["run", "--kubeconfig", "k"]);
    let said = support::call(broken.env("CARGO", &project.cargo)).fails();
    assert!(said.contains("the program does not build"), "{said}");
    assert_eq!(tree(&project.place), before);
}

#[test]
fn whether_a_cluster_is_needed_is_up_to_the_program() {
    let project = Project::new("single");
    let mut running = start(&project, "run -- --log-level debug");
    let line = running.until("started");
    assert!(line.ends_with("--log-level debug"), "{line}");
    running.end();
}

#[test]
fn program_of_dev_follows_its_sources_and_ends_with_it() {
    let project = Project::new("cluster-scoped");
    let before = tree(&project.place);
    let mut dev = start(&project, "dev --samples -- --log-level debug");
    dev.until("tenants.platform.example.com is ready");
    dev.until("The program runs as system:serviceaccount:cluster-scoped-system:");
    let first = dev.until("started");
    let kubeconfig = project.place.join(".kubewright/operator.kubeconfig");
    let expected = format!(
        "KUBECONFIG={} --health-probe-bind-address=0 --log-level debug",
        kubeconfig.display()
    );
    assert!(first.ends_with(&expected), "{first}");
    assert!(kubeconfig.is_file());
    assert!(project.place.join(".kubewright/kubeconfig").is_file());
    dev.until("tenant-sample");
    dev.until("Sources are watched");

    change(&project.place);
    dev.until("src/main.rs changed; building");
    dev.until(&format!("{} was asked to end", number(&first)));
    let second = dev.until("started");
    assert!(!is_alive(&number(&first)) && is_alive(&number(&second)));

    // A program that does not build leaves the one that runs alone.
    fs::write(&project.broken, "").expect("it can be written");
    change(&project.place);
    dev.until("this is wrong");
    dev.until("Waiting for a change");
    assert!(is_alive(&number(&second)));
    fs::remove_file(&project.broken).expect("it is there");

    let (status, said) = dev.end();
    assert!(status.success(), "{status}");
    assert!(
        said.contains(&format!("{} was asked to end", number(&second))),
        "{said}"
    );
    assert!(!is_alive(&number(&second)));
    let mut after = tree(&project.place);
    after.insert(
        "src/main.rs".into(),
        before[Path::new("src/main.rs")].clone(),
    );
    assert_eq!(after, before, "nothing but the change is left");
}

/// Reads as the program does, with its kubeconfig.
async fn read(kubeconfig: &Path, resource: (&str, &str, &str)) -> Result<(), kube::Error> {
    use kube::config::{KubeConfigOptions, Kubeconfig};
    use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    let config = Kubeconfig::read_from(kubeconfig).expect("it is a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await;
    let client = kube::Client::try_from(config.expect("it can be used")).expect("a client");
    let (group, version, kind) = resource;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api = kube::Api::<DynamicObject>::all_with(client, &kind);
    api.list(&Default::default()).await.map(drop)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn program_of_dev_has_its_own_role_and_missing_rules_are_named() {
    let project = Project::new("cluster-scoped");
    let mut dev = start(&project, "dev");
    dev.until("started");
    let kubeconfig = project.place.join(".kubewright/operator.kubeconfig");
    block_on(async {
        let own = read(&kubeconfig, ("platform.example.com", "v1alpha1", "Tenant")).await;
        own.expect("its own kind is allowed");
        let other = read(&kubeconfig, ("", "v1", "Secret")).await;
        assert!(matches!(other, Err(kube::Error::Api(status)) if status.code == 403));
    });
    dev.until("cluster-scoped-controller-manager may not list secrets");
    dev.until(
        r#"#[kubewright::rbac(groups = "", resources = "secrets", verbs = "get;list;watch")]"#,
    );
    dev.end();
}

#[test]
fn administrator_may_do_everything_and_flags_of_the_user_win() {
    let project = Project::new("cluster-scoped");
    let mut dev = start(
        &project,
        "dev --as-admin -- --health-probe-bind-address=:7835",
    );
    let line = dev.until("started");
    assert!(
        line.ends_with("--health-probe-bind-address=:7835"),
        "{line}"
    );
    assert_eq!(
        line.matches("--health-probe-bind-address").count(),
        1,
        "{line}"
    );
    let kubeconfig = project.place.join(".kubewright/kubeconfig");
    assert!(
        line.contains(&format!("KUBECONFIG={} ", kubeconfig.display())),
        "{line}"
    );
    block_on(read(&kubeconfig, ("", "v1", "Secret"))).expect("everything is allowed");
    dev.end();
}

#[test]
fn dev_leads_the_server_to_the_webhooks_of_the_program() {
    let project = Project::new("single");
    let mut dev = start(&project, "dev");
    let line = dev.until("started");
    let flag = |name: &str| {
        let flag = line.split(' ').find_map(|word| word.strip_prefix(name));
        flag.unwrap_or_else(|| panic!("{name} is missing: {line}"))
            .to_owned()
    };
    let address = flag("--webhook-bind-address=");
    let certificates = flag("--webhook-cert-path=");
    assert!(Path::new(&certificates).join("tls.key").is_file());
    // The stand-in does not listen: somebody has to in its place before the server hears of it.
    let _listens = std::net::TcpListener::bind(&address).expect("the port is free");
    dev.until("mutating-webhook-configuration created");
    dev.until("validating-webhook-configuration created");
    let (status, _) = dev.end();
    assert!(status.success(), "{status}");
    assert!(!Path::new(&certificates).exists());
}

#[test]
fn program_with_webhooks_that_ends_at_once_does_not_end_dev() {
    let project = Project::new("single");
    let program = project.cargo.with_file_name("program");
    let works = fs::read_to_string(&program).expect("it is there");
    let broken = works.replace("exec 3<&0", "echo nothing works; exit 3");
    fs::write(&program, broken).expect("it can be written");
    let mut dev = start(&project, "dev");
    dev.until("nothing works");
    dev.until("The program ended: exit status: 3");
    let (status, _) = dev.end();
    assert!(status.success(), "{status}");
}

fn change(place: &Path) {
    let file = place.join("src/main.rs");
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(file, text + "// changed\n").expect("it can be written");
}
