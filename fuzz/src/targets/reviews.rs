//! Reviews, as API servers send them to webhooks.

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kubewright_webhook::{Answer, Converter, Spoke, Webhooks};
use serde::{Deserialize, Serialize};

use super::{Read, Verdict, start};

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "g", version = "v1", kind = "K", schema = "disabled")]
struct OneSpec {
    at: String,
}

mod other {
    use super::*;

    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "g", version = "v2", kind = "K", schema = "disabled")]
    pub(super) struct TwoSpec {
        pub(super) from: Option<String>,
        pub(super) to: Option<String>,
    }
}

impl Spoke<K> for other::K {
    fn to_hub(self) -> Result<K, String> {
        let other::TwoSpec { from, to } = self.spec;
        let at = format!("{} {}", from.unwrap_or_default(), to.unwrap_or_default());
        Ok(K::new("", OneSpec { at }))
    }

    fn from_hub(hub: K) -> Result<Self, String> {
        let (from, to) = hub.spec.at.split_once(' ').ok_or("no pair")?;
        let (from, to) = (Some(from.to_owned()), Some(to.to_owned()));
        Ok(Self::new("", other::TwoSpec { from, to }))
    }
}

/// Asks every webhook the same.
pub(super) fn read() -> Read {
    let hooks = Webhooks::new()
        .defaulting("/mutate", |map: &mut ConfigMap| {
            let data = map.data.get_or_insert_default();
            data.entry("color".to_owned())
                .or_insert_with(|| "red".to_owned());
            map.metadata.name = None;
        })
        .validating("/validate", |map: &ConfigMap, old: Option<&ConfigMap>| {
            if old.is_some_and(|old| old.data != map.data) {
                Err("it changed")
            } else {
                Ok(())
            }
        })
        .converting("/convert", Converter::<K>::hub().spoke::<other::K>());
    Box::new(move |input| {
        let all = hooks.paths().map(|path| outcome(&hooks, path, input));
        let outcomes: Vec<Verdict> = all.collect();
        let accepted = outcomes.iter().find(|it| it.is_accepted());
        let all: Vec<&str> = outcomes.iter().map(|it| it.0.as_str()).collect();
        match accepted {
            Some(_) => Verdict::accepted(all.join(" ")),
            None => Verdict::refused(all.join(" ")),
        }
    })
}

fn outcome(hooks: &Webhooks, path: &str, input: &[u8]) -> Verdict {
    let answer = hooks.answer(path, input).now_or_never();
    match answer.expect("these functions do not wait") {
        Answer::Review(review) => {
            let text = String::from_utf8_lossy(&review).into_owned();
            let read: serde_json::Value = serde_json::from_str(&text).expect("a review is JSON");
            assert!(read["response"]["uid"].is_string(), "{text}");
            Verdict::accepted(start(&read["response"].to_string()))
        }
        Answer::BadRequest(problem) => Verdict::refused(start(&problem)),
        other => Verdict::refused(format!("{other:?}")),
    }
}
