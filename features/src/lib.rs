//! One set of features of shared dependencies for everything in this workspace.
//!
//! Cargo compiles a dependency again for each set of features that somebody asks for. Tests of the whole workspace ask for the
//! union of all; a package alone asks for less, and then half of the tree is compiled a second time. Packages of this workspace
//! depend on this crate, which has no code, so that they always ask for the union. Published crates do so for their tests alone.
