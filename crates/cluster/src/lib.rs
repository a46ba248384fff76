//! A cluster in the process: API server, built-in controllers, simulated nodes.

// Used by tests alone until the cluster starts them.
#[allow(dead_code)]
mod controllers;
#[allow(dead_code)]
mod pods;
#[allow(dead_code)]
mod portion;
#[allow(dead_code)]
mod writes;
