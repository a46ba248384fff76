//! The program of all parts: one image, the part is an argument.

use std::net::SocketAddr;

use anyhow::Context as _;
use clap::Parser;
use kubewright_example_podtato_head::Part;
use kubewright_example_podtato_head::server::{Identity, serve};

/// Serve one part of a podtato head over HTTP
#[derive(Parser)]
#[command(name = "podtato-head-server")]
struct Arguments {
    /// The part: hat, left-arm, right-arm, left-leg, right-leg or entry
    #[arg(long, env = "PODTATO_PART", value_parser = part)]
    part: Part,
    /// The address to listen at
    #[arg(long, default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// The version, which says what the part looks like
    #[arg(long, env = "PODTATO_VERSION", default_value = "1")]
    version: String,
    /// The name of the app, which the Services of the parts begin with
    #[arg(long, env = "PODTATO_APP", default_value = "podtato-head")]
    app: String,
    /// The name of the pod, for the page
    #[arg(long, env = "POD_NAME", default_value = "")]
    pod: String,
}

fn part(name: &str) -> Result<Part, &'static str> {
    Part::find(name).ok_or("not a part")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let listener = tokio::net::TcpListener::bind(arguments.listen).await;
    let listener = listener.with_context(|| format!("cannot listen at {}", arguments.listen))?;
    println!(
        "{} {} listens at {}",
        arguments.part, arguments.version, arguments.listen
    );
    let identity = Identity {
        part: arguments.part,
        version: arguments.version,
        app: arguments.app,
        pod: arguments.pod,
    };
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        println!("stops");
    };
    serve(listener, identity, stop).await;
    Ok(())
}
