//! Data directories whose log somebody else wrote: each is opened, or refused as damaged and then repaired, and what was
//! opened once opens again with the same objects.

use std::fs;
use std::path::Path;

use kubewright_server::storage::environment::Environment;
use kubewright_server::storage::{
    Draft, Fsync, OpenError, OpenOptions, Pairs, Recovery, Store, Write, durable,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Read, Verdict};

/// Objects in the directory that inputs are put into.
const WRITES: usize = 8;
/// Where files are in memory, on systems that have such a place: every repair forces its files to the disk.
const MEMORY: &str = "/dev/shm";

/// Segments of the log, each in the place of one that is sound.
pub(super) fn log() -> Read {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let files = sound(&runtime.expect("a runtime can be made"));
    Box::new(move |input| {
        let directory = directory();
        for (name, bytes) in &files {
            let is_log = name.starts_with("log-");
            let bytes = if is_log { input } else { bytes };
            fs::write(directory.path().join(name), bytes).expect("a file can be written");
        }
        opened_or_repaired(directory.path())
    })
}

/// The files of a directory in which nothing is wrong.
fn sound(runtime: &Runtime) -> Vec<(String, Vec<u8>)> {
    let directory = directory();
    let (store, _) = open(directory.path()).expect("a new store opens");
    let objects = store.collection("objects");
    for n in 0..WRITES {
        let key = format!("default/{n}");
        let write = Write::Create {
            key,
            draft: draft(),
        };
        let done = runtime.block_on(objects.commit_durable(write));
        done.expect("a write of a store that works succeeds");
    }
    drop(objects);
    store.close();
    let entries = fs::read_dir(directory.path()).expect("the directory can be read");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, fs::read(path).ok()?))
    };
    entries.filter_map(read).collect()
}

fn directory() -> TempDir {
    let in_memory = TempDir::new_in(MEMORY);
    in_memory
        .or_else(|_| TempDir::new())
        .expect("a directory can be made")
}

fn draft() -> Draft {
    let head = r#"{"metadata":{"name":"n","resourceVersion":""#;
    Draft {
        uid: "7c1d".into(),
        labels: [("app", "web")].into_iter().collect(),
        fields: Pairs::default(),
        body: format!(r#"{head}"}}}}"#).into_bytes(),
        version_at: head.len(),
    }
}

fn open(path: &Path) -> Result<(Store, Recovery), OpenError> {
    let options = OpenOptions::default().fsync(Fsync::Never);
    Store::open(path, options, Environment::system())
}

fn opened_or_repaired(path: &Path) -> Verdict {
    match open(path) {
        Ok((store, found)) => {
            store.close();
            drop(store);
            let (_, again) = open(path).expect("what was opened opens again");
            assert_eq!(again.objects, found.objects, "objects after a second start");
            assert!(again.revision >= found.revision, "no revision comes twice");
            Verdict::accepted(format!(
                "{} objects, {} records",
                found.objects, found.records
            ))
        }
        Err(error) if error.is_damage() => {
            let examined = durable::examine(path).expect("damage can be examined");
            let reason = examined.damage().first().map_or("", |damage| damage.reason);
            let repaired = examined.repair().expect("damage can be repaired");
            let repaired = repaired.expect("there was something to repair");
            let (_, found) = open(path).expect("what was repaired opens");
            assert_eq!(found.objects, repaired.objects, "objects after the repair");
            Verdict::refused(format!("{reason}, {} rescued", found.objects))
        }
        Err(error) => Verdict::refused(format!("{:?}", std::mem::discriminant(&error))),
    }
}
