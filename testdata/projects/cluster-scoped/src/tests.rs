//! What holds for the whole program. Tests of a controller are beside it.

use kubewright::testing::{World, assert_generated};

#[test]
fn generated_files_are_those_of_this_program() {
    assert_generated(env!("CARGO_MANIFEST_DIR"));
}

/// A [`World`] is a cluster in this process that knows the kinds of this program, with its controllers at work.
#[tokio::test]
async fn definitions_are_accepted_by_a_server() {
    World::start().await;
}
