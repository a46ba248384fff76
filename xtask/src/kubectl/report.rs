//! What the lanes show: a line per group, every failure in full, and a table of all versions at the end.

use super::lane::Outcome;
use super::step::Group;

/// Shows one group of one kubectl.
pub(crate) fn group(group: &Group, outcomes: &[Outcome], verbose: bool) {
    println!("  {:<12} {}", group.name, cell(outcomes));
    for (step, outcome) in group.steps.iter().zip(outcomes) {
        match outcome {
            Outcome::Failed(lines) => {
                println!("    ✗ {}", step.title());
                lines.iter().for_each(|line| println!("        {line}"));
            }
            Outcome::Passed(output) if verbose => {
                println!("    ✓ {}", step.title());
                let lines = output.stdout.lines().chain(output.stderr.lines());
                lines.for_each(|line| println!("        {line}"));
            }
            Outcome::LeftOut if verbose => println!("    – {}", step.title()),
            Outcome::Passed(_) | Outcome::LeftOut => {}
        }
    }
}

/// Shows groups against versions, and tells how many steps failed.
pub(crate) fn summary(groups: &[Group], lanes: &[(String, Vec<Vec<Outcome>>)]) -> usize {
    print!("\n{:<14}", "");
    lanes
        .iter()
        .for_each(|(version, _)| print!("{version:<20}"));
    println!();
    for (at, group) in groups.iter().enumerate() {
        print!("{:<14}", group.name);
        lanes
            .iter()
            .for_each(|(_, results)| print!("{:<20}", cell(&results[at])));
        println!();
    }
    lanes
        .iter()
        .flat_map(|(_, results)| results)
        .map(|outcomes| count(outcomes, |o| matches!(o, Outcome::Failed(_))))
        .sum()
}

/// `✓ 12`, `✓ 10 –2` when two were left out, `✗ 1 of 12`.
fn cell(outcomes: &[Outcome]) -> String {
    let failed = count(outcomes, |o| matches!(o, Outcome::Failed(_)));
    let left_out = count(outcomes, |o| matches!(o, Outcome::LeftOut));
    let run = outcomes.len() - left_out;
    match (failed, left_out) {
        (0, 0) => format!("✓ {run}"),
        (0, left_out) => format!("✓ {run} –{left_out}"),
        (failed, _) => format!("✗ {failed} of {run}"),
    }
}

fn count(outcomes: &[Outcome], is: impl Fn(&Outcome) -> bool) -> usize {
    outcomes.iter().filter(|outcome| is(outcome)).count()
}
