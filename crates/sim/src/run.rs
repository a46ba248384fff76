//! One run: a cluster of its own, the operator, the workload, and a plan.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubewright_cluster::{Clock, Cluster, Snapshot};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::campaign::Shape;
use crate::director::Director;
use crate::generated::family;
use crate::normal::{Normal, difference, normalise};
use crate::oracle::{self, Reference, Violation};
use crate::plan::{Fault, FaultKind, Plan};
use crate::process::{Operator, Setting};
use crate::state::ObjectId;
use crate::target;
use crate::trace::{Note, Trace};
use crate::user::{User, dynamic};

/// The seed of everything random in a run.
const SEED: u64 = 0x5eed;
/// How long a step of a workload may take, in virtual time.
const STEP_WITHIN: Duration = Duration::from_secs(600);
/// How long a program may take until it watches anything.
const UP_WITHIN: Duration = Duration::from_secs(30);
/// How often one looks whether a program does.
const UP_CHECKED: Duration = Duration::from_millis(50);

/// What all runs of a campaign begin with.
pub(crate) struct Base {
    pub(crate) snapshot: Snapshot,
    pub(crate) now: Timestamp,
}

/// What a run leaves behind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) trace: Trace,
    /// The state after each step.
    pub(crate) steps: Vec<Normal>,
    /// What the operator had made and was there after each step.
    pub(crate) made: Vec<Vec<ObjectId>>,
    /// Which of those can be edited in a way that an operator puts right.
    pub(crate) editable: Vec<Vec<ObjectId>>,
    pub(crate) has_lease: bool,
    pub(crate) violation: Option<Violation>,
    pub(crate) unreached: Vec<Fault>,
}

struct Run<'a> {
    shape: &'a Shape,
    plan: &'a Plan,
    reference: Option<&'a Outcome>,
    cluster: Arc<Cluster>,
    director: Arc<Director>,
    operator: Operator,
    user: User,
    outcome: Outcome,
}

/// Executes a plan. The runtime's clock has to be paused.
pub(crate) async fn execute(
    shape: &Shape,
    base: &Base,
    plan: &Plan,
    reference: Option<&Outcome>,
) -> Outcome {
    let clock = Clock::starting_at(base.now);
    let mut snapshot = base.snapshot.clone().clock(clock.clone()).seed(SEED);
    if let Some(parts) = &shape.controllers {
        snapshot = snapshot.controllers(parts.iter().copied());
    }
    let cluster = snapshot.cluster().await;
    let cluster = Arc::new(cluster.expect("a snapshot of a cluster starts"));
    let director = Arc::new(Director::new(plan, shape.rules.clone(), shape.pace));
    let observer = director.clone();
    let observed = cluster
        .server()
        .observe(move |collection, event| observer.observe(collection, event));
    observed.expect("a new cluster has no observer");
    let external = shape.external.as_ref().map(|make| make());
    let setting = Setting {
        cluster: cluster.clone(),
        director: director.clone(),
        start: shape.start.clone(),
        clock,
        seed: SEED,
        consistency: shape.consistency,
        external: external.clone(),
    };
    let operator = Operator::start(&setting, shape.replicas);
    let user = User::new(cluster.clone(), external);
    let mut run = Run {
        shape,
        plan,
        reference,
        cluster,
        director,
        operator,
        user,
        outcome: Outcome::default(),
    };
    run.outcome.violation = run.live().await.err().map(|violation| *violation);
    run.finish()
}

impl Run<'_> {
    async fn live(&mut self) -> Result<(), Box<Violation>> {
        let shape = self.shape;
        self.settle("start", shape.settle / 4).await?;
        let external = self.user.external_state();
        for (number, (name, step)) in shape.steps.iter().enumerate() {
            self.director.begin_step(number, name);
            let done = timeout(STEP_WITHIN, step(self.user.clone())).await;
            let failed = |error: String| {
                let step = name.clone();
                Box::new(Violation::StepFailed { step, error })
            };
            done.map_err(|_| failed("it takes more than ten minutes".to_owned()))?
                .map_err(|error| failed(error.report()))?;
            self.settle(name, shape.settle).await?;
            for fault in self.director.faults_after(name) {
                self.disturb(&fault).await;
                self.settle(name, shape.settle).await?;
            }
            self.compare(number, name)?;
            self.note_objects();
        }
        self.rest().await?;
        self.conclude(external)
    }

    /// Waits until nothing has changed for a while.
    async fn settle(&self, step: &str, window: Duration) -> Result<(), Box<Violation>> {
        let begin = Instant::now();
        loop {
            let changed = self.last_change();
            let disturbed = self.director.disturbed_until().unwrap_or(begin);
            let rest = changed.unwrap_or(begin).max(begin).max(disturbed) + window;
            if self.director.pace.is_real && !self.director.is_up() {
                self.wait_for_program(begin).await?;
                continue;
            }
            if let Some(how) = self.operator.exits() {
                return Err(Violation::KeepsEnding { how }.into());
            }
            if let Some(broken) = self.director.broken().into_iter().next() {
                return Err(Violation::from(broken).into());
            }
            if Instant::now() >= rest {
                return Ok(());
            }
            if begin.elapsed() > self.director.pace.settled_within {
                let trace = self.director.trace();
                let mut writes: Vec<String> = trace
                    .writes()
                    .filter(|(_, wrote)| wrote.effective)
                    .map(|(entry, _)| entry.to_string())
                    .collect();
                let last = writes.split_off(writes.len().saturating_sub(4));
                let step = step.to_owned();
                return Err(Violation::NotSettled { step, writes: last }.into());
            }
            sleep_until(rest).await;
        }
    }

    /// When anything changed last. A program that is asking, or being shown something, is not at rest either: on a real clock it
    /// may need a while until it writes.
    fn last_change(&self) -> Option<Instant> {
        let changed = self.director.state(|state| state.last_change());
        let active = self.director.last_active();
        if self.director.pace.is_real {
            changed.max(active)
        } else {
            changed
        }
    }

    /// Waits a moment for a program that does not watch anything yet.
    async fn wait_for_program(&self, since: Instant) -> Result<(), Box<Violation>> {
        let exits = self.operator.exits();
        let late = since.elapsed() > UP_WITHIN;
        let late = late.then(|| format!("it watches nothing within {} s", UP_WITHIN.as_secs()));
        match exits.or(late) {
            Some(how) => Err(Violation::KeepsEnding { how }.into()),
            None => {
                sleep(UP_CHECKED).await;
                Ok(())
            }
        }
    }

    /// Lets a fault happen that is not one of the connection.
    async fn disturb(&self, fault: &Fault) {
        match fault {
            Fault::Restart(_) => self.operator.restart().await,
            Fault::StaleRestart(_, event) => {
                if let Some(revision) = self.director.revision_of(event) {
                    self.operator.restart_at(revision).await;
                }
            }
            Fault::LoseLease(_) => self.take_lease().await,
            Fault::HumanDelete(_, resource, key) => self.delete(resource, key).await,
            Fault::HumanEdit(_, resource, key) => self.edit(resource, key).await,
            _ => {}
        }
        // Whoever is disturbed begins to react before anybody looks whether it is quiet.
        sleep(Duration::from_millis(10)).await;
    }

    async fn take_lease(&self) {
        let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
        let resource = ApiResource::from_gvk_with_plural(&kind, "leases");
        let now = self.cluster.clock().now();
        let spec =
            json!({"spec": {"holderIdentity": "somebody-else", "renewTime": format!("{now:.6}")}});
        for lease in self.director.leases() {
            let (namespace, name) = split(&lease);
            let api = dynamic(&self.cluster.client(), &resource, namespace);
            let how = PatchParams::default();
            let patched = api.patch(name, &how, &Patch::Merge(&spec)).await;
            self.record_act("somebody else takes the lease", &lease, patched.err());
        }
    }

    async fn delete(&self, resource: &str, key: &str) {
        let Some((kind, namespace, name)) = self.kind_of(resource, key) else {
            return;
        };
        let api = dynamic(&self.cluster.client(), &kind, namespace.as_deref());
        let deleted = api.delete(&name, &DeleteParams::default()).await;
        self.record_act(
            "somebody deletes",
            &format!("{resource} {key}"),
            deleted.err(),
        );
    }

    async fn edit(&self, resource: &str, key: &str) {
        let object = self.found(resource, key);
        let patch = object.and_then(|(_, object)| edited(&object));
        let (Some((kind, namespace, name)), Some(patch)) = (self.kind_of(resource, key), patch)
        else {
            return;
        };
        let api = dynamic(&self.cluster.client(), &kind, namespace.as_deref());
        let how = PatchParams::default();
        let patched = api.patch(&name, &how, &Patch::Merge(&patch)).await;
        let what = format!("{resource} {key}: {patch}");
        self.record_act("somebody edits", &what, patched.err());
    }

    fn record_act(&self, what: &str, whom: &str, failed: Option<kube::Error>) {
        let text = match failed {
            None => format!("{what} {whom}"),
            Some(error) => format!("{what} {whom}: {error}"),
        };
        self.director.note(Note::Other(text));
    }

    fn kind_of(&self, resource: &str, key: &str) -> Option<(ApiResource, Option<String>, String)> {
        let (key, object) = self.found(resource, key)?;
        let version = object["apiVersion"].as_str()?;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str()?);
        let plural = resource.split('.').next()?;
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let (namespace, name) = split(&key);
        Some((resource, namespace.map(str::to_owned), name.to_owned()))
    }

    /// The object that a plan calls so, with its own key.
    fn found(&self, resource: &str, key: &str) -> Option<(String, Value)> {
        self.director.state(|state| {
            let key = state.generated().key(resource, key);
            let object = state.get(resource, &key)?;
            Some((key, object))
        })
    }

    /// Compares the state with that of the reference after the same step.
    fn compare(&mut self, number: usize, name: &str) -> Result<(), Box<Violation>> {
        let masks = &self.shape.masks;
        let mut found = self.director.state(|state| normalise(state, masks));
        if let Some(state) = self.user.external_state() {
            found.insert(("external".to_owned(), "system".to_owned()), state);
        }
        if let Some(expected) = self.reference.and_then(|it| it.steps.get(number)) {
            let unlike = if self.is_about_people() {
                let of = self.reference.map(|it| touched(&it.trace));
                let of = of.unwrap_or_default();
                difference(&narrowed(expected, &of), &narrowed(&found, &of))
            } else {
                difference(expected, &found)
            };
            if let Some(difference) = unlike {
                let step = name.to_owned();
                return Err(Violation::Differs { step, difference }.into());
            }
        }
        self.outcome.steps.push(found);
        Ok(())
    }

    /// Whether somebody edits or deletes what the operator made. What others make of that is not the operator's.
    fn is_about_people(&self) -> bool {
        self.plan
            .has(&[FaultKind::HumanDelete, FaultKind::HumanEdit])
    }

    fn note_objects(&mut self) {
        let made = self.director.made().into_iter();
        let made: Vec<ObjectId> = self.director.state(|state| {
            made.map(|(resource, key)| (resource, state.generated().alias(&key).into_owned()))
                .collect()
        });
        let editable = made.iter().filter(|(resource, key)| {
            let object = self.found(resource, key);
            object.is_some_and(|(_, object)| edited(&object).is_some())
        });
        self.outcome.editable.push(editable.cloned().collect());
        self.outcome.made.push(made);
    }

    /// Lets time pass in which nothing should happen.
    async fn rest(&self) -> Result<(), Box<Violation>> {
        let from = self.director.trace().entries.len();
        sleep(self.shape.quiet).await;
        let trace = self.director.trace();
        match oracle::unrest(&trace, from, self.shape.quiet.as_secs()) {
            Some(unrest) => Err(unrest.into()),
            None => Ok(()),
        }
    }

    fn conclude(&self, external_before: Option<Value>) -> Result<(), Box<Violation>> {
        if let Some(broken) = self.director.broken().into_iter().next() {
            return Err(Violation::from(broken).into());
        }
        // On a real clock the cache of a program lags by itself: it may create what is gone a moment later, which does no harm.
        if let Some(Outcome { trace, steps, .. }) = self.reference
            && !self.director.pace.is_real
            && let reference = (Reference { trace, steps })
            && let Some(miscounted) =
                oracle::miscounted(self.plan, reference, &self.director.trace())
        {
            return Err(miscounted.into());
        }
        let removed = |id: &ObjectId| self.director.state(|state| !state.has(&id.0, &id.1));
        let own = self.user.made();
        if own.is_empty() || !own.iter().all(removed) {
            return Ok(());
        }
        let mut objects = self.director.made();
        let ignored = &self.shape.masks.resources;
        objects.retain(|(resource, _)| !ignored.contains(resource));
        if external_before != self.user.external_state() {
            objects.push(("external".to_owned(), "system".to_owned()));
        }
        if objects.is_empty() {
            Ok(())
        } else {
            Err(Violation::Leaked { objects }.into())
        }
    }

    fn finish(mut self) -> Outcome {
        self.outcome.trace = self.director.trace();
        self.outcome.unreached = self.director.unreached();
        self.outcome.has_lease = !self.director.leases().is_empty();
        self.outcome
    }
}

/// The objects that the operator wrote.
fn touched(trace: &Trace) -> BTreeSet<ObjectId> {
    let written = trace.writes().filter(|(_, wrote)| wrote.effective);
    let written = written.map(|(_, wrote)| {
        let resource = target::plain(&wrote.id.resource).to_owned();
        (resource, family(&wrote.id.key).into_owned())
    });
    written.collect()
}

fn narrowed(state: &Normal, to: &BTreeSet<ObjectId>) -> Normal {
    let is_kept = |(resource, key): &ObjectId| {
        let id = (resource.clone(), family(key).into_owned());
        to.contains(&id)
    };
    let kept = state.iter().filter(|(id, _)| is_kept(id));
    let kept = kept.map(|(id, object)| {
        let mut object = object.clone();
        if let Some(notes) = object["metadata"]["annotations"].as_object_mut() {
            notes.remove("deployment.kubernetes.io/revision");
            notes.remove("deployment.kubernetes.io/desired-replicas");
        }
        (id.clone(), object)
    });
    kept.collect()
}

/// An edit of an object that its operator has to put right: of the number of replicas, or of a value.
fn edited(object: &Value) -> Option<Value> {
    if let Some(replicas) = object["spec"]["replicas"].as_i64() {
        return Some(json!({"spec": {"replicas": replicas + 1}}));
    }
    let (name, _) = object["data"].as_object()?.iter().next()?;
    // Of a Secret it is base64.
    Some(json!({"data": {name: "ZWRpdGVk"}}))
}

fn split(key: &str) -> (Option<&str>, &str) {
    match key.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, key),
    }
}
