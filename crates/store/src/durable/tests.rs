//! Tests of what is on disk: what comes back after a close, a crash, a torn write, damage.

mod damage;
mod lives;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::environment::Environment;
use crate::state::State;
use crate::tests::{Hand, create, delete, update};
use crate::{At, Collection, CommitError, Expired, Store};

/// Key to uid, revision, creation and body.
type Objects = BTreeMap<String, (String, u64, u64, Vec<u8>)>;

fn options() -> OpenOptions {
    OpenOptions::default().fsync(Fsync::Never)
}

fn open(path: &Path, options: OpenOptions) -> Result<(Store, Recovery), OpenError> {
    Store::open(path, options, environment())
}

fn environment() -> Environment {
    Environment::seeded(Hand::default(), 7)
}

fn objects(collection: &Collection) -> Objects {
    let now = collection
        .snapshot(At::Latest)
        .expect("the latest is known");
    now.range("", None)
        .map(|r| {
            let content = (
                r.uid().to_owned(),
                r.revision(),
                r.create_revision(),
                r.body().to_vec(),
            );
            (r.key().to_owned(), content)
        })
        .collect()
}

/// A small history; what each revision looked like.
async fn write_history(store: &Store) -> BTreeMap<u64, Objects> {
    let pods = store.collection("pods");
    let at = |store: &Store| (store.revision(), objects(&store.collection("pods")));
    let mut past = BTreeMap::from([at(store)]);
    for value in 0..3 {
        for key in ["ns/a", "ns/b"] {
            let write = match pods.get(key) {
                None => create(key, "first"),
                Some(old) => update(key, old.revision(), &value.to_string()),
            };
            pods.commit_durable(write).await.expect("the disk works");
            past.extend([at(store)]);
        }
    }
    let last = pods.get("ns/a").expect("it was written");
    let gone = delete("ns/a", last.revision());
    pods.commit_durable(gone).await.expect("the disk works");
    past.extend([at(store)]);
    past
}

/// The directory as a crash at this moment would leave it. A copy that was taken while files came and went is not what
/// any crash leaves, so it is taken again.
fn crash(path: &Path) -> TempDir {
    loop {
        let before = files(path, "");
        let copy = TempDir::new().expect("there is room");
        let copied = before.iter().try_for_each(|file| {
            let name = file.file_name().expect("files have names");
            fs::copy(file, copy.path().join(name)).map(|_| ())
        });
        if copied.is_ok() && files(path, "") == before {
            return copy;
        }
    }
}

fn files(path: &Path, prefix: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(path).expect("it exists").flatten();
    let mut files: Vec<_> = files
        .filter(|f| f.file_name().to_string_lossy().starts_with(prefix))
        .map(|f| f.path())
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_closed_store_continues_where_it_was() {
    for fsync in [
        Fsync::Always,
        Fsync::Interval(Duration::from_millis(1)),
        Fsync::Never,
    ] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("data");
        let options = options().fsync(fsync);
        let (store, recovery) = open(&path, options).unwrap();
        assert_eq!((recovery.revision, recovery.closed), (1, true));
        let past = write_history(&store).await;
        let (revision, expect) = past.last_key_value().unwrap();
        store.close();
        let refused = store.collection("pods").commit(create("late", "1"));
        assert!(matches!(refused, Err(CommitError::ReadOnly { .. })));
        drop(store);
        let (store, recovery) = open(&path, options).unwrap();
        assert_eq!((recovery.revision, recovery.closed), (*revision, true));
        assert_eq!((recovery.records, recovery.objects), (7, 1));
        let pods = store.collection("pods");
        assert_eq!(&objects(&pods), expect);
        assert!(pods.watch(*revision).is_ok(), "nothing came later");
        let oldest = *revision;
        assert_eq!(pods.watch(revision - 1).unwrap_err(), Expired { oldest });
    }
}

#[tokio::test]
async fn after_a_crash_everything_acknowledged_is_there_and_revisions_jump() {
    let dir = TempDir::new().unwrap();
    let (store, _) = open(dir.path(), options()).unwrap();
    let past = write_history(&store).await;
    let (seen, expect) = past.last_key_value().unwrap();
    let copy = crash(dir.path());
    let (after, recovery) = open(copy.path(), options()).unwrap();
    assert!(!recovery.closed && recovery.truncated_bytes == 0);
    assert_eq!(&objects(&after.collection("pods")), expect);
    assert!(recovery.revision > *seen && after.revision() == recovery.revision);
    for lost in [*seen, recovery.revision - 1] {
        assert!(after.collection("pods").watch(lost).is_err());
    }
}

#[tokio::test]
async fn a_log_torn_at_any_byte_gives_all_whole_records_and_no_other() {
    let dir = TempDir::new().unwrap();
    let (store, _) = open(dir.path(), options()).unwrap();
    let past = write_history(&store).await;
    let whole = fs::read(&files(dir.path(), "log-")[0]).unwrap();
    let mut states = Vec::new();
    for cut in 0..=whole.len() {
        let torn = TempDir::new().unwrap();
        let path = torn
            .path()
            .join(files(dir.path(), "log-")[0].file_name().unwrap());
        fs::write(&path, &whole[..cut]).unwrap();
        let (store, recovery) = open(torn.path(), options()).unwrap();
        let found = objects(&store.collection("pods"));
        let expect = past.values().nth(recovery.records as usize);
        assert_eq!(Some(&found), expect, "cut at {cut}");
        assert!(store.revision() > recovery.records);
        let kept = fs::metadata(&path).map_or(0, |m| m.len());
        if cut as u64 >= segment::FIRST_RECORD {
            assert_eq!(kept + recovery.truncated_bytes, cut as u64);
            assert!(recovery.revision > *past.last_key_value().unwrap().0);
        }
        states.push(recovery.records);
        drop(store);
        let (store, recovery) = open(torn.path(), options()).unwrap();
        assert_eq!(recovery.truncated_bytes, 0, "cut for good");
        assert_eq!(objects(&store.collection("pods")), found);
    }
    assert!(states.is_sorted());
    assert_eq!(states.last(), Some(&7));
}

#[tokio::test]
async fn damage_that_no_crash_can_do_refuses_to_start_and_names_the_place() {
    let dir = TempDir::new().unwrap();
    for _ in 0..2 {
        let (store, _) = open(dir.path(), options()).unwrap();
        let key = format!("k{}", store.revision());
        store
            .collection("pods")
            .commit_durable(create(&key, "1"))
            .await
            .unwrap();
    }
    let segments = files(dir.path(), "log-");
    let first_record = segment::FIRST_RECORD;
    let check = |file: &PathBuf, byte: u64, offset: u64| {
        let copy = crash(dir.path());
        let path = copy.path().join(file.file_name().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        bytes[byte as usize] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let error = open(copy.path(), options()).unwrap_err();
        let expect = format!("{} is damaged at byte {offset}: ", path.display());
        assert!(error.to_string().starts_with(&expect), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "evidence stays");
    };
    check(&segments[0], 3, 0);
    check(&segments[0], first_record + 20, first_record);
    let end = fs::metadata(&segments[0]).unwrap().len() - 1;
    check(&segments[0], end, end + 1 - 17);
    check(&segments[1], 3, 0);
    // The last segment was closed, so nothing of it can be torn.
    let previous_record = 17;
    check(
        &segments[1],
        first_record + 20,
        first_record + previous_record,
    );

    let copy = crash(dir.path());
    fs::remove_file(copy.path().join(segments[0].file_name().unwrap())).unwrap();
    let error = open(copy.path(), options()).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }), "{error}");
}

#[tokio::test]
async fn images_replace_the_log_before_them() {
    let dir = TempDir::new().unwrap();
    let options = options().image_after(2_000);
    let (store, _) = open(dir.path(), options).unwrap();
    let (pods, foos) = (store.collection("pods"), store.collection("ex.io/foos"));
    for round in 0..40 {
        for collection in [&pods, &foos] {
            let key = format!("ns/{}", round % 7);
            let write = match collection.get(&key) {
                None => create(&key, "new"),
                Some(old) if round % 5 == 0 => delete(&key, old.revision()),
                Some(old) => update(&key, old.revision(), &round.to_string()),
            };
            collection.commit_durable(write).await.unwrap();
        }
        let copy = crash(dir.path());
        let (after, _) = open(copy.path(), options).unwrap();
        assert_eq!(objects(&after.collection("pods")), objects(&pods));
        assert_eq!(objects(&after.collection("ex.io/foos")), objects(&foos));
    }
    let expect = (objects(&pods), objects(&foos));
    drop((pods, foos, store));
    assert!(
        files(dir.path(), "image-").len() == 1,
        "older ones are gone"
    );
    assert!(
        files(dir.path(), "log-").len() <= 2,
        "{:?}",
        files(dir.path(), "log-")
    );
    let (store, _) = open(dir.path(), options).unwrap();
    let (pods, foos) = (store.collection("pods"), store.collection("ex.io/foos"));
    assert_eq!((objects(&pods), objects(&foos)), expect);
    drop((pods, foos, store));
    let image = files(dir.path(), "image-").remove(0);
    let length = fs::metadata(&image).unwrap().len();
    fs::File::options()
        .write(true)
        .open(&image)
        .unwrap()
        .set_len(length - 1)
        .unwrap();
    let error = open(dir.path(), options).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn many_openings_do_not_pile_up_segments() {
    let dir = TempDir::new().unwrap();
    for _ in 0..40 {
        let (store, _) = open(dir.path(), options()).unwrap();
        store.close();
    }
    assert!(files(dir.path(), "log-").len() <= 18);
}

#[test]
fn a_directory_has_one_store_at_a_time() {
    let dir = TempDir::new().unwrap();
    let first = open(dir.path(), options()).unwrap();
    let error = open(dir.path(), options()).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(first);
    assert!(open(dir.path(), options()).is_ok());
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("deep/data");
    let (store, _) = open(&path, options().image_after(1)).unwrap();
    write_history(&store).await;
    drop(store);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert!(files(&path, "").len() >= 3);
    for file in files(&path, "") {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

/// A store whose writing thread has not been started.
fn unstarted(path: &Path, prepare: impl FnOnce(&mut writer::Writer)) -> Store {
    let recovered = recover(path, &options(), 1).unwrap();
    let journal = Journal::open(recovered, &options()).unwrap();
    prepare(journal.writer.lock().as_mut().unwrap());
    let state = State::new(1, [], HistoryLimits::default());
    Store::from_state(state, environment(), Some(journal))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_makes_the_store_read_only_and_says_so() {
    let dir = TempDir::new().unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let store = unstarted(dir.path(), |writer| writer.segment.file = full);
    store.start_journal().unwrap();
    let pods = store.collection("pods");
    let error = pods.commit_durable(create("a", "1")).await.unwrap_err();
    assert!(matches!(error, CommitError::NotDurable(_)), "{error}");
    let error = pods.commit_durable(create("b", "1")).await.unwrap_err();
    assert!(matches!(error, CommitError::ReadOnly { .. }), "{error}");
    assert!(
        store
            .failure()
            .is_some_and(|why| why.contains("No space left"))
    );
    assert!(pods.get("a").is_some(), "what was visible stays visible");
    assert!(pods.get("b").is_none());
}

#[tokio::test]
async fn no_revision_is_handed_out_beyond_the_reservation() {
    let dir = TempDir::new().unwrap();
    let store = unstarted(dir.path(), |_| {});
    let pods = store.collection("pods");
    let mut done = 0;
    let error = loop {
        match pods.commit(create(&format!("k{done}"), "1")) {
            Ok(_) => done += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CommitError::Busy), "{error}");
    assert_eq!(done, journal::BLOCK);
    let (waited, ()) = tokio::join!(pods.commit_durable(create("one more", "1")), async {
        store.start_journal().unwrap();
    });
    assert_eq!(waited.unwrap().record.revision(), 2 + journal::BLOCK);
    assert!(store.failure().is_none());
}
