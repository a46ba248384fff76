//! A layer of a client that counts what goes through it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::RequestMetrics;

/// Counts the requests of a client, and how long their answers take to begin.
#[derive(Debug, Clone)]
pub struct CountRequests {
    metrics: RequestMetrics,
    host: Arc<str>,
}

/// A client whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    count: CountRequests,
}

impl RequestMetrics {
    /// A layer for a client of the API server at `host`, as `10.0.0.1:443`.
    ///
    /// ```no_run
    /// use kube::client::ClientBuilder;
    /// use kubewright_runtime::{Manager, Metrics};
    ///
    /// # fn example(config: kube::Config) -> Result<(), kube::Error> {
    /// let metrics = Metrics::new();
    /// let layer = metrics.requests().layer("10.0.0.1:443");
    /// let client = ClientBuilder::try_from(config)?.with_layer(&layer).build();
    /// let manager = Manager::new(client).with_metrics(metrics);
    /// # drop(manager);
    /// # Ok(())
    /// # }
    /// ```
    pub fn layer(&self, host: &str) -> CountRequests {
        CountRequests {
            metrics: self.clone(),
            host: host.into(),
        }
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            count: self.clone(),
        }
    }
}

impl<S, B, R> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let method = request.method().clone();
        let CountRequests { metrics, host } = self.count.clone();
        let began = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let (method, took) = (method.as_str(), began.elapsed());
            match &answer {
                Ok(response) => metrics.answered(method, &host, response.status().as_u16(), took),
                Err(_) => metrics.unanswered(method, &host, took),
            }
            answer
        })
    }
}
