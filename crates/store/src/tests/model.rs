//! Random histories against a model: a map per collection and a list of everything that happened.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const COLLECTIONS: [&str; 2] = ["pods", "ex.io/foos"];

#[derive(Debug, Clone)]
enum Action {
    Put {
        collection: usize,
        key: u8,
        value: u8,
    },
    Delete {
        collection: usize,
        key: u8,
    },
    List {
        collection: usize,
        back: u64,
    },
    Page {
        collection: usize,
        limit: usize,
    },
    Watch {
        collection: usize,
        back: u64,
    },
    Read {
        watcher: usize,
        max: usize,
    },
    Compact {
        back: u64,
    },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let collection = || 0..COLLECTIONS.len();
    let action = prop_oneof![
        8 => (collection(), 0..6u8, 0..3u8)
            .prop_map(|(collection, key, value)| Action::Put { collection, key, value }),
        3 => (collection(), 0..6u8).prop_map(|(collection, key)| Action::Delete { collection, key }),
        2 => (collection(), 0..30u64).prop_map(|(collection, back)| Action::List { collection, back }),
        2 => (collection(), 1..4usize).prop_map(|(collection, limit)| Action::Page { collection, limit }),
        2 => (collection(), 0..30u64).prop_map(|(collection, back)| Action::Watch { collection, back }),
        4 => (0..8usize, 1..9usize).prop_map(|(watcher, max)| Action::Read { watcher, max }),
        1 => (0..20u64).prop_map(|back| Action::Compact { back }),
    ];
    proptest::collection::vec(action, 1..120)
}

/// What one event looked like: revision, kind, key, body.
type Seen = (u64, &'static str, String, String);
/// Key to revision and body.
type Objects = BTreeMap<String, (u64, String)>;

/// Everything that ever happened; nothing is forgotten here.
#[derive(Default)]
struct Model {
    objects: [Objects; 2],
    events: [Vec<Seen>; 2],
    /// Every collection after every revision.
    past: BTreeMap<u64, [Objects; 2]>,
    /// How many events may be remembered, and what was compacted.
    limit: usize,
    compacted: u64,
}

impl Model {
    /// The last event of a collection that must be forgotten by now.
    fn trimmed(&self, collection: usize) -> u64 {
        let latest = self.past.keys().next_back().copied().unwrap_or(1);
        let oldest_kept = (latest + 1)
            .saturating_sub(self.limit as u64)
            .max(self.compacted + 1);
        let forgotten = self.events[collection].iter().rfind(|e| e.0 < oldest_kept);
        forgotten.map_or(0, |e| e.0)
    }

    /// The oldest revision of a collection that must be known: no more and no less.
    fn oldest(&self, collection: usize) -> u64 {
        self.trimmed(collection).max(self.compacted)
    }
}

struct Watcher {
    collection: usize,
    from: u64,
    cursor: Cursor,
    read: Vec<Seen>,
}

/// A list that is read page by page while others write.
struct Pages {
    collection: usize,
    revision: u64,
    last: Option<String>,
    read: Objects,
}

struct Run {
    store: Store,
    collections: [Collection; 2],
    model: Model,
    watchers: Vec<Watcher>,
    pages: Vec<Pages>,
}

fn objects(records: impl Iterator<Item = Arc<Record>>) -> Objects {
    let pair = |r: Arc<Record>| {
        (
            r.key().to_owned(),
            (r.revision(), text(r.body()).to_owned()),
        )
    };
    records.map(pair).collect()
}

fn seen(event: &Event) -> Seen {
    let delivery = event.delivery(|_| true).expect("everything matches");
    let record = event.record();
    let frame = event.frame(delivery);
    let body = format!(
        "{{\"type\":\"{}\",\"object\":{}}}\n",
        delivery.as_str(),
        text(record.body())
    );
    assert_eq!(text(&frame), body);
    (
        event.revision(),
        delivery.as_str(),
        record.key().to_owned(),
        text(record.body()).to_owned(),
    )
}

impl Run {
    fn new(limit: usize) -> Self {
        let (store, _) = store(HistoryLimits::default().events(limit));
        let model = Model {
            past: [(1, Default::default())].into(),
            limit,
            compacted: 1,
            ..Model::default()
        };
        Self {
            collections: COLLECTIONS.map(|name| store.collection(name)),
            store,
            model,
            watchers: Vec::new(),
            pages: Vec::new(),
        }
    }

    fn step(&mut self, action: Action) {
        match action {
            Action::Put {
                collection,
                key,
                value,
            } => self.put(collection, key, value),
            Action::Delete { collection, key } => self.delete(collection, key),
            Action::List { collection, back } => self.list(collection, back),
            Action::Page { collection, limit } => self.page(collection, limit),
            Action::Watch { collection, back } => self.watch(collection, back),
            Action::Read { watcher, max } => self.read(watcher, max),
            Action::Compact { back } => {
                let revision = self.store.revision().saturating_sub(back);
                self.store
                    .compact(revision)
                    .expect("the revision has been reached");
                self.model.compacted = self.model.compacted.max(revision);
            }
        }
        assert_eq!(
            Some((&self.store.revision(), &self.model.objects)),
            self.model.past.last_key_value()
        );
    }

    fn put(&mut self, collection: usize, key: u8, value: u8) {
        let (key, value) = (format!("ns/{key}"), value.to_string());
        let old = self.model.objects[collection].get(&key).cloned();
        let (write, kind) = match &old {
            None => (create(&key, &value), "ADDED"),
            Some((revision, _)) => (update(&key, *revision, &value), "MODIFIED"),
        };
        let done = self.collections[collection]
            .commit(write)
            .expect("the model knows the revision");
        let body = text(done.record.body()).to_owned();
        match done.effect {
            Effect::Unchanged => assert_eq!(Some((done.record.revision(), body)), old),
            Effect::Changed(_) => {
                assert_ne!(
                    old.map(|(_, body)| value_of(&body).to_owned()),
                    Some(value_of(&body).to_owned())
                );
                self.model.objects[collection]
                    .insert(key.clone(), (done.record.revision(), body.clone()));
                self.remember(collection, (done.record.revision(), kind, key, body));
            }
        }
    }

    fn delete(&mut self, collection: usize, key: u8) {
        let key = format!("ns/{key}");
        let Some((revision, _)) = self.model.objects[collection].remove(&key) else {
            let refused = self.collections[collection].commit(delete(&key, 1));
            assert!(refused.unwrap_err().is_not_found());
            return;
        };
        let done = self.collections[collection]
            .commit(delete(&key, revision))
            .expect("it is there");
        let body = text(done.record.body()).to_owned();
        self.remember(collection, (done.record.revision(), "DELETED", key, body));
    }

    fn remember(&mut self, collection: usize, event: Seen) {
        let latest = self
            .model
            .past
            .last_key_value()
            .map(|(revision, _)| *revision);
        assert_eq!(latest, Some(event.0 - 1), "revisions have no gaps");
        self.model.past.insert(event.0, self.model.objects.clone());
        self.model.events[collection].push(event);
    }

    fn list(&self, collection: usize, back: u64) {
        let revision = self.store.revision().saturating_sub(back);
        let known = self.model.oldest(collection);
        match self.collections[collection].snapshot(At::Revision(revision)) {
            Err(SnapshotError::Expired { oldest }) => {
                assert!(revision < oldest && oldest == known);
            }
            Err(SnapshotError::Future { .. }) => panic!("the past is not the future"),
            Ok(snapshot) => {
                for prefix in ["", "ns/"] {
                    let range = snapshot.range(prefix, None);
                    assert_eq!(snapshot.count(prefix), range.count());
                }
                let got = objects(snapshot.range("", None).cloned());
                assert_eq!(got, self.model.past[&revision][collection]);
            }
        }
    }

    /// Reads one page of the list that is under way, or begins one.
    fn page(&mut self, collection: usize, limit: usize) {
        let position = self.pages.iter().position(|p| p.collection == collection);
        let (mut pages, at) = match position.map(|i| self.pages.remove(i)) {
            Some(pages) => {
                let at = At::Revision(pages.revision);
                (pages, at)
            }
            None => {
                let revision = self.store.revision();
                (
                    Pages {
                        collection,
                        revision,
                        last: None,
                        read: Objects::new(),
                    },
                    At::Latest,
                )
            }
        };
        let Ok(snapshot) = self.collections[collection].snapshot(at) else {
            return; // Forgotten in the meantime; the reader begins again.
        };
        let page: Vec<_> = snapshot
            .range("ns/", pages.last.as_deref())
            .take(limit)
            .cloned()
            .collect();
        pages.last = page.last().map(|r| r.key().to_owned());
        let complete = page.len() < limit;
        pages.read.extend(objects(page.into_iter()));
        if complete {
            assert_eq!(pages.read, self.model.past[&pages.revision][collection])
        } else {
            self.pages.push(pages)
        }
    }

    fn watch(&mut self, collection: usize, back: u64) {
        let from = self.store.revision().saturating_sub(back);
        match self.collections[collection].watch(from) {
            Err(Expired { oldest }) => {
                assert!(from < oldest && oldest == self.model.oldest(collection));
            }
            Ok(cursor) if self.watchers.len() < 8 => {
                self.watchers.push(Watcher {
                    collection,
                    from,
                    cursor,
                    read: Vec::new(),
                });
            }
            Ok(_) => {}
        }
    }

    fn read(&mut self, watcher: usize, max: usize) {
        let Some(w) = self.watchers.get_mut(watcher) else {
            return;
        };
        let Ok(batch) = poll(&mut w.cursor, max) else {
            let last = w.read.last().map_or(w.from, |e| e.0);
            assert!(last < self.model.trimmed(w.collection));
            self.watchers.swap_remove(watcher);
            return;
        };
        assert!(batch.len() <= max);
        w.read.extend(batch.iter().map(|e| seen(e)));
        let all = self.model.events[w.collection]
            .iter()
            .filter(|e| e.0 > w.from);
        let expect: Vec<_> = all.take(w.read.len()).cloned().collect();
        assert_eq!(w.read, expect);
        let last = w.read.last().map_or(w.from, |e| e.0);
        let pending = self.model.events[w.collection].iter().any(|e| e.0 > last);
        let progress = if pending { last } else { self.store.revision() };
        assert_eq!(w.cursor.progress(), progress);
    }

    /// A watcher that did not expire gets everything in the end.
    fn finish(mut self) {
        for watcher in (0..self.watchers.len()).rev() {
            self.read(watcher, usize::MAX);
        }
        for w in &self.watchers {
            let expect = self.model.events[w.collection]
                .iter()
                .filter(|e| e.0 > w.from);
            assert_eq!(w.read, expect.cloned().collect::<Vec<_>>());
        }
        for back in 0..40 {
            self.list(0, back);
            self.list(1, back);
        }
    }
}

fn value_of(body: &str) -> &str {
    body.rsplit_once("value").map_or("", |(_, value)| value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_event_is_lost_doubled_or_out_of_order_and_no_list_mixes_versions(
        limit in prop_oneof![Just(5usize), Just(20), Just(1000)],
        actions in actions(),
    ) {
        let mut run = Run::new(limit);
        for action in actions {
            run.step(action);
        }
        run.finish();
    }
}
