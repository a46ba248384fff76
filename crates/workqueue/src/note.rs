//! What goes with a key from those who add it to the worker that runs it.

/// Left with a key by each add, and given to the run that comes of them, such as the reasons for it.
///
/// Adds of a key that has not run yet lead to one run; their notes are put together. This happens under the queue's
/// lock, so it is to be short. The note of a delayed add waits until the delay is over, also if the key runs before for
/// another reason. Of several delays of one key the earliest wins, and only its note is kept.
pub trait Note: Default + Send + 'static {
    /// Takes in what came with a later add of the same key.
    fn merge(&mut self, later: Self);
}

/// Nothing to say.
impl Note for () {
    fn merge(&mut self, (): ()) {}
}
