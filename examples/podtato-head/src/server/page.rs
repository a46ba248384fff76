//! The page: the figure, and a list of its parts.

use super::client::Fetched;
use super::figure::CANVAS;
use crate::part::Part;

const STYLE: &str = include_str!("page.css");

/// From back to front.
const LAYERS: [Part; 6] = [
    Part::LeftLeg,
    Part::RightLeg,
    Part::LeftArm,
    Part::RightArm,
    Part::Entry,
    Part::Hat,
];

/// The page of a figure whose parts answered or did not.
pub(super) fn render(app: &str, parts: &[(Part, Option<Fetched>)]) -> String {
    let app = escape(app);
    let there = parts.iter().filter(|(_, fetched)| fetched.is_some());
    let there: Vec<Part> = there.map(|(part, _)| *part).collect();
    let layers = LAYERS.iter().filter(|part| there.contains(part));
    let layers: String = layers.map(|part| layer(*part)).collect();
    let rows: String = parts
        .iter()
        .map(|(part, fetched)| row(*part, fetched.as_ref()))
        .collect();
    let (width, height) = CANVAS;
    let count = there.len();
    let all = parts.len();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{app}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><meta http-equiv=\"refresh\" content=\"5\">\
         <style>{STYLE}</style></head><body><main><section class=\"figure\" \
         style=\"aspect-ratio:{width}/{height}\"><div class=\"ground\"></div>{layers}</section>\
         <section class=\"card\"><p class=\"over\">PodtatoHeadApp</p><h1>{app}</h1>\
         <p class=\"sum\">{count} of {all} parts answer</p><ul>{rows}</ul></section></main></body></html>\n"
    )
}

fn layer(part: Part) -> String {
    format!("<img src=\"/parts/{part}.svg\" alt=\"{part}\">")
}

fn row(part: Part, fetched: Option<&Fetched>) -> String {
    match fetched {
        Some(fetched) => format!(
            "<li><b>{part}</b><i>{}</i><span>{}</span></li>",
            escape(&fetched.version),
            escape(&fetched.pod)
        ),
        None => {
            format!("<li class=\"missing\"><b>{part}</b><i>missing</i><span>no answer</span></li>")
        }
    }
}

/// Text as it may stand in a page: versions and names come from outside.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_do_not_answer_are_missing_in_the_figure_and_texts_are_escaped() {
        let fetched = Fetched {
            version: "<2>".to_owned(),
            pod: "hat-1".to_owned(),
            picture: Default::default(),
        };
        let page = render("a&b", &[(Part::Hat, Some(fetched)), (Part::LeftArm, None)]);
        assert!(page.contains("<h1>a&amp;b</h1>"), "{page}");
        assert!(
            page.contains("<i>&lt;2&gt;</i><span>hat-1</span>"),
            "{page}"
        );
        assert!(page.contains("src=\"/parts/hat.svg\""), "{page}");
        assert!(!page.contains("src=\"/parts/left-arm.svg\""), "{page}");
        assert!(page.contains("1 of 2 parts answer"), "{page}");
    }
}
