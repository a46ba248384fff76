use super::*;

/// The verbs of a hook, or what is wrong with it.
fn verbs(purpose: Purpose, named: &[&str], item: TokenStream) -> String {
    let named = named
        .iter()
        .map(|verb| LitStr::new(verb, proc_macro2::Span::call_site()));
    let verbs = Hook::parse(item, purpose).and_then(|hook| hook.verbs(named.collect()));
    match verbs {
        Ok(verbs) => verbs
            .iter()
            .map(LitStr::value)
            .collect::<Vec<_>>()
            .join(";"),
        Err(error) => error.to_string(),
    }
}

fn validating(named: &[&str], item: TokenStream) -> String {
    verbs(Purpose::Validating, named, item)
}

#[test]
fn functions_take_an_object_and_what_they_ask_for() {
    let sound = |purpose, item: TokenStream| {
        assert_eq!(
            verbs(purpose, &["create"], item.clone()),
            "create",
            "{item}"
        )
    };
    sound(
        Purpose::Validating,
        quote!(
            fn f(book: &Book) -> Result<(), String> {}
        ),
    );
    sound(
        Purpose::Validating,
        quote!(
            fn f(book: &Book, old: Option<&Book>) -> Result<(), String> {}
        ),
    );
    sound(
        Purpose::Validating,
        quote!(
            async fn f(book: &v1::Book, request: &Request) -> ValidationResult {}
        ),
    );
    sound(
        Purpose::Validating,
        quote!(
            async fn f(book: &Book, old: Option<&Book>, request: &Request) -> ValidationResult {}
        ),
    );
    sound(
        Purpose::Mutating,
        quote!(
            fn f(book: &mut Book) {}
        ),
    );
    sound(
        Purpose::Mutating,
        quote!(
            async fn f(book: &mut Book, request: &Request) -> Result<(), Denial> {}
        ),
    );
}

#[test]
fn other_functions_are_errors_that_say_what_is_wanted() {
    let wrong = |purpose, item: TokenStream, wanted: &str| {
        let found = verbs(purpose, &[], item.clone());
        assert!(found.starts_with(wanted), "{item}: {found}");
    };
    let wanted = "a validating function takes `&K`";
    wrong(
        Purpose::Validating,
        quote!(
            fn f() -> ValidationResult {}
        ),
        wanted,
    );
    wrong(
        Purpose::Validating,
        quote!(
            fn f(book: Book) -> ValidationResult {}
        ),
        wanted,
    );
    wrong(
        Purpose::Validating,
        quote!(
            fn f(book: &mut Book) -> ValidationResult {}
        ),
        wanted,
    );
    wrong(
        Purpose::Validating,
        quote!(
            fn f(book: &Book) {}
        ),
        wanted,
    );
    wrong(
        Purpose::Validating,
        quote!(
            fn f(book: &Book, request: Request) -> ValidationResult {}
        ),
        wanted,
    );
    wrong(
        Purpose::Validating,
        quote!(
            fn f<K>(book: &K) -> ValidationResult {}
        ),
        wanted,
    );
    let wanted = "a mutating function takes `&mut K`";
    wrong(
        Purpose::Mutating,
        quote!(
            fn f(book: &Book) {}
        ),
        wanted,
    );
    wrong(
        Purpose::Mutating,
        quote!(
            fn f(book: &mut Book, old: Option<&Book>) {}
        ),
        wanted,
    );
    let wanted = "write this on the `impl`";
    wrong(
        Purpose::Mutating,
        quote!(
            fn f(&self, book: &mut Book) {}
        ),
        wanted,
    );
}

#[test]
fn deletions_go_to_functions_of_one_object() {
    let one = quote!(
        fn f(book: &v1::Book) -> ValidationResult {}
    );
    assert_eq!(validating(&["create", "delete"], one), "create;delete");
    let two = quote!(
        fn f(book: &v1::Book, old: Option<&v1::Book>) -> ValidationResult {}
    );
    assert_eq!(
        validating(&["create", "delete"], two),
        "a deletion has one object, the one that is deleted: write a function that takes `&v1::Book` and not \
         `Option<&v1::Book>`, or `impl Validating<v1::Book>` with a method for each verb"
    );
}

#[test]
fn verbs_that_would_always_be_allowed_are_errors() {
    let function = quote!(
        fn f(book: &Book) -> ValidationResult {}
    );
    for verb in ["connect", "*"] {
        let found = validating(&[verb], function.clone());
        assert!(
            found.starts_with("objects of a type can be validated in"),
            "{found}"
        );
    }
    let function = quote!(
        fn f(book: &mut Book) {}
    );
    for verb in ["delete", "connect", "*"] {
        let found = verbs(Purpose::Mutating, &[verb], function.clone());
        assert!(
            found.starts_with("nothing but objects that are stored"),
            "{found}"
        );
    }
    let declared = quote!(
        struct Elsewhere;
    );
    assert_eq!(validating(&["*"], declared), "*");
}

#[test]
fn methods_of_an_implementation_are_its_verbs() {
    let item = quote!(
        impl Validating<Book> for Rules {
            async fn delete(&self, old: &Book, request: &Request) -> ValidationResult {}
            async fn create(&self, book: &Book, request: &Request) -> ValidationResult {}
        }
    );
    assert_eq!(validating(&[], item.clone()), "create;delete");
    assert_eq!(
        validating(&["delete", "create"], item.clone()),
        "delete;create"
    );
    assert_eq!(
        validating(&["create", "update", "delete"], item.clone()),
        "without a method `update` all of them would be allowed"
    );
    assert_eq!(
        validating(&["create"], item.clone()),
        "it is never called: `verbs` does not have `delete`"
    );
    let found = verbs(Purpose::Mutating, &[], item);
    assert!(found.starts_with("`validating` stands on"), "{found}");
    let empty = quote!(
        impl Validating<Book> for Rules {}
    );
    assert!(validating(&[], empty).starts_with("it validates nothing"));
    let other = quote!(
        impl Reconciler<Book> for Rules {}
    );
    assert_eq!(validating(&["*"], other), "*");
}
