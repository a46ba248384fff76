//! Exchanges recorded with a real kube-apiserver, and a comparison that overlooks what no two servers share.
//!
//! A test sends the request of an [`Exchange`] to our server and hands the answer to [`compare`]; what comes
//! back are the places where the two disagree.

// Every test that uses the module uses another part of it.
#![allow(dead_code, unused_imports)]

mod compare;
mod exchange;
mod normal;

#[cfg(test)]
mod tests;

pub(crate) use compare::{Difference, ManagedFields, Rules, compare};
pub(crate) use exchange::{Body, Exchange, Request, find, kube_apiserver, parse};
