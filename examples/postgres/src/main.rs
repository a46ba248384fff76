//! The operator: everything that is registered in this crate, in one process.

// Links what the library registers.
use kubewright_example_postgres as _;

fn main() -> kubewright::Result {
    kubewright::operator!().run()
}
