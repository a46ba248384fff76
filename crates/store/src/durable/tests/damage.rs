//! Damage of every sort, against what was written: it is noticed, named and rescued from, or it did no harm.

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// What happened to the files.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// One bit of one byte.
    Flip,
    /// A few bytes are others.
    Scribble,
    Truncate,
    Empty,
    Remove,
    /// Two files have each other's content.
    Swap,
}

const FAULTS: [Fault; 6] = [
    Fault::Flip,
    Fault::Scribble,
    Fault::Truncate,
    Fault::Empty,
    Fault::Remove,
    Fault::Swap,
];

/// A store on disk, and all that was ever acknowledged of it.
struct Written {
    dir: TempDir,
    /// Every version of every key that there was, in order.
    versions: BTreeMap<String, Vec<Version>>,
    now: Objects,
    revision: u64,
}

/// One version of an object; none once it is deleted.
type Version = Option<(String, u64, u64, Vec<u8>)>;

fn forced() -> OpenOptions {
    options().fsync(Fsync::Always)
}

/// Some lives of a store, of which the last was closed or ended by a crash.
async fn written(seed: u64, image_after: u64) -> Written {
    let mut random = StdRng::seed_from_u64(seed);
    let mut dir = TempDir::new().expect("there is room");
    let mut versions: BTreeMap<String, Vec<Version>> = BTreeMap::new();
    let (mut now, mut revision) = (Objects::new(), 1);
    for _ in 0..random.random_range(1..4) {
        let (store, _) =
            open(dir.path(), forced().image_after(image_after)).expect("it is not damaged");
        let pods = store.collection("pods");
        for value in 0..random.random_range(1..40) {
            let key = format!("ns/{}", random.random_range(0..8));
            let value = format!("{value}{}", "x".repeat(random.random_range(0..200)));
            let write = match pods.get(&key) {
                None => create(&key, &value),
                Some(old) if random.random_range(0..4) == 0 => delete(&key, old.revision()),
                Some(old) => update(&key, old.revision(), &value),
            };
            pods.commit_durable(write).await.expect("the disk works");
            let version = objects(&pods).remove(&key);
            versions.entry(key).or_default().push(version);
        }
        (now, revision) = (objects(&pods), store.revision());
        if random.random_range(0..2) == 0 {
            dir = crash(dir.path());
        }
    }
    Written {
        dir,
        versions,
        now,
        revision,
    }
}

/// Does the damage to a file that holds content, and says which one. None if it changed nothing.
fn inflict(path: &Path, fault: Fault, random: &mut StdRng) -> Option<PathBuf> {
    let files: Vec<_> = files(path, "")
        .into_iter()
        .filter(|f| !f.ends_with("lock") && !f.file_name().is_some_and(is_torn_file))
        .collect();
    let file = &files[random.random_range(0..files.len())];
    let before = fs::read(file).expect("it exists");
    let mut bytes = before.clone();
    let at = random.random_range(0..bytes.len().max(1));
    match fault {
        Fault::Flip => *bytes.get_mut(at)? ^= 1 << random.random_range(0..8),
        Fault::Scribble => {
            let end = bytes.len().min(at + random.random_range(1..64));
            random.fill(&mut bytes[at..end]);
        }
        Fault::Truncate => bytes.truncate(at),
        Fault::Empty => bytes.clear(),
        Fault::Remove => {
            fs::remove_file(file).expect("it exists");
            return Some(file.clone());
        }
        Fault::Swap => {
            let other = &files[random.random_range(0..files.len())];
            bytes = fs::read(other).expect("it exists");
            fs::write(other, &before).expect("there is room");
        }
    }
    fs::write(file, &bytes).expect("there is room");
    (bytes != before).then(|| file.clone())
}

fn is_torn_file(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("torn-")
}

/// What became of a damaged store.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It was opened, and nothing is missing.
    Harmless,
    /// It was refused, and repaired on request.
    Rescued,
}

fn suffer(seed: u64, fault: Fault, image_after: u64) -> Fate {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let written = runtime
        .expect("it needs nothing")
        .block_on(written(seed, image_after));
    let mut random = StdRng::seed_from_u64(seed ^ 0x5eed);
    let path = written.dir.path();
    let Some(hurt) = inflict(path, fault, &mut random) else {
        return Fate::Harmless;
    };
    let case = format!("{fault:?} of {} with seed {seed}", hurt.display());
    let evidence = contents(path);
    let (error, kept) = match open(path, forced()) {
        Ok((store, recovery)) => {
            let found = objects(&store.collection("pods"));
            assert_eq!(found, written.now, "silent loss by {case}: {recovery:?}");
            assert!(
                recovery.revision >= written.revision,
                "{case}: {recovery:?}"
            );
            return Fate::Harmless;
        }
        Err(error) => (error, contents(path)),
    };
    assert_eq!(kept, evidence, "{case}");
    assert!(
        matches!(error, OpenError::Damaged { .. } | OpenError::Missing { .. }),
        "{case}: {error}"
    );
    let examination = examine(path).expect("it can be read");
    assert!(!examination.damage().is_empty(), "{case}: {error}");
    let promised = examination.objects();
    let repair = examination
        .repair()
        .expect("there is room")
        .expect("it is damaged");
    assert_eq!(contents(&repair.kept), evidence, "{case}");
    let (store, recovery) = open(path, forced()).unwrap_or_else(|e| panic!("{case}: {e}"));
    assert!(recovery.revision > written.revision, "{case}: {recovery:?}");
    let found = objects(&store.collection("pods"));
    assert_eq!(found.len(), promised, "{case}");
    written.check(&found, &evidence, (fault, &case));
    Fate::Rescued
}

/// The files with content, by name.
fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = files(path, "").into_iter();
    let names = files.filter(|file| file.is_file() && !file.ends_with("lock"));
    names
        .map(|file| {
            let name = file.file_name().expect("files have names");
            (
                name.to_string_lossy().into_owned(),
                fs::read(&file).expect("it exists"),
            )
        })
        .collect()
}

impl Written {
    /// Nothing is there that was never written. What differs from the last state is due to the bytes that are gone: as
    /// many records as the fault can have hit, or those whose bodies are in no file any more.
    fn check(
        &self,
        found: &Objects,
        evidence: &BTreeMap<String, Vec<u8>>,
        (fault, case): (Fault, &str),
    ) {
        for (key, content) in found {
            let versions = self.versions.get(key).into_iter().flatten();
            let mut contents = versions.flatten();
            assert!(contents.any(|known| known == content), "{key} was never so");
        }
        let lost = |key: &&String| found.get(*key) != self.now.get(*key);
        let lost: Vec<&String> = self.versions.keys().filter(lost).collect();
        let limit = match fault {
            Fault::Flip => 1,
            Fault::Scribble => 2,
            _ => usize::MAX,
        };
        assert!(lost.len() <= limit, "{lost:?} differ");
        if limit == usize::MAX {
            for (_, content) in self.now.iter().filter(|(key, _)| lost.contains(key)) {
                let body = &content.3;
                let there = |file: &Vec<u8>| file.windows(body.len()).any(|at| at == body);
                let there = evidence.iter().find(|(_, file)| there(file));
                let name = there.map(|(name, _)| name);
                assert_eq!(name, None, "has revision {} by {case}", content.1);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_damage_is_a_silent_loss_and_all_of_it_can_be_repaired(
        seed in 0..1_000_000u64,
        fault in 0..FAULTS.len(),
        image_after in prop_oneof![Just(600u64), Just(4_000), Just(1 << 20)],
    ) {
        suffer(seed, FAULTS[fault], image_after);
    }
}

#[tokio::test]
async fn acknowledged_writes_before_and_behind_a_flipped_bit_are_rescued() {
    let dir = TempDir::new().unwrap();
    let (store, _) = open(dir.path(), forced()).unwrap();
    let pods = store.collection("pods");
    for n in 0..200 {
        let write = create(&format!("ns/{n:03}"), "value");
        pods.commit_durable(write).await.unwrap();
    }
    let (expect, revision) = (objects(&pods), store.revision());
    let log = files(dir.path(), "log-").remove(0);
    let length = fs::metadata(&log).unwrap().len();
    let mut random = StdRng::seed_from_u64(7);
    for case in 0..40 {
        let copy = crash(dir.path());
        let path = copy.path().join(log.file_name().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        let at = random.random_range(0..length) as usize;
        bytes[at] ^= 1 << random.random_range(0..8);
        fs::write(&path, &bytes).unwrap();
        let error = open(copy.path(), forced()).unwrap_err();
        let OpenError::Damaged { offset, .. } = error else {
            panic!("{error}");
        };
        assert!(offset <= at as u64, "{error}");
        let examination = examine(copy.path()).unwrap();
        assert_eq!(examination.damage().len(), 1, "{:?}", examination.damage());
        assert_eq!(examination.damage()[0].offset, offset);
        let repair = examination.repair().unwrap().unwrap();
        assert!(repair.revision > revision);
        let (store, _) = open(copy.path(), forced()).unwrap();
        let found = objects(&store.collection("pods"));
        assert!(
            found.len() >= expect.len() - 1,
            "case {case}: one record is damaged"
        );
        assert!(
            found
                .iter()
                .all(|(key, content)| expect.get(key) == Some(content))
        );
    }
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_damaged_and_not_torn() {
    let dir = TempDir::new().unwrap();
    let (store, _) = open(dir.path(), forced()).unwrap();
    write_history(&store).await;
    let log = files(dir.path(), "log-").remove(0);
    let length = fs::metadata(&log).unwrap().len();
    for closed in [false, true] {
        if closed {
            store.close();
        }
        for cut in 0..length {
            let copy = crash(dir.path());
            let path = copy.path().join(log.file_name().unwrap());
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_len(cut).unwrap();
            let error = open(copy.path(), forced()).unwrap_err();
            assert!(matches!(error, OpenError::Damaged { .. }), "{cut}: {error}");
        }
    }
}

#[tokio::test]
async fn an_emptied_log_behind_an_image_is_damage() {
    for fsync in [Fsync::Always, Fsync::Never] {
        let dir = TempDir::new().unwrap();
        let options = options().fsync(fsync).image_after(1);
        let (store, _) = open(dir.path(), options).unwrap();
        let pods = store.collection("pods");
        for n in 0..1_000 {
            let write = create(&format!("ns/{n}"), "1");
            pods.commit_durable(write).await.unwrap();
            if !files(dir.path(), "image-0").is_empty() {
                break;
            }
        }
        drop((pods, store));
        assert_eq!(files(dir.path(), "image-0").len(), 1);
        // Without a watermark a later one may just have been begun when the end came.
        let certain = if fsync == Fsync::Never { 1 } else { usize::MAX };
        for log in files(dir.path(), "log-").into_iter().take(certain) {
            let copy = crash(dir.path());
            let path = copy.path().join(log.file_name().unwrap());
            fs::write(&path, b"").unwrap();
            let error = open(copy.path(), options).unwrap_err();
            let expect = format!("{} is damaged at byte 0: ", path.display());
            assert!(error.to_string().starts_with(&expect), "{error}");
        }
    }
}

#[test]
fn a_sound_store_needs_no_repair_and_a_missing_one_is_named() {
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("missing");
    assert!(matches!(examine(&missing), Err(OpenError::Missing { .. })));
    drop(open(dir.path(), forced()).unwrap());
    let before = contents(dir.path());
    let examination = examine(dir.path()).unwrap();
    assert!(examination.damage().is_empty());
    let in_use = open(dir.path(), forced()).unwrap_err();
    assert!(matches!(in_use, OpenError::InUse { .. }), "{in_use}");
    assert_eq!(examination.repair().unwrap(), None);
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn a_torn_end_is_kept_aside_until_an_image_replaces_its_segment() {
    let dir = TempDir::new().unwrap();
    let (store, _) = open(dir.path(), forced()).unwrap();
    write_history(&store).await;
    let copy = crash(dir.path());
    let log = files(copy.path(), "log-").remove(0);
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend([0xff; 30]);
    fs::write(&log, bytes).unwrap();
    let (store, recovery) = open(copy.path(), forced()).unwrap();
    assert_eq!(recovery.truncated_bytes, 30);
    let torn = files(copy.path(), "torn-").remove(0);
    assert_eq!(fs::read(&torn).unwrap(), [0xff; 30]);
    drop(store);
    let (store, _) = open(copy.path(), forced().image_after(1)).unwrap();
    let pods = store.collection("pods");
    // An image is written beside the log; the end of the store would call it off.
    for n in 0..1_000 {
        let write = create(&format!("ns/new-{n}"), "1");
        pods.commit_durable(write).await.unwrap();
        if files(copy.path(), "torn-").is_empty() {
            return;
        }
    }
    panic!("still there: {:?}", files(copy.path(), ""));
}

/// Set to run that many cases of each fault, as `KUBEWRIGHT_DAMAGE_CASES=2000` does before a release.
const CASES: &str = "KUBEWRIGHT_DAMAGE_CASES";

#[test]
fn damage_at_many_random_places() {
    let cases = std::env::var(CASES).ok().and_then(|n| n.parse().ok());
    for fault in FAULTS {
        let (mut harmless, mut rescued) = (0, 0);
        for seed in 0..cases.unwrap_or(20) {
            match suffer(seed, fault, [600, 4_000, 1 << 20][seed as usize % 3]) {
                Fate::Harmless => harmless += 1,
                Fate::Rescued => rescued += 1,
            }
        }
        println!("{fault:?}: {rescued} refused and repaired, {harmless} harmless");
        assert!(rescued > harmless, "{fault:?} is noticed as a rule");
    }
}
