//! Random lives of a store on disk: writes, closes, crashes and torn ends, against a map.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Action {
    Put {
        key: u8,
        value: u8,
    },
    Delete {
        key: u8,
    },
    Close,
    Crash,
    /// A crash in the middle of writing a record.
    Tear {
        bytes: u8,
    },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        10 => (0..5u8, 0..3u8).prop_map(|(key, value)| Action::Put { key, value }),
        3 => (0..5u8).prop_map(|key| Action::Delete { key }),
        1 => Just(Action::Close),
        1 => Just(Action::Crash),
        1 => (1..100u8).prop_map(|bytes| Action::Tear { bytes }),
    ];
    proptest::collection::vec(action, 1..60)
}

struct Life {
    dir: TempDir,
    options: OpenOptions,
    store: Store,
    model: Objects,
}

impl Life {
    fn new(image_after: u64) -> Self {
        let dir = TempDir::new().expect("there is room");
        let options = options().image_after(image_after);
        let (store, _) = open(dir.path(), options).expect("it is new");
        Self {
            dir,
            options,
            store,
            model: Objects::new(),
        }
    }

    async fn step(&mut self, action: Action) {
        let pods = self.store.collection("pods");
        match action {
            Action::Put { key, value } => {
                let (key, value) = (format!("ns/{key}"), value.to_string());
                let write = match self.model.get(&key) {
                    None => create(&key, &value),
                    Some(old) => update(&key, old.1, &value),
                };
                pods.commit_durable(write)
                    .await
                    .expect("the model knows the revision");
            }
            Action::Delete { key } => {
                let key = format!("ns/{key}");
                if let Some(old) = self.model.get(&key) {
                    pods.commit_durable(delete(&key, old.1))
                        .await
                        .expect("it is there");
                }
            }
            Action::Close => {
                self.store.close();
                let seen = self.store.revision();
                let recovery = self.reopen(None);
                assert_eq!((recovery.revision, recovery.truncated_bytes), (seen, 0));
            }
            Action::Crash => self.crash(0),
            Action::Tear { bytes } => self.crash(bytes),
        }
        self.model = objects(&self.store.collection("pods"));
    }

    fn crash(&mut self, torn: u8) {
        let copy = crash(self.dir.path());
        let last = files(copy.path(), "log-").pop().expect("there is a log");
        let mut bytes = fs::read(&last).expect("it exists");
        // A segment that has not got its first record yet is torn already; nothing else can follow there.
        let begun = bytes.len() as u64 >= segment::FIRST_RECORD;
        let torn = if begun { torn } else { 0 };
        bytes.extend(vec![0xff; torn.into()]);
        fs::write(&last, bytes).expect("there is room");
        let seen = self.store.revision();
        let recovery = self.reopen(Some(copy));
        assert!(recovery.revision > seen && !recovery.closed);
        assert_eq!(recovery.truncated_bytes, u64::from(torn));
    }

    /// What is there afterwards is what was there before.
    fn reopen(&mut self, dir: Option<TempDir>) -> Recovery {
        let path = dir.as_ref().unwrap_or(&self.dir).path();
        let (store, recovery) = open(path, self.options).expect("nothing is damaged");
        self.store = store;
        if let Some(dir) = dir {
            self.dir = dir;
        }
        assert_eq!(objects(&self.store.collection("pods")), self.model);
        recovery
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_life_begins_with_what_the_last_one_acknowledged(
        image_after in prop_oneof![Just(300u64), Just(3_000), Just(1 << 20)],
        actions in actions(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("it needs nothing").block_on(async {
            let mut life = Life::new(image_after);
            for action in actions {
                life.step(action).await;
            }
        });
    }
}
