//! Puts deltas into a store and says what each of them is, in the words of client-go.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_cache::delta::Delta;
use kubewright_cache::{Reader, store};
use tokio::sync::Notify;

/// A store of ConfigMaps that prints what is put into it.
#[derive(Debug)]
pub struct PrintingStore {
    writer: store::Writer,
    reader: Reader<ConfigMap>,
    listed: Arc<Notify>,
}

impl Default for PrintingStore {
    fn default() -> Self {
        let (writer, reader) = store::new();
        Self {
            writer,
            reader,
            listed: Arc::default(),
        }
    }
}

impl PrintingStore {
    /// The reading end of the store.
    pub fn reader(&self) -> Reader<ConfigMap> {
        self.reader.clone()
    }

    /// Is notified when everything has been listed.
    pub fn listed(&self) -> Arc<Notify> {
        self.listed.clone()
    }

    /// Applies one delta.
    pub fn process(&mut self, delta: Delta) {
        match delta {
            Delta::Replace {
                objects,
                resource_version,
            } => {
                for object in &objects {
                    println!("Replaced: {}", object.key().name());
                }
                for object in self.writer.replace(objects, &resource_version).removed {
                    println!("Deleted: {}", object.key().name());
                }
                self.listed.notify_one();
            }
            Delta::Apply(object) => {
                let name = object.key().name().to_owned();
                match self.writer.put(object) {
                    None => println!("Added: {name}"),
                    Some(_) => println!("Updated: {name}"),
                }
            }
            Delta::Delete(object) => {
                println!("Deleted: {}", object.key().name());
                self.writer.remove(object.key());
            }
            _ => {}
        }
    }
}

/// Prints everything that is in a store every 200 ms. The server is not asked.
pub async fn sync(reader: Reader<ConfigMap>) {
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        for key in reader.keys() {
            println!("Sync: {}", key.name());
        }
    }
}
