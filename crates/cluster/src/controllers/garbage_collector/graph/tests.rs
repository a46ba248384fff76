//! The collector over a small server: cases, and random stories.

use proptest::prelude::*;

use super::world::World;
use super::*;

/// The namespace of most tests.
const HERE: &str = "here";

fn owned(world: &World, owner: &Uid, blocking: Blocking) -> Vec<Reference> {
    vec![
        world
            .reference(owner, blocking)
            .expect("the owner is there"),
    ]
}

/// An owner, a dependent of it and a dependent of that.
fn family(world: &mut World, blocking: Blocking) -> [Uid; 3] {
    let owner = world.create(1, HERE, "owner", vec![]).expect("new");
    let refs = owned(world, &owner, blocking);
    let child = world.create(2, HERE, "child", refs).expect("new");
    let refs = owned(world, &child, blocking);
    let grandchild = world.create(3, HERE, "grandchild", refs).expect("new");
    world.settle();
    [owner, child, grandchild]
}

fn names(world: &World) -> Vec<&str> {
    world.objects.values().map(|o| o.name.as_str()).collect()
}

#[test]
fn dependents_of_a_deleted_owner_go() {
    for (how, blocking) in [
        (Propagation::Background, Blocking::No),
        (Propagation::Background, Blocking::Yes),
        (Propagation::Foreground, Blocking::No),
        (Propagation::Foreground, Blocking::Yes),
    ] {
        let mut world = World::default();
        let [owner, ..] = family(&mut world, blocking);
        world.delete(&owner, how);
        world.settle();
        assert_eq!(names(&world), [] as [&str; 0], "{how:?}");
        assert_eq!(world.graph.len(), 0);
        assert!(world.graph.dependents.is_empty(), "nothing is kept");
    }
}

#[test]
fn owner_in_the_foreground_waits_for_those_who_block() {
    let mut world = World::default();
    let [owner, child, _] = family(&mut world, Blocking::Yes);
    world.hold(&child);
    world.delete(&owner, Propagation::Foreground);
    world.settle();
    assert_eq!(names(&world), ["owner", "child"]);
    world.release(&child, "held");
    world.settle();
    assert_eq!(names(&world), [] as [&str; 0]);
}

#[test]
fn owner_in_the_foreground_does_not_wait_for_those_who_do_not_block() {
    let mut world = World::default();
    let [owner, child, _] = family(&mut world, Blocking::No);
    world.hold(&child);
    world.delete(&owner, Propagation::Foreground);
    world.settle();
    assert_eq!(names(&world), ["child"]);
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    let mut world = World::default();
    let [owner, child, _] = family(&mut world, Blocking::Yes);
    world.delete(&owner, Propagation::Orphan);
    world.settle();
    assert_eq!(names(&world), ["child", "grandchild"]);
    assert!(world.find(&child).expect("stays").owners.is_empty());
}

#[test]
fn object_with_another_owner_stays_and_forgets_the_one_that_is_gone() {
    for how in [Propagation::Background, Propagation::Foreground] {
        let mut world = World::default();
        let [owner, child, _] = family(&mut world, Blocking::Yes);
        let other = world.create(1, HERE, "other", vec![]).expect("new");
        let second = owned(&world, &other, Blocking::Yes);
        world.change(&child, |object| object.owners.extend(second));
        world.settle();
        world.delete(&owner, how);
        world.settle();
        assert_eq!(names(&world), ["other", "child", "grandchild"]);
        assert_eq!(world.find(&child).expect("stays").owners.len(), 1);
    }
}

#[test]
fn owner_of_the_same_name_is_not_the_owner() {
    let mut world = World::default();
    let [owner, ..] = family(&mut world, Blocking::No);
    world.delete(&owner, Propagation::Background);
    world.create(1, HERE, "owner", vec![]).expect("again");
    world.settle();
    assert_eq!(names(&world), ["owner"]);
}

#[test]
fn dependent_in_another_namespace_is_reported_and_goes() {
    for dependent_first in [false, true] {
        let mut world = World::default();
        let owner = world.create(1, HERE, "owner", vec![]).expect("new");
        let refs = owned(&world, &owner, Blocking::No);
        world.create(2, "there", "stray", refs).expect("new");
        if dependent_first {
            world.see(2);
        }
        world.settle();
        assert_eq!(names(&world), ["owner"]);
        assert_eq!(world.reports, 1, "dependent first: {dependent_first}");
    }
}

#[test]
fn owner_of_the_cluster_may_own_in_every_namespace() {
    let mut world = World::default();
    let owner = world.create(0, "", "owner", vec![]).expect("new");
    let refs = owned(&world, &owner, Blocking::No);
    world.create(2, "there", "child", refs).expect("new");
    world.settle();
    assert_eq!((names(&world).len(), world.reports), (2, 0));
    world.delete(&owner, Propagation::Background);
    world.settle();
    assert!(names(&world).is_empty());
}

#[test]
fn object_of_the_cluster_with_an_owner_in_a_namespace_is_never_deleted() {
    let mut world = World::default();
    let owner = world.create(1, HERE, "owner", vec![]).expect("new");
    let refs = owned(&world, &owner, Blocking::No);
    world.create(0, "", "stray", refs).expect("new");
    world.settle();
    world.delete(&owner, Propagation::Background);
    world.settle();
    assert_eq!(names(&world), ["stray"]);
    assert_eq!(world.reports, 1);
}

#[test]
fn circles_do_not_block() {
    let mut world = World::default();
    let a = world.create(1, HERE, "a", vec![]).expect("new");
    let refs = owned(&world, &a, Blocking::Yes);
    let b = world.create(2, HERE, "b", refs).expect("new");
    let refs = owned(&world, &b, Blocking::Yes);
    world.change(&a, |object| object.owners = refs);
    world.settle();
    assert_eq!(names(&world).len(), 2);
    world.delete(&a, Propagation::Foreground);
    world.settle();
    assert!(names(&world).is_empty());
}

#[test]
fn what_nobody_owns_is_never_looked_at() {
    let mut world = World::default();
    for n in 0..1000 {
        world.create(1, HERE, &n.to_string(), vec![]);
        world.see(1);
    }
    assert!(world.work.is_empty());
}

#[test]
fn dependents_of_a_known_owner_ask_the_server_nothing() {
    let mut world = World::default();
    let [_, child, _] = family(&mut world, Blocking::Yes);
    assert_eq!(world.graph.glance(&child), Glance::Fine);
}

/// A step of a story.
#[derive(Debug, Clone)]
enum Step {
    /// Kind, namespace, name, owners among those there, whether they are blocked.
    Create(usize, bool, usize, Vec<usize>, bool),
    Delete(usize, u8),
    Finalize(usize),
    Release(usize),
    AddOwner(usize, usize),
    DropOwners(usize),
    See(usize),
    Work(Option<(usize, u8)>),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let any_object = 0..64usize;
    prop_oneof![
        4 => (0..4usize, any::<bool>(), 0..6usize, prop::collection::vec(any_object.clone(), 0..3), any::<bool>())
            .prop_map(|(k, n, name, owners, b)| Step::Create(k, n, name, owners, b)),
        3 => (any_object.clone(), 0..3u8).prop_map(|(o, how)| Step::Delete(o, how)),
        1 => any_object.clone().prop_map(Step::Finalize),
        1 => any_object.clone().prop_map(Step::Release),
        1 => (any_object.clone(), any_object.clone()).prop_map(|(a, b)| Step::AddOwner(a, b)),
        1 => any_object.clone().prop_map(Step::DropOwners),
        8 => (0..4usize).prop_map(Step::See),
        8 => prop::option::weighted(0.3, (any_object, 0..3u8)).prop_map(Step::Work),
        1 => Just(Step::Restart),
    ]
}

fn pick(world: &World, index: usize) -> Option<Uid> {
    let count = world.objects.len().max(1);
    let object = world.objects.values().nth(index % count)?;
    Some(object.uid.clone())
}

fn propagation(how: u8) -> Propagation {
    match how {
        0 => Propagation::Background,
        1 => Propagation::Foreground,
        _ => Propagation::Orphan,
    }
}

fn delete(world: &mut World, index: usize, how: u8) {
    if let Some(uid) = pick(world, index) {
        world.delete(&uid, propagation(how));
    }
}

fn run(world: &mut World, step: Step) {
    match step {
        Step::Create(kind, here, name, owners, blocking) => {
            let namespace = match (kind, here) {
                (0, _) => "",
                (_, true) => HERE,
                (_, false) => "there",
            };
            let blocking = if blocking {
                Blocking::Yes
            } else {
                Blocking::No
            };
            let mut uids: Vec<Uid> = owners.into_iter().filter_map(|o| pick(world, o)).collect();
            uids.dedup();
            let owners = uids.iter().filter_map(|uid| world.reference(uid, blocking));
            let owners = owners.collect();
            world.create(kind, namespace, &name.to_string(), owners);
        }
        Step::Delete(object, how) => delete(world, object, how),
        Step::Finalize(object) => {
            if let Some(uid) = pick(world, object) {
                world.hold(&uid);
            }
        }
        Step::Release(object) => {
            if let Some(uid) = pick(world, object) {
                world.release(&uid, "held");
            }
        }
        Step::AddOwner(dependent, owner) => add_owner(world, dependent, owner),
        Step::DropOwners(object) => {
            if let Some(uid) = pick(world, object) {
                world.change(&uid, |o| o.owners.clear());
            }
        }
        Step::See(kind) => drop(world.see(kind)),
        Step::Work(meanwhile) => drop(world.work(|world| {
            if let Some((object, how)) = meanwhile {
                delete(world, object, how);
            }
        })),
        Step::Restart => world.restart(),
    }
}

/// Owners are older than their dependents here, so there are no circles.
fn add_owner(world: &mut World, dependent: usize, owner: usize) {
    let (Some(a), Some(b)) = (pick(world, dependent), pick(world, owner)) else {
        return;
    };
    let age = |uid: &Uid| uid[1..].parse::<u64>().unwrap_or_default();
    let (old, young) = if age(&a) < age(&b) { (a, b) } else { (b, a) };
    let reference = world.reference(&old, Blocking::Yes);
    let has = world
        .find(&young)
        .is_some_and(|o| o.owners.iter().any(|r| r.uid == old));
    if old != young && !has {
        world.change(&young, |o| o.owners.extend(reference));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Nothing with a live owner is deleted (the small server asserts it), and at rest nothing is left whose owners
    /// are all gone, nor anything that waits for nobody.
    #[test]
    fn the_owned_live_and_the_unowned_go(story in prop::collection::vec(step(), 0..120)) {
        let mut world = World::default();
        for step in story {
            run(&mut world, step);
        }
        world.settle();
        let held: Vec<Uid> = world.objects.values().map(|o| o.uid.clone()).collect();
        for uid in held {
            world.release(&uid, "held");
        }
        world.settle();
        for object in world.objects.values() {
            prop_assert!(!object.deleting, "{object:?} is stuck");
            let impossible = object.kind == 0 && object.owners.iter().any(|r| r.kind != "K0");
            let owned = object.owners.is_empty() || impossible || world.has_live_owner(&object.uid);
            prop_assert!(owned, "{object:?} has no owner");
        }
        prop_assert_eq!(world.graph.len(), world.objects.len());
    }
}
