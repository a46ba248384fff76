//! Queries and responses of DNS as bytes (RFC 1035).

use std::net::Ipv4Addr;

/// The longest name, and the longest label of one.
const NAME: usize = 255;
const LABEL: usize = 63;
/// How long clients may keep an answer: short, because pods come and go.
const TTL: u32 = 5;
/// Points to the name of the question, which is right after the header.
const QUESTION_NAME: [u8; 2] = [0xc0, 12];

pub(super) const A: u16 = 1;
pub(super) const CNAME: u16 = 5;
pub(super) const PTR: u16 = 12;
pub(super) const SRV: u16 = 33;
pub(super) const ANY: u16 = 255;
const IN: u16 = 1;

/// What a client asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    id: u16,
    recursion_desired: bool,
    /// The question as it was sent; empty when it cannot be read.
    question: Vec<u8>,
    /// The labels of the name, in small letters.
    pub(super) labels: Vec<String>,
    pub(super) kind: u16,
    /// What is wrong with the query itself.
    pub(super) fault: Option<Code>,
}

/// How a query went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    NoError = 0,
    FormatError = 1,
    NameError = 3,
    NotImplemented = 4,
    Refused = 5,
}

/// What a name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    A(Ipv4Addr),
    Cname(String),
    Ptr(String),
    Srv { port: u16, target: String },
}

/// What is answered: records of the name that was asked for, and addresses of names among them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: Code,
    pub(super) records: Vec<Data>,
    pub(super) additional: Vec<(String, Ipv4Addr)>,
}

impl Answer {
    pub(super) fn of(records: Vec<Data>) -> Self {
        Self {
            code: Code::NoError,
            records,
            additional: Vec::new(),
        }
    }

    pub(super) fn failed(code: Code) -> Self {
        Self {
            code,
            ..Self::of(Vec::new())
        }
    }
}

impl Query {
    /// Reads a query. Nothing when the bytes are not one and deserve no answer: too short, or a response.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..12)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let flags = word(2);
        if flags & 0x8000 != 0 {
            return None;
        }
        let mut query = Self {
            id: word(0),
            recursion_desired: flags & 0x0100 != 0,
            question: Vec::new(),
            labels: Vec::new(),
            kind: 0,
            fault: None,
        };
        if flags & 0x7800 != 0 {
            query.fault = Some(Code::NotImplemented);
        } else if word(4) != 1 || query.read_question(&bytes[12..]).is_none() {
            query.fault = Some(Code::FormatError);
        }
        Some(query)
    }

    /// Reads the one question. Compressed names do not occur in a first question.
    fn read_question(&mut self, bytes: &[u8]) -> Option<()> {
        let (mut at, mut labels) = (0, Vec::new());
        loop {
            let length = usize::from(*bytes.get(at)?);
            if length > LABEL || at + 1 + length > NAME {
                return None;
            }
            let label = bytes.get(at + 1..at + 1 + length)?;
            at += 1 + length;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(label).to_lowercase());
        }
        let rest = bytes.get(at..at + 4)?;
        self.kind = u16::from_be_bytes([rest[0], rest[1]]);
        let class = u16::from_be_bytes([rest[2], rest[3]]);
        self.question = bytes[..at + 4].to_vec();
        self.labels = labels;
        self.fault = (class != IN && class != ANY).then_some(Code::Refused);
        Some(())
    }

    /// The response as bytes: as many records as there is room for, and marked when some are missing.
    pub(super) fn respond(&self, answer: &Answer, limit: usize) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend(&self.question);
        let (mut counts, mut cut) = ([0u16; 2], false);
        let records = answer
            .records
            .iter()
            .map(|data| (0, encode(&QUESTION_NAME, data)));
        let additional = answer
            .additional
            .iter()
            .map(|(name, address)| (1, encode(&encode_name(name), &Data::A(*address))));
        for (section, record) in records.chain(additional) {
            if bytes.len() + record.len() > limit {
                // Addresses that come as a courtesy can be left out.
                cut |= section == 0;
                continue;
            }
            bytes.extend(record);
            counts[section] += 1;
        }
        let desired = u16::from(self.recursion_desired) << 8;
        let flags = 0x8400 | desired | (u16::from(cut) << 9) | answer.code as u16;
        let questions = u16::from(!self.question.is_empty());
        let header = [self.id, flags, questions, counts[0], 0, counts[1]];
        for (at, word) in header.into_iter().enumerate() {
            bytes[2 * at..2 * at + 2].copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

fn encode(owner: &[u8], data: &Data) -> Vec<u8> {
    let (kind, body) = match data {
        Data::A(address) => (A, address.octets().to_vec()),
        Data::Cname(name) => (CNAME, encode_name(name)),
        Data::Ptr(name) => (PTR, encode_name(name)),
        Data::Srv { port, target } => {
            let mut body = vec![0, 0, 0, 100];
            body.extend(port.to_be_bytes());
            body.extend(encode_name(target));
            (SRV, body)
        }
    };
    let mut record = owner.to_vec();
    record.extend(kind.to_be_bytes());
    record.extend(IN.to_be_bytes());
    record.extend(TTL.to_be_bytes());
    record.extend((body.len() as u16).to_be_bytes());
    record.extend(body);
    record
}

/// A name as bytes. Names come from objects that the server has validated; what is too long all the same is cut.
fn encode_name(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = &label.as_bytes()[..label.len().min(LABEL)];
        if bytes.len() + label.len() + 2 > NAME {
            break;
        }
        bytes.push(label.len() as u8);
        bytes.extend(label);
    }
    bytes.push(0);
    bytes
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of a query.
    pub(crate) fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend(encode_name(name));
        bytes.extend(kind.to_be_bytes());
        bytes.extend(IN.to_be_bytes());
        bytes
    }

    #[test]
    fn a_response_has_the_question_and_the_records() {
        let query = Query::parse(&query("Web.default", A)).expect("a query");
        assert_eq!(query.labels, ["web", "default"]);
        let answer = Answer::of(vec![Data::A(Ipv4Addr::new(127, 64, 0, 9))]);
        let bytes = query.respond(&answer, 512);
        let expected = [
            &[0x12, 0x34, 0x85, 0x00, 0, 1, 0, 1, 0, 0, 0, 0][..],
            b"\x03Web\x07default\x00\x00\x01\x00\x01",
            &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 127, 64, 0, 9],
        ]
        .concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_does_not_fit_is_marked() {
        let query = Query::parse(&query("web", A)).expect("a query");
        let answer = Answer::of(vec![Data::A(Ipv4Addr::LOCALHOST); 100]);
        let bytes = query.respond(&answer, 512);
        assert!(bytes.len() <= 512);
        assert_eq!(bytes[2] & 0x02, 0x02, "cut");
        let whole = query.respond(&answer, 65_535);
        assert_eq!((whole[2] & 0x02, whole[7]), (0, 100));
    }

    #[test]
    fn what_is_not_a_question_is_refused_or_ignored() {
        let mut response = query("web", A);
        response[2] = 0x81;
        assert_eq!(Query::parse(&response), None);
        assert_eq!(Query::parse(&response[..11]), None);
        let fault = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = query("web", A);
            change(&mut bytes);
            Query::parse(&bytes).expect("a query").fault
        };
        assert_eq!(fault(&|_| {}), None);
        assert_eq!(fault(&|bytes| bytes[2] = 0x28), Some(Code::NotImplemented));
        assert_eq!(fault(&|bytes| bytes[5] = 2), Some(Code::FormatError));
        assert_eq!(fault(&|bytes| bytes.truncate(14)), Some(Code::FormatError));
        assert_eq!(fault(&|bytes| bytes[12] = 0xc0), Some(Code::FormatError));
        let class = query("web", A).len() - 1;
        assert_eq!(fault(&|bytes| bytes[class] = 3), Some(Code::Refused));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_answered_within_the_limit(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            flips in proptest::collection::vec((0usize..60, any::<u8>()), 0..6),
            count in 0usize..200,
        ) {
            let mut near = query("etcd-0.etcd.data.svc.cluster.local", SRV);
            for (at, byte) in flips {
                if let Some(place) = near.get_mut(at) {
                    *place = byte;
                }
            }
            for bytes in [bytes, near] {
                let Some(query) = Query::parse(&bytes) else { continue };
                prop_assert!(query.question.len() <= NAME + 5);
                let data = Data::Srv { port: 1, target: "x.".repeat(200) };
                let response = query.respond(&Answer::of(vec![data; count]), 512);
                prop_assert!((12..=512).contains(&response.len()));
                prop_assert_eq!(&response[..2], &bytes[..2]);
            }
        }
    }
}
