//! The console over HTTP, without a browser: sessions, live rows, trees, the past, and what restricted users see.

mod support;

#[path = "console/attacks.rs"]
mod attacks;
#[path = "console/live.rs"]
mod live;
#[path = "console/rights.rs"]
mod rights;
