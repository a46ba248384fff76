//! An informer of ConfigMaps that runs until the test ends.

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::{ListWatch, Scope, SharedInformer, reflector};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::wire::World;

pub(crate) struct Running {
    pub(crate) informer: SharedInformer<ConfigMap>,
    pub(crate) cancel: CancellationToken,
    pub(crate) tasks: JoinSet<()>,
}

pub(crate) fn source(world: &World) -> ListWatch {
    let scope = Scope::all().namespace("default");
    ListWatch::typed::<ConfigMap>(world.wire.client(), scope)
}

pub(crate) fn options() -> reflector::Options {
    reflector::Options::default().with_random(|| 0.5)
}

pub(crate) fn run(source: ListWatch, options: reflector::Options) -> Running {
    let informer = SharedInformer::new(source, options);
    start(informer)
}

pub(crate) fn start(informer: SharedInformer<ConfigMap>) -> Running {
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let (running, token) = (informer.clone(), cancel.clone());
    tasks.spawn(async move { running.run(token).await.expect("it runs once") });
    Running {
        informer,
        cancel,
        tasks,
    }
}
