//! The servers of a manager: probes, metrics, webhooks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kubewright_webhook::Webhooks;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::States;
use crate::controller::{Progress, Reconciled};
use crate::metrics::Metrics;
use crate::serving::{AccessGuard, Listener, MetricsServer, Probes, Serves, WebhookServer};

/// A server of the manager's own.
pub(super) enum Serving {
    Probes(Listener),
    Metrics(Listener, Option<AccessGuard>),
    Webhooks(Listener, Webhooks, Serves),
}

/// Pages beside the metrics, by their path.
#[derive(Clone, Default)]
pub(super) struct Pages(pub(super) BTreeMap<String, Arc<dyn Fn() -> Value + Send + Sync>>);

/// What servers show.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) probes: Probes,
    pub(super) metrics: Metrics,
    pub(super) pages: Pages,
    pub(super) states: States,
    pub(super) controllers: Vec<(String, Arc<Progress>)>,
}

impl Serving {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Probes(_) => "probe server",
            Self::Metrics(..) => "metrics server",
            Self::Webhooks(..) => "webhook server",
        }
    }

    pub(super) async fn serve(self, shown: Shown, stop: CancellationToken) {
        match self {
            Self::Probes(listener) => listener.serve(shown.probes, stop).await,
            Self::Webhooks(listener, webhooks, serves) => {
                serves.begin();
                let webhooks = webhooks.with_states(&shown.states);
                let server = WebhookServer::new(webhooks, &shown.metrics);
                listener.serve(server, stop).await;
            }
            Self::Metrics(listener, guard) => {
                let mut server = metrics_server(shown);
                if let Some(guard) = guard {
                    server = server.guard(guard);
                }
                listener.serve(server, stop).await;
            }
        }
    }
}

fn metrics_server(shown: Shown) -> MetricsServer {
    let Shown {
        metrics,
        pages,
        controllers,
        ..
    } = shown;
    let causes = move || {
        let last = controllers.iter().map(|(name, progress)| {
            let last = progress.history.list();
            (name.clone(), last.iter().map(Reconciled::to_page).collect())
        });
        Value::Object(last.collect())
    };
    let server = MetricsServer::new(metrics).json("/debug/causes", causes);
    let pages = pages.0.into_iter();
    pages.fold(server, |server, (path, page)| {
        server.json(&path, move || page())
    })
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
