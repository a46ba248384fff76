//! The server against a model of it: random writes, lists, pages, watches and compactions over HTTP, each answer
//! compared with what a map per revision says.

#[path = "attacks/call.rs"]
mod call;
#[path = "model/reference.rs"]
mod reference;

use call::{Ask, Frames, JSON, MERGE};
use futures::FutureExt;
use jiff::Timestamp;
use kubewright_server::{ApiService, Clock, Environment, Server};
use proptest::prelude::*;
use reference::{COLORS, Expected, Model, NAMES, Thing};
use serde_json::{Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";
const PATH: &str = "/api/v1/namespaces/model/configmaps";

/// One thing that a client does. Numbers are reduced to what exists when it happens.
#[derive(Debug, Clone)]
enum Step {
    Create(Thing),
    Update(Thing, Insists),
    Recolor {
        name: usize,
        color: usize,
    },
    Delete {
        name: usize,
        insists: Insists,
    },
    List {
        at: Option<u16>,
        exact: bool,
        color: Option<usize>,
    },
    Page {
        limit: usize,
        color: Option<usize>,
    },
    NextPage {
        page: usize,
    },
    Watch {
        from: u16,
        color: Option<usize>,
    },
    Drain {
        watcher: usize,
    },
    Compact {
        at: u16,
    },
}

/// Which version a writer insists on.
#[derive(Debug, Clone, Copy)]
enum Insists {
    No,
    OnTheCurrent,
    OnAnOldOne,
}

fn thing() -> impl Strategy<Value = Thing> {
    (0..NAMES.len(), 0..COLORS.len(), 0..4_u8).prop_map(|(name, color, value)| Thing {
        name,
        color,
        value,
        version: 0,
    })
}

fn insists() -> impl Strategy<Value = Insists> {
    prop_oneof![
        Just(Insists::No),
        Just(Insists::OnTheCurrent),
        Just(Insists::OnAnOldOne)
    ]
}

fn selector() -> impl Strategy<Value = Option<usize>> {
    proptest::option::of(1..COLORS.len())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => thing().prop_map(Step::Create),
        6 => (thing(), insists()).prop_map(|(thing, insists)| Step::Update(thing, insists)),
        4 => (0..NAMES.len(), 0..COLORS.len()).prop_map(|(name, color)| Step::Recolor { name, color }),
        4 => (0..NAMES.len(), insists()).prop_map(|(name, insists)| Step::Delete { name, insists }),
        3 => (any::<Option<u16>>(), any::<bool>(), selector())
            .prop_map(|(at, exact, color)| Step::List { at, exact, color }),
        3 => (1..4_usize, selector()).prop_map(|(limit, color)| Step::Page { limit, color }),
        4 => (0..4_usize).prop_map(|page| Step::NextPage { page }),
        3 => (any::<u16>(), selector()).prop_map(|(from, color)| Step::Watch { from, color }),
        4 => (0..4_usize).prop_map(|watcher| Step::Drain { watcher }),
        1 => any::<u16>().prop_map(|at| Step::Compact { at }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_server_does_what_a_map_per_revision_does(
        seed in any::<u64>(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut session = Session::start(seed).await;
            for step in steps {
                session.take(step).await;
            }
            session.finish().await;
        });
    }
}

/// The moment at which all of it happens.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).expect("a moment")
    }
}

/// A client, the server, and the model of it.
struct Session {
    server: Server,
    service: ApiService,
    model: Model,
    pages: Vec<Page>,
    watchers: Vec<Watcher>,
}

/// A list that is read page by page.
struct Page {
    token: String,
    limit: usize,
    color: Option<usize>,
    /// What is still to come, at the version of the first page.
    revision: u64,
    rest: Vec<Thing>,
}

struct Watcher {
    frames: Frames,
    color: Option<usize>,
    /// Everything up to here has been reported.
    seen: u64,
}

impl Session {
    async fn start(seed: u64) -> Self {
        let environment = Environment::seeded(Noon, seed);
        let server = Server::builder().environment(environment).start().await;
        let server = server.expect("starts");
        let service = server.service();
        let namespace = json!({"metadata": {"name": "model"}});
        let made = Ask::post(NAMESPACES, namespace).send(&service).await;
        assert_eq!(made.code, 201);
        Self {
            model: Model::new(server.revision()),
            server,
            service,
            pages: Vec::new(),
            watchers: Vec::new(),
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Create(thing) => self.create(thing).await,
            Step::Update(thing, insists) => self.update(thing, insists).await,
            Step::Recolor { name, color } => self.recolor(name, color).await,
            Step::Delete { name, insists } => self.delete(name, insists).await,
            Step::List { at, exact, color } => self.list(at, exact, color).await,
            Step::Page { limit, color } => self.page(limit, color).await,
            Step::NextPage { page } => self.next_page(page).await,
            Step::Watch { from, color } => self.watch(from, color).await,
            Step::Drain { watcher } => self.drain(watcher).await,
            Step::Compact { at } => {
                let at = self.model.pick(at);
                self.server.compact(at).expect("it has been reached");
                self.model.compact(at);
            }
        }
        assert_eq!(
            self.server.revision(),
            self.model.revision(),
            "no more and no fewer writes"
        );
    }

    async fn create(&mut self, thing: Thing) {
        let answer = Ask::post(PATH, object(&thing)).send(&self.service).await;
        let expected = match self.model.get(thing.name) {
            Some(_) => 409,
            None => 201,
        };
        assert_eq!(answer.code, expected, "{}", answer.text());
        if expected == 201 {
            let version = self.model.put(thing);
            assert_eq!(answer.resource_version(), version.to_string());
        }
    }

    async fn update(&mut self, thing: Thing, insists: Insists) {
        let old = self.model.get(thing.name);
        let mut body = object(&thing);
        if let Some(version) = self.version(old.as_ref(), insists) {
            body["metadata"]["resourceVersion"] = json!(version.to_string());
        }
        let path = format!("{PATH}/{}", NAMES[thing.name]);
        let answer = Ask::put(path, body).send(&self.service).await;
        self.changed(&answer, old, thing, insists);
    }

    async fn recolor(&mut self, name: usize, color: usize) {
        let old = self.model.get(name);
        let label = match COLORS[color] {
            "" => Value::Null,
            color => json!(color),
        };
        let patch = json!({"metadata": {"labels": {"color": label}}});
        let path = format!("{PATH}/{}", NAMES[name]);
        let answer = Ask::patch(path, MERGE, patch).send(&self.service).await;
        let new = old.clone().map(|old| Thing { color, ..old });
        let new = new.unwrap_or(Thing {
            name,
            color,
            value: 0,
            version: 0,
        });
        self.changed(&answer, old, new, Insists::No);
    }

    fn changed(&mut self, answer: &call::Answer, old: Option<Thing>, new: Thing, insists: Insists) {
        let Some(old) = old else {
            assert_eq!(answer.code, 404, "{}", answer.text());
            return;
        };
        if matches!(insists, Insists::OnAnOldOne) {
            assert_eq!(answer.code, 409, "{}", answer.text());
            return;
        }
        assert_eq!(answer.code, 200, "{}", answer.text());
        // What changes nothing takes no revision.
        let version = if (Thing {
            version: old.version,
            ..new.clone()
        }) == old
        {
            old.version
        } else {
            self.model.put(new)
        };
        assert_eq!(answer.resource_version(), version.to_string());
    }

    async fn delete(&mut self, name: usize, insists: Insists) {
        let old = self.model.get(name);
        let mut ask = Ask::delete(format!("{PATH}/{}", NAMES[name]));
        if let Some(version) = self.version(old.as_ref(), insists) {
            let options = json!({"preconditions": {"resourceVersion": version.to_string()}});
            ask = ask.body(JSON, options);
        }
        let answer = ask.send(&self.service).await;
        let expected = match (old, insists) {
            (None, _) => 404,
            (Some(_), Insists::OnAnOldOne) => 409,
            (Some(_), _) => 200,
        };
        assert_eq!(answer.code, expected, "{}", answer.text());
        if expected == 200 {
            self.model.remove(name);
        }
    }

    fn version(&self, old: Option<&Thing>, insists: Insists) -> Option<u64> {
        match insists {
            Insists::No => None,
            Insists::OnTheCurrent => Some(old.map_or(1, |old| old.version)),
            Insists::OnAnOldOne => Some(1),
        }
    }

    async fn list(&mut self, at: Option<u16>, exact: bool, color: Option<usize>) {
        let at = at.map(|at| self.model.pick(at));
        let rule = if exact { "Exact" } else { "NotOlderThan" };
        let version = at.map(|at| format!("&resourceVersion={at}&resourceVersionMatch={rule}"));
        let path = format!("{PATH}?{}{}", select(color), version.unwrap_or_default());
        let answer = Ask::get(path).send(&self.service).await;
        let revision = match at {
            Some(at) if exact => at,
            _ => self.model.revision(),
        };
        if answer.code == 410 {
            assert!(self.model.is_forgotten(revision), "{}", answer.text());
            return;
        }
        assert_eq!(answer.code, 200, "{}", answer.text());
        assert_eq!(answer.resource_version(), revision.to_string());
        assert_eq!(things(&answer.json()), self.model.list(revision, color));
    }

    async fn page(&mut self, limit: usize, color: Option<usize>) {
        let path = format!("{PATH}?limit={limit}&{}", select(color));
        let answer = Ask::get(path).send(&self.service).await;
        let revision = self.model.revision();
        let page = Page {
            token: String::new(),
            limit,
            color,
            revision,
            rest: self.model.list(revision, color),
        };
        self.turn(page, &answer);
    }

    async fn next_page(&mut self, page: usize) {
        if self.pages.is_empty() {
            return;
        }
        let page = self.pages.remove(page % self.pages.len());
        // The selector is not in the token; a client sends it again.
        let (limit, token, selector) = (page.limit, &page.token, select(page.color));
        let path = format!("{PATH}?limit={limit}&continue={token}&{selector}");
        let answer = Ask::get(path).send(&self.service).await;
        if answer.code == 410 {
            assert!(self.model.is_forgotten(page.revision), "{}", answer.text());
            return;
        }
        self.turn(page, &answer);
    }

    /// Compares a page with what is to come, and keeps the place of the next one.
    fn turn(&mut self, mut page: Page, answer: &call::Answer) {
        assert_eq!(answer.code, 200, "{}", answer.text());
        let list = answer.json();
        assert_eq!(
            answer.resource_version(),
            page.revision.to_string(),
            "one version for all pages"
        );
        let rest = page.rest.split_off(page.limit.min(page.rest.len()));
        assert_eq!(things(&list), page.rest);
        let token = list["metadata"]["continue"]
            .as_str()
            .unwrap_or("")
            .to_owned();
        assert_eq!(token.is_empty(), rest.is_empty());
        if !rest.is_empty() {
            self.pages.push(Page {
                token,
                rest,
                ..page
            });
        }
    }

    async fn watch(&mut self, from: u16, color: Option<usize>) {
        let from = self.model.pick(from);
        let path = format!("{PATH}?watch=1&resourceVersion={from}&{}", select(color));
        let mut frames = Frames::open(&self.service, path).await;
        if self.model.is_forgotten(from) {
            let event = frames.next().await.expect("an event");
            assert_eq!(event["object"]["code"], 410, "{event}");
            assert_eq!(frames.next().await, None);
        } else {
            self.watchers.push(Watcher {
                frames,
                color,
                seen: from,
            });
        }
    }

    async fn drain(&mut self, watcher: usize) {
        if self.watchers.is_empty() {
            return;
        }
        let mut watcher = self.watchers.remove(watcher % self.watchers.len());
        for expected in self.model.events(watcher.seen, watcher.color) {
            let event = watcher.frames.next().await.expect("no event is lost");
            if event["type"] == "ERROR" {
                assert_eq!(event["object"]["code"], 410, "{event}");
                assert!(self.model.is_forgotten(watcher.seen), "{event}");
                assert_eq!(watcher.frames.next().await, None);
                return;
            }
            assert_eq!(seen(&event), expected);
            watcher.seen = expected.revision;
        }
        if let Some(more) = watcher.frames.next().now_or_never() {
            // A watcher of nothing new may still have been left behind.
            let event = more.expect("the watch goes on");
            assert_eq!(
                event["object"]["code"], 410,
                "no event comes twice: {event}"
            );
            assert!(self.model.is_forgotten(watcher.seen), "{event}");
            return;
        }
        watcher.seen = self.model.revision();
        self.watchers.push(watcher);
    }

    async fn finish(&mut self) {
        for _ in 0..self.watchers.len() {
            self.drain(0).await;
        }
        while !self.pages.is_empty() {
            self.next_page(0).await;
        }
        self.list(None, false, None).await;
    }
}

fn select(color: Option<usize>) -> String {
    color.map_or_else(String::new, |color| {
        format!("labelSelector=color%3D{}", COLORS[color])
    })
}

fn object(thing: &Thing) -> Value {
    let mut object = json!({"metadata": {"name": NAMES[thing.name]}, "data": {"value": thing.value.to_string()}});
    if !COLORS[thing.color].is_empty() {
        object["metadata"]["labels"] = json!({"color": COLORS[thing.color]});
    }
    object
}

fn read(object: &Value) -> Thing {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let index =
        |of: &[&str], text: &str| of.iter().position(|known| *known == text).expect("known");
    Thing {
        name: index(&NAMES, &text(&object["metadata"]["name"])),
        color: index(&COLORS, &text(&object["metadata"]["labels"]["color"])),
        value: text(&object["data"]["value"]).parse().expect("a number"),
        version: text(&object["metadata"]["resourceVersion"])
            .parse()
            .expect("a number"),
    }
}

fn things(list: &Value) -> Vec<Thing> {
    list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(read)
        .collect()
}

fn seen(event: &Value) -> Expected {
    let thing = read(&event["object"]);
    Expected {
        kind: match event["type"].as_str() {
            Some("ADDED") => "ADDED",
            Some("MODIFIED") => "MODIFIED",
            Some("DELETED") => "DELETED",
            other => panic!("{other:?} is not an event"),
        },
        revision: thing.version,
        thing,
    }
}
