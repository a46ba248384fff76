//! Header blocks: pairs of names and values, compressed over the whole connection with a dictionary that both sides know.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};

use crate::http::streaming::messages::broken;

/// Names and values that the dictionary begins with, each with its length before it; see the SPDY/3 specification,
/// section 2.6.10.1.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];
/// What the dictionary ends with.
const TEXT: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not \
Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec \
00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,\
application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,\
utf-,*,enq=0.";
/// The header of a zlib stream with a dictionary: two bytes, and four that name the dictionary.
const PREFIX: usize = 6;
/// Most bytes of a header block.
const MOST_BYTES: usize = 64 * 1024;
/// Most pairs of a header block.
const MOST_PAIRS: u32 = 256;

fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1423);
    for word in WORDS {
        bytes.extend_from_slice(&(word.len() as u32).to_be_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
    bytes.extend_from_slice(TEXT.as_bytes());
    bytes
}

/// Reads the header blocks of a connection.
pub(super) struct HeaderReader {
    inflate: Decompress,
    /// What is left of the stream's own header.
    prefix: usize,
}

impl HeaderReader {
    pub(super) fn new() -> Self {
        let mut inflate = Decompress::new(false);
        // A decompressor that has just given out the dictionary may refer to it: the dictionary goes in as a block
        // that is stored as it is.
        let dictionary = dictionary();
        let length = dictionary.len() as u16;
        let mut block = vec![0];
        block.extend_from_slice(&length.to_le_bytes());
        block.extend_from_slice(&(!length).to_le_bytes());
        block.extend_from_slice(&dictionary);
        let mut out = vec![0; dictionary.len()];
        // It cannot fail: the block is sound and there is room for it.
        let _ = inflate.decompress(&block, &mut out, FlushDecompress::Sync);
        Self {
            inflate,
            prefix: PREFIX,
        }
    }

    /// The pairs of a block, names in lower case.
    ///
    /// # Errors
    /// When it is not one, or too large.
    pub(super) fn read(&mut self, block: &[u8]) -> io::Result<Vec<(String, String)>> {
        let skip = self.prefix.min(block.len());
        self.prefix -= skip;
        let mut input = &block[skip..];
        let mut plain = Vec::new();
        let mut buffer = vec![0; 4096];
        loop {
            let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(input, &mut buffer, FlushDecompress::Sync)
                .map_err(|_| broken("a header block cannot be decompressed"))?;
            let read = (self.inflate.total_in() - read) as usize;
            let written = (self.inflate.total_out() - written) as usize;
            plain.extend_from_slice(&buffer[..written]);
            input = &input[read..];
            if plain.len() > MOST_BYTES {
                return Err(broken("a header block is too large"));
            }
            let idle = read == 0 && written == 0;
            if status == Status::StreamEnd || idle || (input.is_empty() && written < buffer.len()) {
                break;
            }
        }
        pairs(&plain)
    }
}

fn pairs(mut plain: &[u8]) -> io::Result<Vec<(String, String)>> {
    let count = number(&mut plain)?;
    if count > MOST_PAIRS {
        return Err(broken("a header block has too many pairs"));
    }
    let mut pairs = Vec::new();
    for _ in 0..count {
        let name = text(&mut plain)?.to_lowercase();
        pairs.push((name, text(&mut plain)?));
    }
    Ok(pairs)
}

fn number(plain: &mut &[u8]) -> io::Result<u32> {
    let (head, rest) = plain
        .split_first_chunk::<4>()
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    *plain = rest;
    Ok(u32::from_be_bytes(*head))
}

fn text(plain: &mut &[u8]) -> io::Result<String> {
    let length = number(plain)? as usize;
    let bytes = plain.get(..length).ok_or(io::ErrorKind::UnexpectedEof)?;
    *plain = &plain[length..];
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Writes header blocks: stored as they are, which every decompressor reads, because a server of streams says next to
/// nothing in headers.
#[derive(Default)]
pub(super) struct HeaderWriter {
    begun: bool,
}

impl HeaderWriter {
    /// An empty block.
    pub(super) fn empty(&mut self) -> Vec<u8> {
        let mut block = Vec::new();
        if !self.begun {
            self.begun = true;
            // A zlib stream without a dictionary.
            block.extend_from_slice(&[0x78, 0x01]);
        }
        let plain = 0_u32.to_be_bytes();
        let length = plain.len() as u16;
        block.push(0);
        block.extend_from_slice(&length.to_le_bytes());
        block.extend_from_slice(&(!length).to_le_bytes());
        block.extend_from_slice(&plain);
        // An empty block, as a flush makes it: readers give out what they have when they see one, and look no further.
        block.extend_from_slice(&[0, 0, 0, 0xff, 0xff]);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionary_is_that_of_the_specification() {
        let dictionary = dictionary();
        assert_eq!(dictionary.len(), 1423);
        // The Adler-32 that zlib streams with this dictionary name.
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in &dictionary {
            a = (a + u32::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        assert_eq!((b << 16) | a, 0xe3c6_a7c2);
    }

    #[test]
    fn blocks_that_are_not_compressed_are_read_and_bad_ones_refused() {
        let mut plain = 1_u32.to_be_bytes().to_vec();
        for word in ["Port", "80"] {
            plain.extend_from_slice(&(word.len() as u32).to_be_bytes());
            plain.extend_from_slice(word.as_bytes());
        }
        let length = plain.len() as u16;
        let mut block = vec![0x78, 0xbb, 0, 0, 0, 0, 0];
        block.extend_from_slice(&length.to_le_bytes());
        block.extend_from_slice(&(!length).to_le_bytes());
        block.extend_from_slice(&plain);
        let mut reader = HeaderReader::new();
        let pairs = reader.read(&block).expect("a block");
        assert_eq!(pairs, [("port".to_owned(), "80".to_owned())]);
        assert!(
            HeaderReader::new()
                .read(b"\x78\xbb\x00\x00\x00\x00\xff\xff")
                .is_err()
        );
        assert!(HeaderReader::new().read(b"").is_err());
    }
}
