//! The files of the page. They are part of the program: nothing is fetched from anywhere.

/// A file and its content type.
pub(crate) struct Asset {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! assets {
    ($($path:literal => $content_type:literal),* $(,)?) => {
        /// The file at a path.
        pub(crate) fn at(path: &str) -> Option<Asset> {
            let (content_type, bytes): (&'static str, &'static [u8]) = match path {
                "/" => ("text/html; charset=utf-8", include_bytes!("../assets/index.html")),
                $(concat!("/", $path) => ($content_type, include_bytes!(concat!("../assets/", $path))),)*
                _ => return None,
            };
            Some(Asset { content_type, bytes })
        }
    };
}

assets! {
    "console.css" => "text/css; charset=utf-8",
    "icon.svg" => "image/svg+xml",
    "main.js" => "text/javascript; charset=utf-8",
    "dom.js" => "text/javascript; charset=utf-8",
    "session.js" => "text/javascript; charset=utf-8",
    "stream.js" => "text/javascript; charset=utf-8",
    "route.js" => "text/javascript; charset=utf-8",
    "keys.js" => "text/javascript; charset=utf-8",
    "format.js" => "text/javascript; charset=utf-8",
    "yaml.js" => "text/javascript; charset=utf-8",
    "overview.js" => "text/javascript; charset=utf-8",
    "table.js" => "text/javascript; charset=utf-8",
    "object.js" => "text/javascript; charset=utf-8",
    "tree.js" => "text/javascript; charset=utf-8",
    "logs.js" => "text/javascript; charset=utf-8",
    "mind.js" => "text/javascript; charset=utf-8",
    "time.js" => "text/javascript; charset=utf-8",
    "screen.js" => "text/javascript; charset=utf-8",
    "terminal.js" => "text/javascript; charset=utf-8",
    "editor.js" => "text/javascript; charset=utf-8",
    "actions.js" => "text/javascript; charset=utf-8",
    "access.js" => "text/javascript; charset=utf-8",
    "snapshots.js" => "text/javascript; charset=utf-8",
    "palette.js" => "text/javascript; charset=utf-8",
}
