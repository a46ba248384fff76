//! Dates and times, as lenient as the API server reads them.

pub(super) fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(i, b)| {
            if i == 4 || i == 7 {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        })
        && text.parse::<jiff::civil::Date>().is_ok()
}

/// Go reads the time after the first `t` and compares its parts as text.
pub(super) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(time: &str) -> bool {
    let bytes = time.as_bytes();
    let two = |at: usize, max: &str| {
        bytes.len() >= at + 2
            && bytes[at..at + 2].iter().all(u8::is_ascii_digit)
            && &bytes[at..at + 2] <= max.as_bytes()
    };
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    if !(two(0, "23") && colon(2) && two(3, "59") && colon(5) && two(6, "59")) {
        return false;
    }
    let mut zone = &bytes[8..];
    if zone.len() > 1 && zone[1].is_ascii_digit() && !is_zone(zone) {
        let digits = zone[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        zone = &zone[1 + digits..];
    }
    is_zone(zone)
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        b"z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}
