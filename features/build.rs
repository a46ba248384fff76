//! Does nothing: without a build script Cargo leaves the features of build dependencies out.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
