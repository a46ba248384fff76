//! Changes inputs: bytes and words anywhere, values where the input is JSON.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::corpus::Corpus;
use crate::tree;

/// Longest input.
pub(crate) const MAX_INPUT: usize = 16 * 1024;
/// Most changes to one input.
const MAX_CHANGES: u32 = 6;

/// Words that mean something to one of the readers.
const WORDS: &[&str] = &[
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\"\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "-",
    "\\u0000",
    "\\ud800",
    "1e999",
    "-0",
    "9223372036854775807",
    "-9223372036854775809",
    "18446744073709551616",
    "0.1",
    "1Ki",
    "100m",
    "1e3",
    "2024-01-01T00:00:00Z",
    "$patch",
    "delete",
    "replace",
    "$setElementOrder/containers",
    "$retainKeys",
    "$deleteFromPrimitiveList/finalizers",
    "metadata",
    "name",
    "namespace",
    "labels",
    "spec",
    "status",
    "kind",
    "apiVersion",
    "managedFields",
    "resourceVersion",
    " in (",
    " notin (",
    "!",
    "==",
    "!=",
    "=",
    ",",
    "(",
    ")",
    "self",
    "oldSelf",
    "has(",
    ".all(x, ",
    ".exists(",
    ".map(",
    ".filter(",
    ".matches(",
    "size(",
    "&&",
    "||",
    "?",
    "duration('1h')",
    "timestamp(",
    "quantity(",
    "ip(",
    "cidr(",
    "url(",
    "optional.of(",
    ".orValue(",
    "int(",
    "string(",
    "type(",
    "~1",
    "~0",
    "/-",
    "op",
    "path",
    "value",
    "from",
    "add",
    "test",
    "copy",
    "move",
    "remove",
    "&a",
    "*a",
    "<<: *a",
    "--- ",
    "|-\n",
    ">\n",
    "? ",
    "!!binary ",
    "!!str ",
    "\t",
    "\r\n",
    "\u{85}",
    "\u{feff}",
    "k8s\0",
    "\0",
    "%00",
    "&",
    "limit=",
    "continue=",
    "resourceVersionMatch=Exact",
    "resourceVersion=",
    "sendInitialEvents=true",
    "labelSelector=",
    "fieldSelector=",
    "timeoutSeconds=",
    "allowWatchBookmarks=true",
    "dryRun=All",
    "fieldManager=",
    "force=true",
    "pretty=true",
    "as",
    "PartialObjectMetadata",
];

/// A new input from those of a corpus.
pub(crate) fn input(corpus: &Corpus, random: &mut StdRng) -> Vec<u8> {
    let mut input = corpus.pick(random).to_vec();
    for _ in 0..random.random_range(1..=MAX_CHANGES) {
        change(&mut input, corpus, random);
        input.truncate(MAX_INPUT);
    }
    input
}

fn change(input: &mut Vec<u8>, corpus: &Corpus, random: &mut StdRng) {
    // Half of the changes keep JSON well-formed: most of the readers begin where the parser ends.
    if random.random_bool(0.5)
        && let Some(changed) = tree::change(input, corpus, random)
    {
        *input = changed;
        return;
    }
    match random.random_range(0..8) {
        0 => flip(input, random),
        1 => insert(input, &[random.random()], random),
        2 => cut(input, random),
        3 => repeat(input, random),
        4 | 5 => {
            let word = WORDS.choose(random).copied().unwrap_or_default();
            insert(input, word.as_bytes(), random);
        }
        6 => splice(input, corpus.pick(random), random),
        _ => number(input, random),
    }
}

fn flip(input: &mut [u8], random: &mut StdRng) {
    if let Some(at) = place(input.len(), random) {
        input[at] ^= 1 << random.random_range(0..8);
    }
}

fn insert(input: &mut Vec<u8>, bytes: &[u8], random: &mut StdRng) {
    let at = random.random_range(0..=input.len());
    input.splice(at..at, bytes.iter().copied());
}

fn cut(input: &mut Vec<u8>, random: &mut StdRng) {
    let range = range(input.len(), random);
    input.drain(range);
}

/// Repeats a part many times: nesting and repetition are what limits are for.
fn repeat(input: &mut Vec<u8>, random: &mut StdRng) {
    let range = range(input.len(), random);
    let (at, part) = (range.end, input[range].to_vec());
    let times = 1 << random.random_range(0..8);
    if part.len() * times <= MAX_INPUT {
        input.splice(at..at, part.repeat(times));
    }
}

/// The beginning of one input and the end of another.
fn splice(input: &mut Vec<u8>, other: &[u8], random: &mut StdRng) {
    input.truncate(random.random_range(0..=input.len()));
    input.extend(&other[random.random_range(0..=other.len())..]);
}

/// Puts another number where there is one.
fn number(input: &mut Vec<u8>, random: &mut StdRng) {
    let digits: Vec<usize> = (0..input.len())
        .filter(|at| input[*at].is_ascii_digit())
        .collect();
    if let Some(at) = digits.choose(random) {
        let edge = [
            0,
            1,
            -1,
            127,
            128,
            255,
            256,
            65_535,
            i64::from(i32::MAX),
            i64::MAX,
            i64::MIN,
        ];
        let edge = edge.choose(random).copied().unwrap_or_default();
        input.splice(*at..=*at, edge.to_string().into_bytes());
    }
}

fn place(length: usize, random: &mut StdRng) -> Option<usize> {
    (length > 0).then(|| random.random_range(0..length))
}

fn range(length: usize, random: &mut StdRng) -> std::ops::Range<usize> {
    let start = random.random_range(0..=length);
    let most = (length - start).min(64);
    start..start + random.random_range(0..=most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        std::fs::write(folder.path().join("a"), r#"{"a": [1, {"b": null}]}"#).expect("written");
        let inputs = || {
            let corpus = Corpus::read(folder.path()).expect("it is there");
            let mut random = StdRng::seed_from_u64(7);
            (0..50)
                .map(|_| input(&corpus, &mut random))
                .collect::<Vec<_>>()
        };
        assert_eq!(inputs(), inputs());
        assert!(inputs().iter().all(|input| input.len() <= MAX_INPUT));
    }
}
