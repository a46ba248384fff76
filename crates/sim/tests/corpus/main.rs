//! Bugs of published operators, each rebuilt as a small operator in a buggy and a fixed form. The campaign finds every buggy
//! one, with a token that repeats the failure in a new process, and has nothing to say about the fixed ones.
//!
//! docs/known-bugs.md lists them with their sources. The operators are written from the descriptions of the bugs; none of their
//! code is here.

mod crashes;
mod deletion;
mod outside;
mod stale;
mod store;
mod updates;

use std::process::Command;

use kubewright_sim::{Campaign, FaultKind, Report};

/// Whether an operator makes its mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Buggy,
    Fixed,
}

/// A published bug.
struct Bug {
    name: &'static str,
    /// A kind of fault that has to find it; none where a run without faults does.
    found_by: Option<FaultKind>,
    campaign: fn(Form) -> Campaign,
}

const BUGS: [Bug; 14] = [
    bug(
        "rabbitmq-782",
        Some(FaultKind::CrashAfter),
        crashes::expansion,
    ),
    bug("casskop-370", Some(FaultKind::CrashAfter), crashes::phases),
    bug(
        "cassandra-398",
        Some(FaultKind::Skip),
        deletion::unseen_termination,
    ),
    bug(
        "cassandra-407",
        Some(FaultKind::StaleRestart),
        stale::claims_of_the_living,
    ),
    bug(
        "cass-operator-412",
        Some(FaultKind::StaleRestart),
        deletion::by_name,
    ),
    bug(
        "rabbitmq-653",
        Some(FaultKind::StaleRestart),
        stale::shrinking,
    ),
    bug("casskop-357", Some(FaultKind::Lag), stale::unseen_step),
    bug(
        "cassandra-410",
        Some(FaultKind::Lag),
        stale::half_done_scaling,
    ),
    bug("opensearch-1471", None, stale::two_disruptions),
    bug("clickhouse-1430", None, updates::hot_loop),
    bug(
        "zookeeper-474",
        Some(FaultKind::HumanEdit),
        updates::created_not_updated,
    ),
    bug("tidb-4942", None, updates::never_removed),
    bug(
        "crossplane-283",
        Some(FaultKind::CrashAfter),
        outside::forgotten_resource,
    ),
    bug("seaweedfs-377", None, outside::adoption),
];

const fn bug(
    name: &'static str,
    found_by: Option<FaultKind>,
    campaign: fn(Form) -> Campaign,
) -> Bug {
    Bug {
        name,
        found_by,
        campaign,
    }
}

fn find(name: &str) -> &'static Bug {
    let bug = BUGS.iter().find(|bug| bug.name == name);
    bug.unwrap_or_else(|| panic!("{name} is not in the table"))
}

/// The variable that names the bug whose buggy form [`replayed_plan_fails`] runs in a new process.
const CASE: &str = "KUBEWRIGHT_CORPUS_CASE";

/// Finds the buggy form, repeats the finding in a new process, and finds nothing in the fixed form.
fn check(name: &str) {
    let bug = find(name);
    let buggy = (bug.campaign)(Form::Buggy).run();
    let token = token_of(bug, &buggy);
    repeats_in_a_new_process(bug, &token);
    let fixed = (bug.campaign)(Form::Fixed).run();
    assert!(fixed.is_clean(), "the fixed form of {name} fails:\n{fixed}");
    println!(
        "{name}: {} of {} plans fail in {:.2} s; fixed: 0 of {} in {:.2} s; {token}",
        buggy.failures.len(),
        buggy.plans,
        buggy.took.as_secs_f64(),
        fixed.plans,
        fixed.took.as_secs_f64(),
    );
}

/// The token of a failure that is found as the table says.
fn token_of(bug: &Bug, report: &Report) -> String {
    let mut failures = report.failures.iter();
    let found = failures.find(|failure| match bug.found_by {
        Some(kind) => failure.plan.has(&[kind]),
        None => true,
    });
    let found = found
        .unwrap_or_else(|| panic!("{} is not found by {:?}:\n{report}", bug.name, bug.found_by));
    found.token.clone()
}

fn repeats_in_a_new_process(bug: &Bug, token: &str) {
    let program = std::env::current_exe().expect("the test has a program");
    let output = Command::new(program)
        .args(["--exact", "replayed_plan_fails", "--nocapture"])
        .env(CASE, bug.name)
        .env("KUBEWRIGHT_REPLAY", token)
        .output()
        .expect("the test starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {text}", bug.name);
    assert!(
        text.contains("the plan fails again"),
        "{}: {text}",
        bug.name
    );
}

/// Runs one plan of one buggy form when it is started for that; see [`repeats_in_a_new_process`].
#[test]
fn replayed_plan_fails() {
    let Ok(name) = std::env::var(CASE) else {
        // Started with all others: the table must be sound.
        assert!(BUGS.iter().all(|bug| find(bug.name).name == bug.name));
        return;
    };
    let campaign = (find(&name).campaign)(Form::Buggy);
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| campaign.check()));
    assert!(again.is_err(), "{name} passes");
    println!("the plan fails again");
}

macro_rules! corpus {
    ($($test:ident: $name:literal;)*) => {
        $(#[test]
        fn $test() {
            check($name);
        })*

        #[test]
        fn every_bug_of_the_table_has_a_test() {
            let tested = [$($name),*];
            let listed: Vec<&str> = BUGS.iter().map(|bug| bug.name).collect();
            assert_eq!(listed, tested);
        }
    };
}

corpus! {
    expansion_that_forgets_its_claims_is_found: "rabbitmq-782";
    phase_that_is_stored_after_its_effect_is_found: "casskop-370";
    clean_up_that_needs_to_see_a_termination_is_found: "cassandra-398";
    stale_view_that_deletes_claims_in_use_is_found: "cassandra-407";
    deletion_by_name_is_found: "cass-operator-412";
    stale_size_that_deletes_a_set_is_found: "rabbitmq-653";
    check_against_the_last_state_that_was_seen_is_found: "casskop-357";
    decommission_that_is_not_undone_is_found: "cassandra-410";
    second_disruption_by_a_late_cache_is_found: "opensearch-1471";
    status_that_names_its_own_version_is_found: "clickhouse-1430";
    object_that_is_created_and_never_updated_is_found: "zookeeper-474";
    option_that_cannot_be_taken_back_is_found: "tidb-4942";
    external_resource_that_is_forgotten_is_found: "crossplane-283";
    adoption_of_somebody_elses_object_is_found: "seaweedfs-377";
}
