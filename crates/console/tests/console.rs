//! The console over HTTP, without a browser: sessions, live rows, trees, the past, actions, terminals,
//! and what restricted users see.

mod support;

#[path = "console/access.rs"]
mod access;
#[path = "console/actions.rs"]
mod actions;
#[path = "console/attacks.rs"]
mod attacks;
#[path = "console/exec.rs"]
mod exec;
#[path = "console/foreign.rs"]
mod foreign;
#[path = "console/live.rs"]
mod live;
#[path = "console/operators.rs"]
mod operators;
#[path = "console/rights.rs"]
mod rights;
#[path = "console/snapshots.rs"]
mod snapshots;
