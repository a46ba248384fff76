//! What the scheduler looks up, and the events that it gets.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright_cache::{Event, Handler, Key, Kind, Reader};
use kubewright_runtime::Client;
use kubewright_runtime::client::{Informers, Registrations, TypedObject};
use tokio::sync::mpsc;

use super::SchedulerError;
use super::volumes::Storage;
use crate::controllers::volumes::objects::{BY_PLACE, free_of, place_index, promised_to};

/// What informers tell.
#[derive(Debug)]
pub(super) enum News {
    Pod(Key),
    Node(Key),
    Namespace(Key),
    Claim(Key),
    Volume(Key),
    /// A storage class changed.
    Class,
}

/// What is looked up.
pub(super) struct Stores {
    pub(super) pods: Reader<Pod>,
    pub(super) nodes: Reader<Node>,
    pub(super) namespaces: Reader<Namespace>,
    claims: Reader<PersistentVolumeClaim>,
    volumes: Reader<PersistentVolume>,
    classes: Reader<StorageClass>,
}

impl Storage for Stores {
    fn claim(&self, key: &Key) -> Option<Arc<PersistentVolumeClaim>> {
        self.claims.get(key)
    }

    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.get(&Key::cluster(name))
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.classes.get(&Key::cluster(name))
    }

    fn volumes_for(&self, class: &str, claim: &Key) -> Vec<Arc<PersistentVolume>> {
        // The first of many callers adds it; for the others it is there already.
        let _ = self.volumes.add_index(BY_PLACE, place_index());
        let places = [free_of(class), promised_to(claim)].into_iter();
        let found = places.filter_map(|place| self.volumes.by_index(BY_PLACE, &place).ok());
        found.flatten().collect()
    }
}

/// Passes keys on.
#[derive(Clone)]
struct Ear<F> {
    news: mpsc::Sender<News>,
    make: F,
}

impl<K: Send + Sync + 'static, F> Handler<K> for Ear<F>
where
    F: Fn(Key) -> News + Send + Sync + 'static,
{
    async fn handle(&mut self, event: Event<K>) {
        let news = (self.make)(event.object().key().clone());
        // An error means that the scheduler has stopped.
        let _ = self.news.send(news).await;
    }
}

/// Who listens to the informers.
pub(super) struct Listening {
    pub(super) news: mpsc::Sender<News>,
    pub(super) heard: Vec<Registrations>,
}

impl Listening {
    /// Listens to everything but pods. They come last: whoever hears of pods before nodes thinks that there is no room.
    pub(super) fn follow_surroundings(&mut self, client: &Client) -> Result<(), SchedulerError> {
        self.follow(&client.of::<Node>().informer(), News::Node)?;
        self.follow(&client.of::<Namespace>().informer(), News::Namespace)?;
        self.follow(
            &client.of::<PersistentVolumeClaim>().informer(),
            News::Claim,
        )?;
        self.follow(&client.of::<PersistentVolume>().informer(), News::Volume)?;
        self.follow(&client.of::<StorageClass>().informer(), |_| News::Class)
    }

    /// Listens to the changes of a kind.
    pub(super) fn follow<K: Kind>(
        &mut self,
        informer: &Informers<K>,
        make: fn(Key) -> News,
    ) -> Result<(), SchedulerError> {
        let ear = Ear {
            news: self.news.clone(),
            make,
        };
        let registration = informer.add_handler(ear);
        self.heard
            .push(registration.map_err(|_| SchedulerError::Stopped)?);
        Ok(())
    }
}

impl Stores {
    /// The stores, once they have a first state.
    pub(super) async fn filled(client: &Client) -> Result<Self, SchedulerError> {
        Ok(Self {
            pods: store(client).await?,
            nodes: store(client).await?,
            namespaces: store(client).await?,
            claims: store(client).await?,
            volumes: store(client).await?,
            classes: store(client).await?,
        })
    }
}

/// The store of a kind, once it has a first state.
pub(super) async fn store<K: TypedObject + Kind>(
    client: &Client,
) -> Result<Reader<K>, SchedulerError> {
    let informer = client.of::<K>().informer();
    informer.synced().await.map_err(SchedulerError::Watch)?;
    Ok(informer.reader())
}

/// All keys of a store.
pub(super) fn keys<K: Kind>(reader: &Reader<K>) -> Vec<Key> {
    let snapshot = reader.snapshot();
    snapshot.iter().map(|entry| entry.key().clone()).collect()
}
