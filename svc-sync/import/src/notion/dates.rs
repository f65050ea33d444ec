//! Parses Notion's dates: `May 2, 2023 3:00 PM (GMT+2) → May 4, 2023`.

/// Parses a date or a range into Cairn's format: `YYYY-MM-DD`, or RFC 3339 with a time. A time without zone is taken as UTC.
pub(super) fn read(text: &str) -> Option<(String, Option<String>)> {
    let (begin, end) = match text.split_once('→') {
        Some((begin, end)) => (begin.trim(), Some(end.trim())),
        None => (text.trim(), None),
    };
    let begin = Moment::read(begin)?;
    let end = match end {
        // The end of a range within a day is only a time.
        Some(end) => Some(Moment::read(end).or_else(|| begin.at(end))?),
        None => None,
    };
    Some((begin.to_string(), end.map(|end| end.to_string())))
}

#[derive(Clone)]
struct Moment {
    day: String,
    time: Option<(u32, u32)>,
    zone: Option<String>,
}

impl Moment {
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix('@').unwrap_or(text);
        let (day, rest) = day(text)?;
        let rest = rest.trim_start();
        let none = Self { day, time: None, zone: None };
        if rest.is_empty() { Some(none) } else { none.at(rest) }
    }

    /// The same date with a time.
    fn at(&self, text: &str) -> Option<Self> {
        let (clock, zone) = match text.split_once('(') {
            Some((clock, zone)) => (clock.trim(), Some(offset(zone.strip_suffix(')')?)?)),
            None => (text.trim(), None),
        };
        let zone = zone.or_else(|| self.zone.clone());
        Some(Self { day: self.day.clone(), time: Some(time(clock)?), zone })
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.day)?;
        let Some((hour, minute)) = self.time else { return Ok(()) };
        write!(out, "T{hour:02}:{minute:02}:00{}", self.zone.as_deref().unwrap_or("Z"))
    }
}

/// Parses `May 2, 2023`, `2023/05/02` or `2023-05-02`; returns the rest.
fn day(text: &str) -> Option<(String, &str)> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    if text.starts_with(|char: char| char.is_ascii_digit()) {
        let (date, rest) = (text.get(..10)?, text.get(10..)?);
        let mut parts = date.split(['/', '-']);
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        let has_shape = year.len() == 4 && month.len() == 2 && parts.next().is_none();
        return has_shape
            .then(|| Some((valid(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?, rest)))?;
    }
    let (month, rest) = text.split_once(' ')?;
    let month = month.to_ascii_lowercase();
    let place =
        MONTHS.iter().position(|known| *known == month || (month.len() == 3 && known.starts_with(&month)))?;
    let (day, rest) = rest.split_once(", ")?;
    let (year, rest) = (rest.get(..4)?, rest.get(4..)?);
    let is_end = rest.is_empty() || rest.starts_with(' ');
    let month = u32::try_from(place).ok()? + 1;
    is_end.then(|| Some((valid(number(year)?, month, number(day)?)?, rest)))?
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn valid(year: u32, month: u32, day: u32) -> Option<String> {
    let is_leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// `3:00 PM` or `15:00`.
fn time(text: &str) -> Option<(u32, u32)> {
    let (clock, half) = match text.split_once(' ') {
        Some((clock, half)) => (clock, Some(half)),
        None => (text, None),
    };
    let (hour, minute) = clock.split_once(':')?;
    let (hour, minute) = (number(hour)?, number(minute).filter(|minute| *minute < 60)?);
    let hour = match half.map(str::to_ascii_uppercase).as_deref() {
        Some("AM") if (1..=12).contains(&hour) => hour % 12,
        Some("PM") if (1..=12).contains(&hour) => hour % 12 + 12,
        None if hour < 24 => hour,
        _ => return None,
    };
    Some((hour, minute))
}

/// `UTC`, `GMT` or `GMT+5:30`; other zone names have no unambiguous offset.
fn offset(zone: &str) -> Option<String> {
    let rest = zone.strip_prefix("GMT").or_else(|| zone.strip_prefix("UTC"))?;
    if rest.is_empty() {
        return Some("Z".to_owned());
    }
    let sign = rest.get(..1).filter(|sign| matches!(*sign, "+" | "-"))?;
    let (hours, minutes) = rest.get(1..)?.split_once(':').unwrap_or((rest.get(1..)?, "0"));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then(|| format!("{sign}{hours:02}:{minutes:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_ranges_are_read() {
        for (text, begin, end) in [
            ("May 2, 2023", "2023-05-02", None),
            ("Sep 30, 2023", "2023-09-30", None),
            ("2023/05/02", "2023-05-02", None),
            ("@February 29, 2024 3:05 PM", "2024-02-29T15:05:00Z", None),
            ("May 2, 2023 15:00", "2023-05-02T15:00:00Z", None),
            ("May 2, 2023 12:00 AM (GMT+5:30)", "2023-05-02T00:00:00+05:30", None),
            ("May 2, 2023 9:00 AM (UTC)", "2023-05-02T09:00:00Z", None),
            ("April 23, 2024 → May 22, 2024", "2024-04-23", Some("2024-05-22")),
            ("May 2, 2023 1:00 PM → 2:30 PM", "2023-05-02T13:00:00Z", Some("2023-05-02T14:30:00Z")),
        ] {
            assert_eq!(read(text), Some((begin.to_owned(), end.map(str::to_owned))), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "May",
            "May 32, 2023",
            "February 29, 2023",
            "02/05/2023",
            "May 2, 20234",
            "May 2, 2023 25:00",
            "May 2, 2023 3:00 PM (EST)",
            "May 2, 2023 → soon",
            "2023-05-021",
            "ä-12-30-1234",
            "→",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
