//! `kubewright doctor --data-dir`: what can be read of a cluster's data directory, and its repair.

use std::path::Path;

use anyhow::{Context as _, bail};
use kubewright_server::storage::{Damage, examine};

/// What to do about damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    Report,
    Repair,
}

/// Reports what is in a data directory, and repairs it if that is wanted.
pub(super) fn check(directory: &Path, treatment: Treatment) -> anyhow::Result<()> {
    let objects = directory.join("objects");
    let examination =
        examine(&objects).with_context(|| format!("{} cannot be examined", directory.display()))?;
    let count = examination.objects();
    if examination.damage().is_empty() {
        println!("ok   data        {count} objects in {}", objects.display());
        if examination.torn_bytes() > 0 {
            println!(
                "-    torn write  {} bytes at the end; the next start cuts them off and keeps them aside",
                examination.torn_bytes()
            );
        }
        return Ok(());
    }
    for damage in examination.damage() {
        println!("FAIL data        {}", describe(damage));
    }
    println!("     rescue      {count} objects can be read");
    if treatment == Treatment::Report {
        bail!(
            "{} is damaged; rescue what can be read with: kubewright doctor --data-dir {} --repair",
            objects.display(),
            directory.display()
        );
    }
    let repair = examination
        .repair()
        .with_context(|| format!("{} cannot be repaired", objects.display()))?;
    if let Some(repair) = repair {
        println!(
            "ok   repaired    {} objects at revision {}; the files as they were are in {}",
            repair.objects,
            repair.revision,
            repair.kept.display()
        );
    }
    Ok(())
}

fn describe(damage: &Damage) -> String {
    let mut text = format!("{} at byte {}", damage.path.display(), damage.offset);
    if damage.bytes > 0 {
        text.push_str(&format!(", {} bytes", damage.bytes));
    }
    text.push_str(&format!(": {}", damage.reason));
    match (damage.after, damage.before) {
        (Some(after), Some(before)) => {
            text.push_str(&format!(" (between revisions {after} and {before})"));
        }
        (Some(after), None) => text.push_str(&format!(" (after revision {after})")),
        (None, Some(before)) => text.push_str(&format!(" (before revision {before})")),
        (None, None) => {}
    }
    text
}
