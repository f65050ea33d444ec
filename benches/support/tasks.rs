//! Tasks, as records of a database with seven properties.

use cairn_chassis::clock::Timestamp;

pub(crate) const MICROS_A_DAY: i64 = 86_400_000_000;
const DAYS: i64 = 2_000;
/// The vocabulary of texts.
pub(crate) const WORDS: [&str; 24] = [
    "service", "request", "server", "index", "folder", "change", "token", "answer", "search", "position",
    "release", "deploy", "staging", "owner", "write", "cache", "query", "schema", "backup", "metric",
    "trace", "budget", "retry", "quorum",
];
/// The options of the select.
pub(crate) const STATUSES: [&str; 5] = ["Open", "Planned", "Doing", "Review", "Finished"];
/// The options of the multi-select.
pub(crate) const TAGS: [&str; 8] = ["red", "green", "blue", "urgent", "later", "legal", "design", "data"];

/// A record of the sample.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) notes: String,
    pub(crate) points: u32,
    /// Since 1970.
    pub(crate) day: i64,
    pub(crate) is_done: bool,
    /// An index of [`STATUSES`].
    pub(crate) status: usize,
    /// Indexes of [`TAGS`].
    pub(crate) tags: [usize; 2],
}

impl Row {
    /// The header of a CSV table of tasks.
    pub(crate) const HEAD: &str = "Name,Notes,Points,Due,Done,Status,Tags\n";

    /// Deterministic for a number and a total.
    pub(crate) fn of(number: u32, records: u32) -> Self {
        let mut state = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut word = || {
            // xorshift64: any uniform generator is sufficient.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            WORDS.get(usize::try_from(state % 24).unwrap_or_default()).copied().unwrap_or_default()
        };
        let name = format!("Task {number} {} {}", word(), word());
        let notes: Vec<&str> = (0..10).map(|_| word()).collect();
        let place = number as usize;
        Self {
            name,
            notes: notes.join(" "),
            points: (u64::from(number) * 7_919 % u64::from(records)) as u32,
            day: 18_262 + i64::from(number) % DAYS,
            is_done: number.is_multiple_of(3),
            status: place % STATUSES.len(),
            tags: [place % TAGS.len(), (place + 3) % TAGS.len()],
        }
    }

    /// The CSV row of the task.
    pub(crate) fn csv(&self) -> String {
        let status = STATUSES.get(self.status).copied().unwrap_or_default();
        let tags = self.tags.map(|tag| TAGS.get(tag).copied().unwrap_or_default()).join(", ");
        let (name, notes, points, due, done) =
            (&self.name, &self.notes, self.points, self.date(), self.is_done);
        format!("{name},{notes},{points},{due},{done},{status},\"{tags}\"\n")
    }

    pub(crate) fn date(&self) -> String {
        let at = Timestamp::from_micros(self.day * MICROS_A_DAY);
        at.to_rfc3339().chars().take(10).collect()
    }
}
