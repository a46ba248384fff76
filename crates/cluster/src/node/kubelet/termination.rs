//! What a container says when it ends, where it has written nothing: the end of its log.
//!
//! Mirrors `readLastStringFromContainerLogs` of kuberuntime.

use k8s_openapi::api::core::v1::Container;

use crate::node::runtime::Exit;

/// How much of a log stands in for a message: `MaxContainerTerminationMessageLogLines` and `...LogLength`.
const MOST_LINES: usize = 80;
const MOST_BYTES: usize = 2 << 10;

/// Adds the end of the log to how a container ended, if its policy says so and nothing better is there.
pub(crate) fn complete(
    mut exit: Exit,
    container: &Container,
    log: impl FnOnce() -> Vec<String>,
) -> Exit {
    let policy = container.termination_message_policy.as_deref();
    let failed = exit.code != 0 && exit.message.is_none();
    if failed && policy == Some("FallbackToLogsOnError") {
        exit.message = Some(tail(&log())).filter(|text| !text.is_empty());
    }
    exit
}

/// The last lines, as far as there is room for them.
fn tail(lines: &[String]) -> String {
    let mut text = String::new();
    for line in &lines[lines.len().saturating_sub(MOST_LINES)..] {
        text += line;
        text.push('\n');
    }
    let mut start = text.len().saturating_sub(MOST_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.split_off(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_the_log_stands_in_for_the_message_of_a_container_that_failed() {
        let policy = |policy: &str| Container {
            termination_message_policy: Some(policy.to_owned()),
            ..Container::default()
        };
        let (file, log) = (policy("File"), policy("FallbackToLogsOnError"));
        let lines = || vec!["one".to_owned(), "two".to_owned()];
        let message = |exit: Exit, container: &Container| complete(exit, container, lines).message;
        assert_eq!(message(Exit::code(1), &log).as_deref(), Some("one\ntwo\n"));
        assert_eq!(message(Exit::code(1), &file), None);
        assert_eq!(message(Exit::code(0), &log), None);
        let own = Exit {
            message: Some("own".to_owned()),
            ..Exit::code(1)
        };
        assert_eq!(message(own, &log).as_deref(), Some("own"));
        assert_eq!(complete(Exit::code(1), &log, Vec::new).message, None);
    }

    #[test]
    fn no_more_of_a_log_is_taken_than_a_kubelet_takes() {
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let text = tail(&many);
        assert_eq!(
            (text.lines().next(), text.lines().count()),
            (Some("20"), 80)
        );
        let wide = vec!["\u{e9}".repeat(2_000)];
        let text = tail(&wide);
        assert!(text.len() <= 2_048 && text.ends_with("\u{e9}\n"));
    }
}
