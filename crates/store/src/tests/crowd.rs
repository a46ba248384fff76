//! Many readers of one collection.

use super::*;

const READERS: usize = 1_000;
const WRITES: u64 = 10_000;

/// Reads until the last write; each revision once and in order.
async fn follow(mut cursor: Cursor) {
    let mut batch = Vec::new();
    let mut expect = 2;
    while expect < 2 + WRITES {
        batch.clear();
        cursor
            .next_batch(&mut batch, 1_000)
            .await
            .expect("the history is long enough");
        for event in &batch {
            assert_eq!(event.revision(), expect);
            expect += 1;
        }
    }
    assert_eq!(cursor.progress(), 1 + WRITES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_each_see_every_write_once_and_in_order() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..READERS {
        readers.spawn(follow(pods.watch(1).unwrap()));
    }
    for i in 0..WRITES {
        pods.commit(create(&format!("ns/{i}"), "1")).unwrap();
        if i % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    while let Some(done) = readers.join_next().await {
        done.expect("a reader saw what it should");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_watches_meet_without_a_gap_while_others_write() {
    let (store, _) = store(HistoryLimits::default());
    let pods = store.collection("pods");
    let mut writers = tokio::task::JoinSet::new();
    for w in 0..4 {
        let pods = pods.clone();
        writers.spawn(async move {
            for i in 0..500 {
                let key = format!("w{w}/{}", i % 20);
                let write = match pods.get(&key) {
                    None => create(&key, "0"),
                    Some(old) if i % 7 == 0 => delete(&key, old.revision()),
                    Some(old) => update(&key, old.revision(), &i.to_string()),
                };
                pods.commit(write).expect("one writer per key");
                tokio::task::yield_now().await;
            }
        });
    }
    for _ in 0..50 {
        let first = pods.snapshot(At::Latest).unwrap();
        let mut cursor = pods.watch(first.revision()).unwrap();
        tokio::task::yield_now().await;
        let mut objects: std::collections::BTreeMap<String, u64> = first
            .range("", None)
            .map(|r| (r.key().to_owned(), r.revision()))
            .collect();
        let events = poll(&mut cursor, usize::MAX).unwrap();
        for event in &events {
            match event.change() {
                Change::Deleted { .. } => objects.remove(event.record().key()),
                _ => objects.insert(event.record().key().to_owned(), event.revision()),
            };
        }
        let reached = events.last().map_or(first.revision(), |e| e.revision());
        let then = pods.snapshot(At::Revision(reached)).unwrap();
        let expect = then
            .range("", None)
            .map(|r| (r.key().to_owned(), r.revision()));
        assert_eq!(objects, expect.collect());
    }
    while let Some(done) = writers.join_next().await {
        done.expect("a writer did what it should");
    }
}
