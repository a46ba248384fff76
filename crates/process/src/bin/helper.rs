//! The helper alone, for programs and tests that run processes without the `kubewright` command beside them.

fn main() -> std::process::ExitCode {
    kubewright_process::helper_main(std::env::args_os().skip(1))
}
