//! The property walk: every property of a kind is changed, one after the other, and what comes of it is compared.
//!
//! After Acto (SOSP'23).

mod change;
mod invalid;
mod judge;
mod meaning;
mod object;
mod page;
mod property;
mod report;
mod route;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource};
use kubewright_manifests::sample::{self, Checker};
use kubewright_runtime::Error;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::campaign::{Campaign, Shape, Step};
use crate::identity::escape;
use crate::plan::Plan;
use crate::replay::{self, Asked, REPLAY};
use crate::run::{Base, Outcome, execute};
use crate::sample::is_full;
use crate::sheet;
use crate::threads::{in_runtime, spread};
use crate::user::User;
use change::Given;
use judge::judge;
use object::Subject;
use route::{Change, How, Route, Terrain};

pub use report::{WalkFailure, WalkReport};

/// Lines of the timeline of a step that failed.
const TIMELINE: usize = 24;

/// Changes every property of a kind, one after the other, and compares what the operator makes of it.
///
/// The route is found from the schema alone, on an API server without the operator. Each change is
/// then a run of its own: an object of the content before, the change, quiet time, the change taken back, deletion. What must
/// hold:
///
/// | rule | |
/// |---|---|
/// | W1 | forbidden values are refused before the operator sees them; accepted ones can be read as its type |
/// | W2 | the change leads to what a new cluster with a new object of that content has |
/// | W3 | taking the change back restores what was before, after an error too |
/// | O1, O5, O7, O8 | no panics, silence in quiet time, nothing left after deletion, invariants: as in a [`Campaign`] |
///
/// Properties whose changes have no effect on anything are listed in the report.
///
/// ```
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// use kubewright_sim::Walk;
///
/// let definition: CustomResourceDefinition = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "pages.example.com"},
///     "spec": {"group": "example.com", "scope": "Namespaced",
///         "names": {"kind": "Page", "plural": "pages", "singular": "page", "listKind": "PageList"},
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///             "type": "object", "properties": {"spec": {"type": "object", "properties": {
///                 "size": {"type": "integer", "minimum": 1, "maximum": 5}}}}}}}]},
/// })).unwrap();
/// // A kind that no operator looks at: what the server accepts and refuses.
/// let report = Walk::of_definition("page", &definition).run();
/// assert_eq!((report.changed, report.properties), (1, 1));
/// assert!(report.refused >= 3); // a text, zero, six
/// ```
#[must_use = "a walk does nothing until it runs"]
pub struct Walk {
    campaign: Campaign,
    terrain: Terrain,
    /// Whether there is an operator to be run.
    has_operator: bool,
    sample: Option<usize>,
}

impl Walk {
    /// A walk over the kind `K` with the operator of a campaign. The steps of the campaign prepare what the operator needs, and
    /// come before the first change; the definition is installed.
    ///
    /// # Panics
    /// When no object of the kind can be made from its schema: begin with one of your own, with [`Walk::starting_with`].
    pub fn new<K>(campaign: Campaign) -> Self
    where
        K: CustomResourceExt + Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let mut definition = K::crd();
        for version in &mut definition.spec.versions {
            // A type is one version of a kind, and here the only one.
            version.storage = true;
        }
        let mut walk = Self::over(campaign, &definition, &K::version(&()));
        walk.has_operator = true;
        walk.terrain.decode = Some(Arc::new(|value: &Value| {
            let read: Result<K, _> = serde_json::from_value(value.clone());
            read.map(drop)
        }));
        walk
    }

    /// A walk over a kind that no operator looks at: what the server accepts, keeps and refuses.
    ///
    /// # Panics
    /// As [`Walk::new`], and when the definition has no version in storage.
    pub fn of_definition(name: &str, definition: &CustomResourceDefinition) -> Self {
        let campaign = Campaign::new(name, |process| process.manager())
            .cluster(|cluster| cluster.without_controllers());
        let mut versions = definition.spec.versions.iter();
        let version = versions.find(|version| version.storage);
        let version = version.expect("a definition has a version in storage");
        Self::over(campaign, definition, &version.name)
    }

    fn over(campaign: Campaign, definition: &CustomResourceDefinition, version: &str) -> Self {
        let checker = Checker::of(definition, version);
        let checker = checker.unwrap_or_else(|error| panic!("{error}"));
        let first = sample::of(definition, version);
        let mut first = first.unwrap_or_else(|error| panic!("{error}"));
        if definition.spec.scope == "Namespaced" {
            first["metadata"]["namespace"] = "default".into();
        }
        Self {
            campaign: campaign.install(definition),
            terrain: Terrain {
                definition: definition.clone(),
                checker,
                first,
                given: Given::new(),
                seed: 0,
                decode: None,
            },
            has_operator: false,
            sample: None,
        }
    }

    /// Begins with this object instead of one that is made from the schema.
    ///
    /// # Panics
    /// When the object cannot be written as JSON.
    pub fn starting_with(mut self, object: &impl Serialize) -> Self {
        let mut object = serde_json::to_value(object).expect("the object can be written as JSON");
        let first = &self.terrain.first;
        for name in ["apiVersion", "kind"] {
            object[name] = first[name].clone();
        }
        for name in ["name", "namespace"] {
            if object["metadata"][name].is_null() && !first["metadata"][name].is_null() {
                object["metadata"][name] = first["metadata"][name].clone();
            }
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        self.terrain.first = object;
        self
    }

    /// Gives the values of a property, or of the items or entries of one, where those of the schema would not do: names of
    /// namespaces that exist, say. The path is as in reports: `spec.pools[*].name`.
    pub fn values<V: Into<Value>>(
        mut self,
        property: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.terrain.given.insert(property.to_owned(), values);
        self
    }

    /// Takes other values where there is a choice.
    pub fn seed(mut self, seed: u64) -> Self {
        self.terrain.seed = seed;
        self
    }

    /// Runs the operator for this many of the changes, evenly spread, unless the variable `KUBEWRIGHT_SIM` is `full`. What the
    /// server accepts and refuses is found out for all of them in any case.
    pub fn sample(mut self, steps: usize) -> Self {
        self.sample = Some(steps.max(1));
        self
    }

    /// Walks, or repeats the one step that `KUBEWRIGHT_REPLAY` names, and panics with a report if a property was not changed or
    /// something did not hold. If that variable names a run of another campaign, the operator is not run: the report has what is
    /// known without it, and nothing fails.
    ///
    /// # Panics
    /// When the walk is not clean, and when the token in `KUBEWRIGHT_REPLAY` cannot be read.
    pub fn check(&self) -> WalkReport {
        let name = self.campaign.name();
        let report = match replay::asked(name) {
            Asked::Everything => self.run(),
            Asked::Other(other) => {
                println!("{name}: {REPLAY} is about {other}");
                // Tests compare the counts of properties, which are known without a run.
                let (_base, route) = self.prepare();
                return self.begin_report(&route);
            }
            Asked::One(token) => {
                let step = self.step_of(&token);
                self.run_steps(|_| BTreeSet::from([step]))
            }
        };
        sheet::keep(|directory| report.write(directory));
        assert!(report.is_clean(), "\n{report}");
        println!("{report}");
        report
    }

    /// Walks, whatever `KUBEWRIGHT_REPLAY` names, and reports what was found.
    pub fn run(&self) -> WalkReport {
        self.run_steps(|route| self.sampled(route))
    }

    fn run_steps(&self, chosen: impl FnOnce(&Route) -> BTreeSet<usize>) -> WalkReport {
        let began = Instant::now();
        let (base, route) = self.prepare();
        let mut report = self.begin_report(&route);
        if self.has_operator {
            self.refuse(&base, &route, &mut report);
            self.walk(&base, &route, &chosen(&route), &mut report);
        }
        report.took = began.elapsed();
        report
    }

    /// A cluster to begin with, and the route that is found on it without the operator.
    fn prepare(&self) -> (Base, Route) {
        let base = self.campaign.prepare();
        let route = in_runtime(|| route::find(&self.terrain, &base));
        (base, route)
    }

    /// A campaign whose workload is made of changes of this walk: an object is created, changed so many times and deleted. The
    /// changes are updates, so that properties which cannot be changed stay as the object was created with them.
    pub fn into_campaign(self, changes: usize) -> Campaign {
        let (_base, route) = self.prepare();
        let subject = self.subject();
        let updates = longest_stretch(&route.changes);
        let wanted = changes.clamp(1, updates.len().max(1));
        let chosen = (0..wanted).filter_map(|at| updates.get(at * updates.len() / wanted));
        let first = updates
            .first()
            .map_or(&self.terrain.first, |change| &change.before);
        let mut campaign = self.campaign.with_step("create", create(&subject, first));
        for (at, change) in chosen.enumerate() {
            let name = format!("{} {}", at + 1, change.what);
            campaign = campaign.with_step(&name, write(&subject, change.how, &change.after));
        }
        campaign.with_step("delete", delete(&subject))
    }

    fn subject(&self) -> Subject {
        Subject::of(
            &self.terrain.first,
            &self.terrain.definition.spec.names.plural,
        )
    }

    fn begin_report(&self, route: &Route) -> WalkReport {
        let changed: BTreeSet<&String> = route.changes.iter().map(|it| &it.property).collect();
        let seen_without = |step: &String, what: String| WalkFailure {
            step: step.clone(),
            oracle: "W1 forbidden values are refused",
            what,
            token: String::new(),
            timeline: Vec::new(),
        };
        let accepted = route.accepted.iter();
        let accepted = accepted.map(|what| seen_without(what, "the server accepts it".to_owned()));
        let unreadable = route.unreadable.iter();
        let unreadable = unreadable.map(|(step, why)| {
            let what =
                format!("the server accepts it, and the operator's type cannot read it: {why}");
            seen_without(step, what)
        });
        WalkReport {
            name: self.campaign.name().to_owned(),
            properties: route.properties,
            changed: changed.len(),
            steps: route.changes.len(),
            unreachable: route.unreachable.clone(),
            refused: route.invalid.len() - route.accepted.len(),
            unbroken: route.unbroken.clone(),
            failures: accepted.chain(unreadable).collect(),
            ..WalkReport::default()
        }
    }

    /// Asks for what is forbidden with the operator at work, which must not see any of it.
    fn refuse(&self, base: &Base, route: &Route, report: &mut WalkReport) {
        let subject = self.subject();
        let (resource, key) = subject.id();
        let mut shape = self.campaign.shape().clone();
        let at = shape.steps.len() + 1;
        let invalid: Vec<Value> = route.invalid.iter().map(|it| it.object.clone()).collect();
        let accepted = Arc::new(Mutex::new(0_usize));
        let count = accepted.clone();
        shape
            .steps
            .push(("create".to_owned(), create(&subject, &self.terrain.first)));
        let ask = step(async move |user: User| {
            for object in &invalid {
                let answer = subject.replace(&user, object).await;
                *count.lock() += usize::from(answer.is_ok());
            }
            Ok(())
        });
        shape
            .steps
            .push(("ask for what is forbidden".to_owned(), ask));
        let none = Plan::default();
        let outcome = in_runtime(|| execute(&shape, base, &none, None));
        let mut events = outcome.trace.events();
        let seen = events
            .find(|(entry, id)| entry.step == at && (&id.resource, &id.key) == (&resource, &key));
        if seen.is_some() && *accepted.lock() == 0 {
            report.failures.push(WalkFailure {
                step: "ask for what is forbidden".to_owned(),
                oracle: "W1 forbidden values are refused",
                what: "the operator saw a change of the object".to_owned(),
                token: String::new(),
                timeline: outcome.trace.timeline(TIMELINE),
            });
        }
    }

    /// Runs the chosen changes, and judges each.
    fn walk(&self, base: &Base, route: &Route, chosen: &BTreeSet<usize>, report: &mut WalkReport) {
        let mut needed: BTreeSet<usize> = chosen.clone();
        needed.extend(chosen.iter().map(|at| fresh(route, *at)));
        let needed: Vec<usize> = needed.into_iter().collect();
        let jobs = self.campaign.jobs_at_once();
        let outcomes = spread(jobs, &needed, |at| self.execute(base, route, *at));
        let outcome = |at: usize| {
            let found = needed.binary_search(&at).ok();
            found.and_then(|found| outcomes[found].as_ref())
        };
        let mut effective: BTreeSet<&String> = BTreeSet::new();
        let mut walked: BTreeSet<&String> = BTreeSet::new();
        for at in chosen {
            let (Some(change), Some(run)) = (route.changes.get(*at), outcome(*at)) else {
                continue;
            };
            let (subject, prepared) = (self.subject().id(), self.campaign.shape().steps.len());
            let quiet = self.campaign.shape().quiet.as_secs();
            let finding = judge(run, outcome(fresh(route, *at)), &subject, prepared, quiet);
            report.run += 1;
            walked.insert(&change.property);
            if finding.has_effect {
                effective.insert(&change.property);
            }
            if finding.is_error && finding.broken.is_empty() {
                report.error_states.push(change.what.clone());
            }
            report.failures.extend(
                finding
                    .broken
                    .into_iter()
                    .map(|(oracle, what)| WalkFailure {
                        step: change.what.clone(),
                        oracle,
                        what,
                        token: self.token(*at),
                        timeline: run.trace.timeline(TIMELINE),
                    }),
            );
        }
        let without = walked.difference(&effective);
        report.without_effect = without.map(|name| (*name).clone()).collect();
    }

    /// Which changes are run where no token names one: all, or some of them, evenly spread.
    fn sampled(&self, route: &Route) -> BTreeSet<usize> {
        let all = 0..route.changes.len();
        let Some(sample) = self.sample.filter(|_| !is_full()) else {
            return all.collect();
        };
        let some = sample.min(all.len());
        (0..some)
            .map(|at| at * route.changes.len() / some)
            .collect()
    }

    fn token(&self, at: usize) -> String {
        let name = escape(self.campaign.name());
        format!("{name}:walk:{}:{at}", self.terrain.seed)
    }

    /// The step of a token, which the name is no part of.
    fn step_of(&self, token: &str) -> usize {
        let at = token.strip_prefix(&format!("walk:{}:", self.terrain.seed));
        let at = at.and_then(|at| at.parse().ok());
        at.unwrap_or_else(|| panic!("{REPLAY}: {token:?} is not a step of this walk"))
    }

    /// The run of one change; past the last there are those of contents alone.
    fn execute(&self, base: &Base, route: &Route, at: usize) -> Option<Outcome> {
        let mut shape: Shape = self.campaign.shape().clone();
        let (subject, quiet) = (self.subject(), shape.quiet);
        let mut add = |name: &str, step: Step| shape.steps.push((name.to_owned(), step));
        match route.changes.get(at) {
            Some(change) => {
                add("create", create(&subject, &change.before));
                add(&change.what, write(&subject, change.how, &change.after));
                let rest = step(async move |user: User| {
                    user.wait(quiet).await;
                    Ok(())
                });
                add("rest", rest);
                add("take back", write(&subject, change.how, &change.before));
                add("delete", delete(&subject));
            }
            None => {
                let of = route.changes.get(at - route.changes.len())?;
                add("create", create(&subject, &of.after));
            }
        }
        let none = Plan::default();
        Some(in_runtime(|| execute(&shape, base, &none, None)))
    }
}

/// The most updates in a row, the earliest of those. Where an object is made anew, a property differs that no update can change:
/// content from after that is refused for an object from before it.
fn longest_stretch(changes: &[Change]) -> &[Change] {
    let stretches = changes.split(|change| change.how == How::Anew);
    stretches.rev().max_by_key(|it| it.len()).unwrap_or(&[])
}

/// The run that has a new object of the content that a change ends with. That of the next change begins with one, unless the walk
/// started over in between.
fn fresh(route: &Route, at: usize) -> usize {
    let after = route.changes.get(at).map(|change| &change.after);
    let next = route.changes.get(at + 1).map(|change| &change.before);
    if next.is_some() && after == next {
        at + 1
    } else {
        route.changes.len() + at
    }
}

fn step(run: impl AsyncFn(User) -> Result<(), Error> + Send + Sync + 'static) -> Step {
    let run = Arc::new(run);
    Arc::new(move |user| {
        let run = run.clone();
        Box::pin(async move { run(user).await })
    })
}

fn create(subject: &Subject, content: &Value) -> Step {
    let (subject, content) = (subject.clone(), content.clone());
    step(async move |user: User| subject.create(&user, &content).await.map(drop))
}

fn write(subject: &Subject, how: How, content: &Value) -> Step {
    let (subject, content) = (subject.clone(), content.clone());
    step(async move |user: User| {
        let written = match how {
            How::Update => subject.replace(&user, &content).await,
            How::Anew => subject.make_anew(&user, &content).await,
        };
        written.map(drop)
    })
}

fn delete(subject: &Subject) -> Step {
    let subject = subject.clone();
    step(async move |user: User| subject.delete(&user).await)
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Walk({})", self.campaign.name())
    }
}
