//! The route of a walk: which property is changed when, into what. It is found on an API server without the operator, so that
//! every step is one that a server accepts.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_cluster::Clock;
use kubewright_manifests::sample::{Checker, replaced};
use kubewright_runtime::Error;
use kubewright_schema::FieldError;
use serde_json::Value;

use super::change::{self, Given, Way};
use super::invalid::{Invalid, invalid};
use super::object::{Subject, content};
use super::property::{Property, properties};
use crate::run::Base;
use crate::user::User;

/// An object that has grown larger than this, in bytes of JSON, is left for the one that the walk began with: of a schema with a
/// thousand properties each change would be about all of them.
const LARGE: usize = 4096;
/// The seed of the cluster on which a route is found.
const SEED: u64 = 0x0a1c;

/// Whether a value can be read as the operator's type, and why not.
pub(crate) type Decode = Arc<dyn Fn(&Value) -> Result<(), serde_json::Error> + Send + Sync>;

/// What a walk knows of the kind.
pub(crate) struct Terrain {
    pub(crate) definition: CustomResourceDefinition,
    pub(crate) checker: Checker,
    pub(crate) first: Value,
    pub(crate) given: Given,
    pub(crate) seed: u64,
    pub(crate) decode: Option<Decode>,
}

/// How an object gets its new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// By an update of the object.
    Update,
    /// By a new object of that name, because the property cannot be changed.
    Anew,
}

/// One change of one property.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) property: String,
    /// As in `set spec.replicas to 3`.
    pub(crate) what: String,
    pub(crate) how: How,
    pub(crate) before: Value,
    pub(crate) after: Value,
}

/// Why a property was not changed.
#[derive(Debug, thiserror::Error)]
enum ChangeError {
    #[error("it has no other value")]
    NoOtherValue,
    #[error("there is no place for it")]
    NoPlace,
    /// The definition forbids the object, and a short search found no valid one near it.
    #[error("{0}")]
    Invalid(FieldError),
    #[error("{}", .0.report())]
    Refused(Error),
    #[error("the server keeps what it has")]
    Kept,
}

/// The whole way, and what was seen beside it.
#[derive(Debug, Default)]
pub(crate) struct Route {
    pub(crate) properties: usize,
    pub(crate) changes: Vec<Change>,
    /// Properties for which no value was accepted, and why the last was not.
    pub(crate) unreachable: Vec<(String, String)>,
    pub(crate) invalid: Vec<Invalid>,
    /// Expressions for which no value was found that breaks them.
    pub(crate) unbroken: Vec<String>,
    /// Forbidden values that the server accepted.
    pub(crate) accepted: Vec<String>,
    /// Values that the server accepted and that the operator's type cannot read.
    pub(crate) unreadable: Vec<(String, String)>,
}

/// Finds the route on a cluster of its own. The runtime's clock has to be paused.
///
/// # Panics
/// When not even the first object is accepted: there is nothing to walk.
pub(crate) async fn find(terrain: &Terrain, base: &Base) -> Route {
    let clock = Clock::starting_at(base.now);
    let snapshot = base.snapshot.clone().clock(clock).seed(SEED);
    let cluster = snapshot.cluster().await;
    let cluster = Arc::new(cluster.expect("a snapshot of a cluster starts"));
    let user = User::new(cluster, None);
    let subject = Subject::of(&terrain.first, &terrain.definition.spec.names.plural);
    let created = subject.create(&user, &terrain.first).await;
    let created = created
        .unwrap_or_else(|error| panic!("the object to begin with is refused: {}", error.report()));
    let mut finder = Finder {
        terrain,
        user,
        subject,
        current: content(&created, &terrain.first),
        route: Route::default(),
    };
    finder.refuse().await;
    for property in properties(terrain.checker.schema()) {
        finder.route.properties += 1;
        finder.start_over_if_large().await;
        finder.walk(&property).await;
    }
    finder.route
}

struct Finder<'a> {
    terrain: &'a Terrain,
    user: User,
    subject: Subject,
    current: Value,
    route: Route,
}

impl Finder<'_> {
    /// Asks for what is forbidden.
    async fn refuse(&mut self) {
        let (invalid, unbroken) = invalid(&self.terrain.checker, &self.current);
        for case in &invalid {
            if self.subject.replace(&self.user, &case.object).await.is_ok() {
                self.route.accepted.push(case.what.clone());
                // Back to what the walk begins with.
                let back = self.subject.replace(&self.user, &self.current).await;
                drop(back);
            }
        }
        self.route.invalid = invalid;
        self.route.unbroken = unbroken;
    }

    /// Goes back to the first object when this one has grown large. If a rule about updates forbids that, the walk goes on.
    async fn start_over_if_large(&mut self) {
        if self.current.to_string().len() > LARGE
            && let Ok(answer) = self.subject.replace(&self.user, &self.terrain.first).await
        {
            self.current = content(&answer, &self.terrain.first);
        }
    }

    /// Changes a property in every way that is accepted.
    async fn walk(&mut self, property: &Property) {
        let before = self.route.changes.len();
        let mut last = ChangeError::NoOtherValue;
        let mut used: Vec<Option<Value>> = Vec::new();
        for way in change::ways(property) {
            match self.step(property, way, &mut used).await {
                Ok(()) | Err(ChangeError::NoOtherValue) => {}
                Err(error) => last = error,
            }
        }
        if self.route.changes.len() == before {
            let unreachable = (property.to_string(), last.to_string());
            self.route.unreachable.push(unreachable);
        }
    }

    /// Changes a property in one way. Fails with the error of the last value that was tried.
    async fn step(
        &mut self,
        property: &Property,
        way: Way,
        used: &mut Vec<Option<Value>>,
    ) -> Result<(), ChangeError> {
        let schema = self.terrain.checker.schema();
        let mut base = self.current.clone();
        let pointer = property.place(schema, &mut base);
        let pointer = pointer.ok_or(ChangeError::NoPlace)?;
        let current = base.pointer(&pointer);
        let (given, seed) = (&self.terrain.given, self.terrain.seed);
        let mut last = ChangeError::NoOtherValue;
        for value in change::values(property, way, current, given, seed) {
            if matches!(way, Way::Set(_)) && used.contains(&value) {
                continue;
            }
            match self
                .take(property, way, &base, &pointer, value.as_ref())
                .await
            {
                Ok(()) => {
                    used.push(value);
                    if way == Way::Remove {
                        used.clear();
                    }
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Writes one value, and notes the change if the server accepts it.
    async fn take(
        &mut self,
        property: &Property,
        way: Way,
        base: &Value,
        pointer: &str,
        value: Option<&Value>,
    ) -> Result<(), ChangeError> {
        let wanted = replaced(base, pointer, value);
        let wanted = wanted.ok_or(ChangeError::NoPlace)?;
        let checker = &self.terrain.checker;
        let wanted = match checker.errors(&wanted, None).into_iter().next() {
            None => wanted,
            // Other values may have to change with it.
            Some(error) => checker
                .near(wanted, pointer)
                .ok_or(ChangeError::Invalid(error))?,
        };
        let (how, answer) = self.write(&wanted).await?;
        let after = content(&answer, &self.terrain.first);
        if after == self.current {
            return Err(ChangeError::Kept);
        }
        if let Some(decode) = &self.terrain.decode
            && let Err(error) = decode(&answer)
        {
            let what = described(property, way, value);
            self.route.unreadable.push((what, error.to_string()));
        }
        let before = std::mem::replace(&mut self.current, after.clone());
        self.route.changes.push(Change {
            property: property.to_string(),
            what: described(property, way, value),
            how,
            before,
            after,
        });
        Ok(())
    }

    async fn write(&self, wanted: &Value) -> Result<(How, Value), ChangeError> {
        let updated = self.subject.replace(&self.user, wanted).await;
        let refused = match updated {
            Ok(answer) => return Ok((How::Update, answer)),
            Err(error) => ChangeError::Refused(error),
        };
        // A rule about updates does not hold for a new object.
        let old = Some(&self.current);
        if self.terrain.checker.errors(wanted, old).is_empty() {
            return Err(refused);
        }
        let made = self.subject.make_anew(&self.user, wanted).await;
        made.map(|answer| (How::Anew, answer)).map_err(|_| refused)
    }
}

fn described(property: &Property, way: Way, value: Option<&Value>) -> String {
    let word = way.word();
    match (way, value) {
        (Way::Set(_) | Way::Add | Way::Exchange, Some(value)) => {
            format!(
                "{word} {property}: {}",
                crate::oracle::short(&value.to_string())
            )
        }
        _ => format!("{word} {property}"),
    }
}
