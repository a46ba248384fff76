//! A cluster in the process: API server, built-in controllers, simulated nodes.
#![allow(dead_code)]

mod controllers;
