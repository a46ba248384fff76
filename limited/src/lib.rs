//! `#[limited::test]`: a test that ends, whatever it awaits.
//!
//! A wait that can tell what was seen last has a limit of its own (`kubewright_testing::limit`), by tokio's clock. This is
//! the limit of everything else, by the clock of the machine: a lock, a call that never returns, a reconcile that blocks its
//! thread. It is for a test as a whole, since `cargo test` has none.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// What a body begins with. The sender goes when the test ends, however it ends, and then the thread does.
///
/// A thread that is blocked cannot be stopped, so the program ends; what it had captured of the test's output is lost.
const LIMIT: &str = r#"
let _test_is_running = {
    let (running, ended) = ::std::sync::mpsc::channel::<()>();
    let seconds = ::std::env::var("TEST_LIMIT_SECONDS").ok();
    let seconds = seconds.and_then(|it| it.parse().ok()).unwrap_or(1200);
    let name = ::std::concat!(::std::module_path!(), "::NAME");
    ::std::thread::spawn(move || {
        let limit = ::std::time::Duration::from_secs(seconds);
        let timeout = ::std::sync::mpsc::RecvTimeoutError::Timeout;
        if ended.recv_timeout(limit) == ::std::result::Result::Err(timeout) {
            // Unlike `eprintln!` this is not captured.
            let _ = ::std::io::Write::write_all(
                &mut ::std::io::stderr(),
                ::std::format!("{name} has not ended within {limit:?}; run it alone with --nocapture\n").as_bytes(),
            );
            ::std::process::exit(101);
        }
    });
    running
};
"#;

/// Makes a test of a function, as `#[tokio::test]` with these options if it is asynchronous and as `#[test]` if not.
///
/// The test program fails with the test's name when it has not ended within twenty minutes, or as many seconds as
/// `TEST_LIMIT_SECONDS` says.
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return r#"compile_error!("`limited::test` is for functions");"#
            .parse()
            .expect("it is Rust");
    };
    let is = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(it) if it.to_string() == word);
    let at = tokens.iter().position(|token| is(token, "fn"));
    let name = at
        .and_then(|at| tokens.get(at + 1))
        .map(ToString::to_string);
    let is_async = tokens.iter().any(|token| is(token, "async"));
    let attribute = if is_async {
        format!("#[::tokio::test({options})]")
    } else {
        "#[::core::prelude::v1::test]".to_owned()
    };
    let limit = LIMIT.replace("NAME", &name.unwrap_or_default());
    let mut limited: TokenStream = limit.parse().expect("it is Rust");
    limited.extend(body.stream());
    let mut body_with_limit = Group::new(Delimiter::Brace, limited);
    body_with_limit.set_span(body.span());
    let mut test: TokenStream = attribute.parse().expect("it is Rust");
    test.extend(tokens);
    test.extend([TokenTree::Group(body_with_limit)]);
    test
}
