//! What nodes ask of the runtime: images, containers, streams, probes, usage.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_cluster::node::runtime::{
    ContainerConfig, ContainerId, ExecError, ExecTarget, Exit, Health, ImagePull, Life, MountError,
    PodId, PodView, PodVolumes, ProbeKind, PullError, Refused, Runtime, StartError,
};
use kubewright_server::{Streams, Usage};
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;

use super::{ProcessRuntime, STOP_WITHIN};
use crate::helper::message::Ask;
use crate::{exec, probe};

impl Runtime for ProcessRuntime {
    fn life(&self, _: &Pod, _: &Container) -> Life {
        Life::Live
    }

    fn mount(&self, volumes: PodVolumes) -> BoxFuture<'static, Result<(), MountError>> {
        self.clone().mount_all(volumes).boxed()
    }

    fn pull(&self, image: ImagePull) -> BoxFuture<'static, Result<(), PullError>> {
        let options = self.0.options.clone();
        async move {
            let name = image.image.clone();
            let find = move || options.find_image(&name).is_some();
            let known = tokio::task::spawn_blocking(find).await;
            if known.unwrap_or(false) {
                Ok(())
            } else {
                Err(PullError::missing(&image.image))
            }
        }
        .boxed()
    }

    fn start(
        &self,
        container: ContainerConfig,
    ) -> BoxFuture<'static, Result<BoxFuture<'static, Exit>, StartError>> {
        self.clone().start_one(container).boxed()
    }

    fn stop(&self, id: &ContainerId, grace: Duration) {
        let Some(running) = self.find(id) else {
            // It may be starting at this moment, and is stopped as soon as it has.
            if self.0.pods.get(&id.pod.uid).is_some() {
                self.0.early_stops.lock().insert(id.clone(), grace);
            }
            return;
        };
        if grace.is_zero() {
            return running.ask(Ask::Kill);
        }
        tokio::spawn(self.clone().stop_one(running, grace));
    }

    fn exec(
        &self,
        target: ExecTarget,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'static, Result<i32, ExecError>> {
        let own = self.clone();
        async move {
            let running = own.find(&target.id);
            let running =
                running.ok_or_else(|| ExecError("the container does not run".to_owned()))?;
            exec::exec(&own.command_call(&running), &running, command, streams).await
        }
        .boxed()
    }

    fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
    ) -> BoxFuture<'static, Result<(), ExecError>> {
        let running = self.find(id);
        async move {
            let running =
                running.ok_or_else(|| ExecError("the container does not run".to_owned()))?;
            running.attach(streams).await;
            Ok(())
        }
        .boxed()
    }

    fn port_forward(
        &self,
        pod: PodView,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'static, Result<(), Refused>> {
        let own = self.clone();
        async move {
            forward(own.connect(&pod, port).await?, stream).await;
            Ok(())
        }
        .boxed()
    }

    fn http(
        &self,
        pod: PodView,
        port: u16,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, Refused>> {
        let own = self.clone();
        async move {
            let connection = own.connect(&pod, port).await?;
            let sent = probe::send(connection, request.map(Full::new)).await;
            sent.map_err(|error| {
                tracing::debug!(%error, port, "a request to a pod failed");
                Refused(port)
            })
        }
        .boxed()
    }

    fn probe(&self, target: ExecTarget, kind: ProbeKind) -> BoxFuture<'static, Health> {
        self.clone().probe_one(target, kind).boxed()
    }

    fn usage(&self, pod: &Pod, container: &str) -> Option<Usage> {
        let running = self.of_pod(&PodId::of(pod));
        let mut named = running.iter().filter(|one| one.id.container == container);
        named.next()?.meter.usage()
    }

    fn remove(&self, pod: &PodId) {
        let entry = self.0.pods.leave(&pod.uid);
        self.0.early_stops.lock().retain(|id, _| id.pod != *pod);
        if let Some(hosts) = &self.0.options.hosts {
            hosts.remove(&pod.uid);
        }
        let running = self.of_pod(pod);
        for one in &running {
            one.ask(Ask::Kill);
        }
        let Some(entry) = entry else {
            return;
        };
        let state = self.0.options.state.clone();
        tokio::spawn(async move {
            let ended = join_all(running.iter().map(|one| one.ended()));
            // Files of programs that do not end stay until the next start.
            if tokio::time::timeout(STOP_WITHIN, ended).await.is_ok() {
                let removed = tokio::task::spawn_blocking(move || entry.remove_files(&state));
                let _ = removed.await;
            }
        });
    }

    fn lost(&self) -> Option<Exit> {
        // What containerd says of a task that it finds gone.
        Some(Exit {
            code: 255,
            reason: Some("Unknown".to_owned()),
            message: None,
        })
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        let running: Vec<_> = self.0.running.lock().values().cloned().collect();
        Self::end(running, STOP_WITHIN).boxed()
    }

    fn fork(&self) -> Arc<dyn Runtime> {
        Arc::new(Self::new(self.0.options.fork()))
    }
}

/// Passes bytes on between a pod and whoever forwards a port, until the pod has closed its side: a client that waits for the end of an
/// answer keeps its own side open.
async fn forward(mut connection: TcpStream, stream: DuplexStream) {
    let (mut from_pod, mut to_pod) = connection.split();
    let (mut from_client, mut to_client) = tokio::io::split(stream);
    let up = async {
        let copied = tokio::io::copy(&mut from_client, &mut to_pod).await;
        // What the client has ended, the pod may still answer.
        if copied.is_ok() && to_pod.shutdown().await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let down = async {
        // An error means that one side hung up, which ends it as well.
        let _ = tokio::io::copy(&mut from_pod, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
