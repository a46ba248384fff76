//! The three ways of a Deployment: scale what is there, roll to the new template, or replace all at once. Pure.

use super::annotations::{self, note_size};
use super::bounds::{Bounds, Strategy, strategy};
use super::plan::Pass;
use super::proportion::{self, Share};
use super::rolling::{self, Size};
use super::sets::{self, Slot};
use super::status;

impl Pass<'_> {
    /// Gives the sets with pods their share of the size; with one of them, all of it.
    pub(super) fn scale(&mut self) {
        let bounds = self.bounds;
        let active = self
            .old
            .iter()
            .chain(&self.new)
            .filter(|slot| slot.is_active());
        match active.count() {
            0 => {
                let newest = self.new.as_mut().or(self.old.last_mut());
                newest
                    .into_iter()
                    .for_each(|slot| resize(slot, bounds.replicas, &bounds));
            }
            1 => {
                let only = self
                    .old
                    .iter_mut()
                    .chain(&mut self.new)
                    .filter(|slot| slot.is_active());
                only.for_each(|slot| resize_noted(slot, bounds.replicas, &bounds));
            }
            _ if self.is_saturated() => {
                self.old
                    .iter_mut()
                    .for_each(|slot| resize(slot, 0, &bounds));
            }
            _ if strategy(self.deployment) == Strategy::Rolling => self.scale_in_proportion(),
            _ => {}
        }
        if self.is_paused() {
            self.forget_history();
        }
    }

    /// Whether the new set has all pods and all of them serve.
    fn is_saturated(&self) -> bool {
        let wanted = self.bounds.replicas;
        self.new.as_ref().is_some_and(|new| {
            new.desired() == wanted
                && new.available() == wanted
                && annotations::desired_before(&new.after) == Some(wanted)
        })
    }

    fn scale_in_proportion(&mut self) {
        let status = self.deployment.status.as_ref();
        let running = status
            .and_then(|status| status.replicas)
            .unwrap_or_default();
        let bounds = self.bounds;
        let slots = self.old.iter_mut().chain(&mut self.new);
        let mut active: Vec<&mut Slot> = slots.filter(|slot| slot.is_active()).collect();
        active.sort_by_cached_key(|slot| sets::age(&slot.after.metadata));
        let shares: Vec<Share> = active.iter().map(|slot| share(slot)).collect();
        let sizes = proportion::sizes(&bounds, &shares, running);
        for (slot, size) in active.into_iter().zip(sizes) {
            resize_noted(slot, size, &bounds);
        }
    }

    /// Grows the new set if there is room, and otherwise shrinks the old ones if enough pods serve.
    pub(super) fn roll(&mut self) {
        let bounds = self.bounds;
        let old = self.old.iter().map(Slot::desired);
        match &mut self.new {
            Some(new) => {
                let before = new.desired();
                let size = rolling::new_size(&bounds, before, old);
                resize(new, size, &bounds);
                if size != before {
                    return;
                }
            }
            None => {
                let size = rolling::new_size(&bounds, 0, old);
                self.create(size);
            }
        }
        if !self.shrink_old() {
            self.forget_history_if_complete();
        }
    }

    /// Shrinks the old sets as far as the limits allow; says whether any did.
    fn shrink_old(&mut self) -> bool {
        let size = |slot: &Slot| Size::new(slot.desired(), slot.available());
        let new = self.new.as_ref().map_or(Size::new(0, 0), size);
        let old: Vec<Size> = self.old.iter().map(size).collect();
        let sizes = rolling::old_sizes(&self.bounds, new, &old);
        let mut shrunk = false;
        for (slot, size) in self.old.iter_mut().zip(sizes) {
            shrunk |= slot.desired() != size;
            resize(slot, size, &self.bounds);
        }
        shrunk
    }

    /// Stops all old pods, waits until none of them runs, then starts the new ones.
    pub(super) fn recreate(&mut self, pod_owners: &[String]) {
        let bounds = self.bounds;
        if self.old.iter().any(Slot::is_active) {
            self.old
                .iter_mut()
                .for_each(|slot| resize(slot, 0, &bounds));
            return;
        }
        if self.old.iter().any(|slot| slot.running() > 0) || self.others_own(pod_owners) {
            return;
        }
        match &mut self.new {
            Some(new) => resize(new, bounds.replicas, &bounds),
            None => self.create(bounds.replicas),
        }
        self.forget_history_if_complete();
    }

    fn others_own(&self, pod_owners: &[String]) -> bool {
        let new = self
            .new
            .as_ref()
            .and_then(|new| new.after.metadata.uid.as_ref());
        pod_owners.iter().any(|owner| Some(owner) != new)
    }

    fn forget_history_if_complete(&mut self) {
        let status = self.deployment.status.as_ref();
        if status.is_some_and(|status| status::is_complete(self.deployment, status)) {
            self.forget_history();
        }
    }

    /// Deletes the oldest revisions beyond the limit, as far as they have no pods.
    fn forget_history(&mut self) {
        let Some(limit) = self
            .deployment
            .spec
            .revision_history_limit
            .filter(|limit| *limit != i32::MAX)
        else {
            return;
        };
        let alive = self
            .old
            .iter()
            .filter(|slot| slot.after.metadata.deletion_timestamp.is_none());
        let mut alive: Vec<&Slot> = alive.collect();
        let excess = alive
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or_default());
        alive.sort_by_cached_key(|slot| {
            (
                annotations::revision(&slot.after),
                sets::age(&slot.after.metadata),
            )
        });
        let idle = alive.into_iter().take(excess).filter(|slot| is_idle(slot));
        self.delete = idle.filter_map(|slot| slot.before.clone()).collect();
    }
}

fn share(slot: &Slot) -> Share {
    Share {
        desired: slot.desired(),
        most_before: annotations::most_before(&slot.after),
    }
}

/// Changes the size of a set, and notes for which size of the Deployment.
fn resize(slot: &mut Slot, size: i32, bounds: &Bounds) {
    if slot.desired() != size {
        resize_noted(slot, size, bounds);
    }
}

/// The same, and notes it even where the size stays.
fn resize_noted(slot: &mut Slot, size: i32, bounds: &Bounds) {
    slot.after.spec.replicas = Some(size);
    note_size(&mut slot.after, bounds);
}

/// Whether a set has no pods, wants none, and has seen that it wants none.
fn is_idle(slot: &Slot) -> bool {
    let status = slot.after.status.as_ref();
    let seen = status.and_then(|status| status.observed_generation);
    slot.desired() == 0 && slot.running() == 0 && seen >= slot.after.metadata.generation
}
