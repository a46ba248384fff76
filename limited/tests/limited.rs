//! Tests with a limit, in a process of their own.

use std::process::{Command, Output};

fn run(name: &str) -> Output {
    let program = std::env::current_exe().expect("this is a program");
    Command::new(program)
        .args(["--exact", name])
        .env("TEST_LIMIT_SECONDS", "1")
        .env("NEVER_END", "1")
        .output()
        .expect("it runs")
}

/// Whether this process is the one that [`run`] started.
fn ends() -> bool {
    std::env::var_os("NEVER_END").is_none()
}

#[limited::test(start_paused = true)]
async fn asynchronous() {
    if !ends() {
        std::future::pending::<()>().await;
    }
}

#[limited::test]
fn blocked() {
    while !ends() {
        std::thread::park();
    }
}

#[test]
fn test_that_does_not_end_fails_its_program_with_its_name() {
    for name in ["asynchronous", "blocked"] {
        let output = run(name);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(101), "{name}: {message}");
        let expected = format!("limited::{name} has not ended within 1s");
        assert!(message.contains(&expected), "{name}: {message}");
    }
}

#[limited::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_are_those_of_tokio() {
    let flavor = tokio::runtime::Handle::current().runtime_flavor();
    assert_eq!(flavor, tokio::runtime::RuntimeFlavor::MultiThread);
}
