//! The registered controllers, of whatever requests they are.

use std::fmt;

use kubewright_runtime::watch::Subject;
use kubewright_runtime::{Controller, Manager, Request, States};

/// A controller. Made by `#[kubewright::controller]`.
#[derive(Debug)]
#[doc(hidden)]
pub struct ControllerEntry(fn(&States) -> RegisteredController);

impl ControllerEntry {
    pub const fn new(make: fn(&States) -> RegisteredController) -> Self {
        Self(make)
    }
}

inventory::collect!(ControllerEntry);

/// Every registered controller, made anew, sorted by name. Functions with parameters get those that are in `given`.
pub fn controllers(given: &States) -> Vec<RegisteredController> {
    let made = inventory::iter::<ControllerEntry>.into_iter();
    let mut controllers: Vec<RegisteredController> = made.map(|entry| (entry.0)(given)).collect();
    controllers.sort_by(|a, b| a.name().cmp(b.name()));
    controllers
}

/// A controller that is registered, of whatever requests.
pub struct RegisteredController(Box<dyn Erased>);

/// A [`Controller`] without the type of its requests.
trait Erased: Send {
    fn name(&self) -> &str;
    fn kinds(&self) -> &[Subject];
    fn cluster(&self) -> Option<&str>;
    fn add_to(self: Box<Self>, manager: Manager) -> Manager;
}

impl<R: Request> Erased for Controller<R> {
    fn name(&self) -> &str {
        self.name()
    }

    fn kinds(&self) -> &[Subject] {
        self.kinds()
    }

    fn cluster(&self) -> Option<&str> {
        self.cluster()
    }

    fn add_to(self: Box<Self>, manager: Manager) -> Manager {
        manager.controller(*self)
    }
}

impl RegisteredController {
    /// The name of the controller.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The kinds that it reconciles, owns and watches.
    pub fn kinds(&self) -> &[Subject] {
        self.0.kinds()
    }

    /// The name of the further cluster whose objects it reconciles; none for the manager's own.
    pub fn cluster(&self) -> Option<&str> {
        self.0.cluster()
    }

    /// Adds it to those that a manager runs.
    pub fn add_to(self, manager: Manager) -> Manager {
        self.0.add_to(manager)
    }
}

impl<R: Request> From<Controller<R>> for RegisteredController {
    fn from(controller: Controller<R>) -> Self {
        Self(Box::new(controller))
    }
}

impl fmt::Debug for RegisteredController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegisteredController({})", self.name())
    }
}
