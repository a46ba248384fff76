//! The manager: all controllers of this program in one process.

mod api;
mod controller;
#[cfg(test)]
mod tests;
mod webhook;

fn main() -> kubewright::Result {
    kubewright::operator!().run()
}
