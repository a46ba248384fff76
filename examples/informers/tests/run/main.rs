//! Every example runs, on a server of its own and by a kubeconfig, and says what it should.

mod alone;
mod program;
mod remote;
mod remotely;
