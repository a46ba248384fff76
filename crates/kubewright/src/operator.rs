//! The program of an operator: flags, logs, and a manager with everything that is registered.

mod certificates;
mod flags;
mod own;
mod pod;
mod start;

use std::ffi::OsString;
use std::io::Write;

use kubewright_runtime::webhook::Webhooks;
use kubewright_runtime::{Error, Manager, States};

use crate::registered::{self, RegisteredController};
use flags::{Flags, Task};
use own::OwnFlags;

type Adjust = Box<dyn FnOnce(Manager) -> Manager + Send>;

/// An operator, made of what is registered. See [`operator!`](crate::operator).
#[must_use = "an operator does nothing until it runs"]
pub struct Operator {
    name: &'static str,
    version: &'static str,
    domain: Option<String>,
    own: Vec<OwnFlags>,
    webhooks: Webhooks,
    adjust: Vec<Adjust>,
}

impl Operator {
    /// An operator of this name: in its events, its logs and its lease.
    pub fn new(name: &'static str, version: &'static str) -> Self {
        Self {
            name,
            version,
            domain: None,
            own: Vec::new(),
            webhooks: Webhooks::new(),
            adjust: Vec::new(),
        }
    }

    /// The domain of its kinds, which makes the name of its lease one of its own.
    pub fn domain(mut self, domain: &str) -> Self {
        self.domain = Some(domain.to_owned());
        self
    }

    /// Adds flags of the operator's own to its command line and its `--help`: a struct that derives `clap::Args`, with the version 4
    /// of clap.
    ///
    /// What the command line says becomes a [state](Manager::state) of the manager: reconcilers get it with
    /// [`Context::state`](crate::Context::state), webhooks with [`Request::state`](crate::webhook::Request::state), and functions
    /// that make a [controller](macro@crate::controller) as a parameter. A flag that every operator has is an error at the start.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Service;
    /// # use kubewright::prelude::*;
    /// #[derive(clap::Args)]
    /// struct Flags {
    ///     /// The zone that names are registered in
    ///     #[arg(long, default_value = "example.com")]
    ///     zone: String,
    ///     /// How many Services are registered at once
    ///     #[arg(long, default_value_t = 4)]
    ///     registrations: usize,
    /// }
    ///
    /// struct Names;
    ///
    /// impl Reconciler<Service> for Names {
    ///     async fn reconcile(&self, service: Arc<Service>, cx: &Context) -> Result<Outcome> {
    ///         let zone = &cx.state::<Flags>()?.zone;
    ///         tracing::info!(zone, name = service.metadata.name, "registered");
    ///         Ok(Outcome::done())
    ///     }
    /// }
    ///
    /// #[kubewright::controller]
    /// fn names(flags: Option<&Flags>) -> Controller {
    ///     let workers = flags.map_or(1, |flags| flags.registrations);
    ///     Controller::of::<Service>("names").workers(workers).reconciler(Names)
    /// }
    ///
    /// fn main() -> kubewright::Result {
    ///     kubewright::operator!().arguments::<Flags>().run()
    /// }
    /// ```
    pub fn arguments<A: clap::Args + Send + Sync + 'static>(mut self) -> Self {
        self.own.push(OwnFlags::of::<A>());
        self
    }

    /// Webhooks beside those that are registered: such as need something that a function has not at hand.
    pub fn webhooks(mut self, webhooks: Webhooks) -> Self {
        self.webhooks = self.webhooks.and(webhooks);
        self
    }

    /// Changes the manager before it runs: more runnables, more checks, other limits.
    pub fn manager(mut self, adjust: impl FnOnce(Manager) -> Manager + Send + 'static) -> Self {
        self.adjust.push(Box::new(adjust));
        self
    }

    /// The name of its lease. The same for as long as name and domain are.
    pub fn lease_name(&self) -> String {
        start::lease_name(self.name, self.domain.as_deref())
    }

    /// Reads the command line of the process and does what it says, until a signal.
    ///
    /// # Errors
    /// When the operator could not start, or a part of it failed.
    pub fn run(self) -> crate::Result {
        self.run_with(std::env::args_os(), std::env::var("WATCH_NAMESPACE").ok())
    }

    fn run_with(
        self,
        arguments: impl IntoIterator<Item = OsString>,
        watched: Option<String>,
    ) -> crate::Result {
        match flags::parse((self.name, self.version), &self.own, arguments, watched) {
            // Says what is wrong, or helps, and ends the process as people expect.
            Err(error) => error.exit(),
            Ok(Task::Inventory) => print_inventory(),
            Ok(Task::Run(flags, own)) => self.serve(&flags, &own),
        }
    }

    fn serve(self, flags: &Flags, given: &States) -> crate::Result {
        start::log(flags)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let ended = runtime.block_on(async {
            let lease = self.lease_name();
            let names = (self.name, self.version);
            let (mut manager, own) = start::manager(names, &lease, flags).await?;
            manager = manager.with_states(given);
            let webhooks = registered::webhooks().and(self.webhooks);
            manager = start::serve_webhooks(manager, webhooks, own, flags).await?;
            for adjust in self.adjust {
                manager = adjust(manager);
            }
            for controller in controllers(manager.states())? {
                manager = controller.add_to(manager);
            }
            Ok(manager.run().await?)
        });
        // What was to finish has had its time; a thread that is blocked must not keep the process.
        runtime.shutdown_background();
        ended
    }
}

/// The registered controllers, each with a name of its own: logs, metrics and events tell them apart by it.
fn controllers(given: &States) -> crate::Result<Vec<RegisteredController>> {
    let controllers = registered::controllers(given);
    match controllers
        .windows(2)
        .find(|pair| pair[0].name() == pair[1].name())
    {
        None => Ok(controllers),
        Some(pair) => Err(Error::msg(format!(
            "two controllers are called {}",
            pair[0].name()
        ))),
    }
}

fn print_inventory() -> crate::Result {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &registered::try_inventory()?)?;
    Ok(out.write_all(b"\n")?)
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Operator({} {})", self.name, self.version)
    }
}

/// The operator of this crate: its name and version, and all that is registered in it.
///
/// ```no_run
/// fn main() -> kubewright::Result {
///     kubewright::operator!().run()
/// }
/// ```
#[macro_export]
macro_rules! operator {
    () => {
        $crate::Operator::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    };
}
