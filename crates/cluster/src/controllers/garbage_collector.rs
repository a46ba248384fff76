//! The garbage collector: objects whose owners are all gone are deleted, owners that wait for their dependents get them
//! deleted, and dependents of an owner that leaves them behind forget it.

mod decide;
mod graph;
