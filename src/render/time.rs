//! Times: printed for people and programs, and parsed.

use crate::model::Millis;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp, Zoned};

fn zoned(at: Millis) -> Zoned {
    Timestamp::from_millisecond(at).unwrap_or_default().to_zoned(TimeZone::system())
}

/// ISO 8601 in UTC with milliseconds: `2026-11-20T09:00:00.000Z`.
pub fn iso(at: Millis) -> String {
    Timestamp::from_millisecond(at).map(|at| format!("{at:.3}")).unwrap_or_default()
}

/// `2026-11-20`
pub fn day(at: Millis) -> String {
    zoned(at).strftime("%Y-%m-%d").to_string()
}

/// `17:42`
pub fn clock(at: Millis) -> String {
    zoned(at).strftime("%H:%M").to_string()
}

/// `Friday`
pub fn weekday(at: Millis) -> String {
    zoned(at).strftime("%A").to_string()
}

/// `38 min`, `2 h 5 min`, `under a minute`
pub fn span(ms: Millis) -> String {
    match ms / 60_000 {
        ..=0 => "under a minute".to_string(),
        m @ 1..60 => format!("{m} min"),
        m if m % 60 == 0 => format!("{} h", m / 60),
        m if m < 48 * 60 => format!("{} h {} min", m / 60, m % 60),
        m => format!("{} days", m / 1440),
    }
}

/// `5 min ago`, `yesterday`, `12 days ago`
pub fn ago(at: Millis, now: Millis) -> String {
    match (now - at) / 60_000 {
        ..=0 => "just now".to_string(),
        m @ 1..60 => format!("{m} min ago"),
        m @ 60..1440 => format!("{} h ago", m / 60),
        1440..2880 => "a day ago".to_string(),
        m => format!("{} days ago", m / 1440),
    }
}

/// Parses `2026-11-01`, `2026-11-01T09:30`, `7d`, `12h`, `30min`, `today`, `yesterday`. The error lists these forms.
pub fn parse(text: &str, now: Millis) -> Result<Millis, String> {
    let wrong = || format!("`{text}` is not a time: use 2026-11-01, 2026-11-01T09:30, 7d, 12h, 30min, 2w, today or yesterday");
    let today = zoned(now).date();
    let start = |date: Date| Ok(date.to_zoned(TimeZone::system()).map_err(|_| wrong())?.timestamp().as_millisecond());
    match text {
        "today" => return start(today),
        "yesterday" => return start(today.yesterday().map_err(|_| wrong())?),
        _ => {}
    }
    if text.contains(['T', ' '])
        && let Ok(moment) = text.parse::<DateTime>()
    {
        return Ok(moment.to_zoned(TimeZone::system()).map_err(|_| wrong())?.timestamp().as_millisecond());
    }
    if let Ok(date) = text.parse::<Date>() {
        return start(date);
    }
    // jiff reads `1m` as a minute, but people may mean a month.
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if !["min", "h", "d", "w"].contains(&unit) {
        return Err(wrong());
    }
    let span: Span = text.parse().map_err(|_| wrong())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    i64::try_from(length.as_millis()).ok().and_then(|ms| now.checked_sub(ms)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = 1_795_250_000_000;
        assert_eq!(parse("7d", now), Ok(now - 7 * 86_400_000));
        assert_eq!(parse("30min", now), Ok(now - 1_800_000));
        assert!(parse("yesterday", now).unwrap() < parse("today", now).unwrap());
        assert_eq!(day(parse("2026-11-01", now).unwrap()), "2026-11-01");
        assert_eq!(clock(parse("2026-11-01T09:30", now).unwrap()), "09:30");
        for wrong in ["", "1m", "soon", "7", "d", "2026-13-01", "99999999999999999999d", "9223372036854775807w"] {
            assert!(parse(wrong, now).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_use_the_unit_that_fits() {
        assert_eq!(
            ["0", "59000", "2280000", "7200000", "7500000"].map(|ms| span(ms.parse().unwrap())),
            ["under a minute", "under a minute", "38 min", "2 h", "2 h 5 min"]
        );
        assert_eq!(
            [0, 300_000, 7_200_000, 100_000_000, 300_000_000].map(|ms| ago(0, ms)),
            ["just now", "5 min ago", "2 h ago", "a day ago", "3 days ago"]
        );
    }
}
