//! `README.md` beside this file lists what can be wrong with the runtime and the tests that hold it: each of them exists.

#[path = "../../server/tests/listed.rs"]
mod listed;
