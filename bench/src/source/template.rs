//! A rendered object with holes for what differs from one to the next, so that a hundred thousand objects are made as fast
//! as memory is copied and none of them is kept.

/// What differs between one rendering and the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Numbers {
    pub(crate) number: usize,
    /// How many changes there were before this state.
    pub(crate) version: u64,
    /// When the state was sent, in microseconds since 1970; zero when nobody asks.
    pub(crate) stamp: u64,
    /// How many values the label of the index has.
    pub(crate) instances: usize,
}

/// How many namespaces the objects are spread over.
pub(crate) const NAMESPACES: usize = 100;
/// How many pods have the same value of the label.
pub(crate) const POSTINGS: usize = 20;
/// Versions start here, so that they all have the same number of digits.
pub(crate) const FIRST_VERSION: u64 = 1_000_000_000;

/// What goes into a hole, and what stands there in the rendering of the first object.
#[derive(Debug, Clone, Copy)]
enum Hole {
    Pod,
    Foo,
    Namespace,
    Instance,
    Uid,
    Version,
    Stamp,
}

impl Hole {
    const ALL: [Self; 7] = [
        Self::Pod,
        Self::Foo,
        Self::Namespace,
        Self::Instance,
        Self::Uid,
        Self::Version,
        Self::Stamp,
    ];

    /// The text around the hole and how many of its last bytes are the hole.
    fn marker(self) -> (&'static [u8], usize) {
        match self {
            Self::Pod => (b"pod-0000000", 7),
            Self::Foo => (b"foo-0000000", 7),
            Self::Namespace => (b"namespace-00", 2),
            Self::Instance => (b"instance-0000", 4),
            Self::Uid => (b"8a55-000000000000", 12),
            Self::Version => (b"1000000000", 10),
            Self::Stamp => (b"0000000000000000", 16),
        }
    }

    fn value(self, object: &Numbers) -> u64 {
        match self {
            Self::Pod | Self::Foo | Self::Uid => object.number as u64,
            Self::Namespace => (object.number % NAMESPACES) as u64,
            Self::Instance => (object.number % object.instances.max(1)) as u64,
            Self::Version => FIRST_VERSION + object.version,
            Self::Stamp => object.stamp,
        }
    }
}

/// Bytes with holes.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    holes: Vec<(Hole, usize)>,
}

impl Template {
    /// Finds the holes in the rendering of the first object. All values have the width that they have there, so the lengths
    /// that protobuf writes before its fields stay true.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut holes = Vec::new();
        for hole in Hole::ALL {
            let (marker, width) = hole.marker();
            for at in memchr::memmem::find_iter(&bytes, marker) {
                holes.push((hole, at + marker.len() - width));
            }
        }
        Self { bytes, holes }
    }

    /// How many bytes every rendering has.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Renders one object.
    pub(crate) fn render(&self, object: &Numbers, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for &(hole, at) in &self.holes {
            let width = hole.marker().1;
            digits(hole.value(object), &mut out[start + at..start + at + width]);
        }
    }
}

/// Fills the place with a number, zeros first.
fn digits(mut number: u64, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_and_nothing_else_changes() {
        let template = Template::new(
            br#"{"name":"pod-0000000","namespace":"namespace-00","v":"1000000000"}"#.to_vec(),
        );
        let mut out = b"before ".to_vec();
        let object = Numbers {
            number: 1_234,
            version: 56,
            instances: 10,
            ..Numbers::default()
        };
        template.render(&object, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            r#"before {"name":"pod-0001234","namespace":"namespace-34","v":"1000000056"}"#
        );
    }
}
