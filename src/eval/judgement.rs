//! Questions with their expected results, and how a ranking is judged.

use super::api::Hit;
use super::metrics;

/// A question with its expected results.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The key in a saved run.
    pub(super) id: String,
    pub(super) text: String,
    pub(super) expected: Vec<Expected>,
}

/// An expected result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    /// The path or the id of a document.
    pub(super) document: String,
    /// Lines of the document, from 1, both inclusive; absent if any part of it answers the question.
    pub(super) lines: Option<(u32, u32)>,
    /// The relevance.
    pub(super) gain: f64,
}

impl Expected {
    fn is_met_by(&self, hit: &Hit) -> bool {
        let names_it = self.document == hit.document_id
            || self.document.trim_start_matches('/') == hit.path.trim_start_matches('/');
        names_it && self.lines.is_none_or(|(first, last)| hit.start_line <= last && first <= hit.end_line)
    }
}

impl Question {
    /// The gains of all expected results.
    pub(super) fn judged(&self) -> Vec<f64> {
        self.expected.iter().map(|expected| expected.gain).collect()
    }

    /// The gains of a ranking, best place first.
    ///
    /// Hits are grouped by document; a document takes the place of its best hit. If lines are expected, the document
    /// alone earns nothing: the hits that contain those lines do, each expectation once.
    pub(super) fn gains(&self, hits: &[Hit]) -> Vec<f64> {
        let mut open: Vec<&Expected> = self.expected.iter().collect();
        let places = places(hits);
        let mut gains = Vec::with_capacity(places.len());
        for (place, is_first_of_document) in places {
            let met = open.iter().position(|expected| expected.is_met_by(place));
            match met {
                Some(index) => gains.push(open.swap_remove(index).gain),
                None if is_first_of_document => gains.push(0.0),
                None => {}
            }
        }
        gains
    }
}

/// The hits grouped by document in ranking order, each with whether it is the first of its document.
fn places(hits: &[Hit]) -> Vec<(&Hit, bool)> {
    let documents = metrics::documents(hits.iter().map(|hit| (hit.document_id.as_str(), hit.score)));
    let mut places = Vec::with_capacity(hits.len());
    for document in documents {
        let of_document = hits.iter().filter(|hit| hit.document_id == document);
        places.extend(of_document.enumerate().map(|(place, hit)| (hit, place == 0)));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(document: &str, score: f64, lines: (u32, u32)) -> Hit {
        Hit {
            document_id: document.to_owned(),
            path: format!("/{document}.md"),
            start_line: lines.0,
            end_line: lines.1,
            score,
        }
    }

    fn document(name: &str, gain: f64) -> Expected {
        Expected { document: name.to_owned(), lines: None, gain }
    }

    fn lines(name: &str, first: u32, last: u32) -> Expected {
        Expected { document: name.to_owned(), lines: Some((first, last)), gain: 1.0 }
    }

    fn question(expected: impl Into<Vec<Expected>>) -> Question {
        Question { id: "q".to_owned(), text: "?".to_owned(), expected: expected.into() }
    }

    #[test]
    fn a_document_counts_once_at_its_best_place() {
        let hits =
            [hit("x", 0.9, (1, 2)), hit("a", 0.8, (1, 2)), hit("a", 0.7, (3, 4)), hit("b", 0.6, (1, 1))];
        assert_eq!(question([document("a", 3.0), document("b", 1.0)]).gains(&hits), [0.0, 3.0, 1.0]);
    }

    #[test]
    fn a_document_is_named_by_its_id_or_its_path() {
        let hits = [hit("a", 0.9, (1, 2))];
        for name in ["a", "/a.md", "a.md"] {
            assert_eq!(question([document(name, 1.0)]).gains(&hits), [1.0], "{name}");
        }
        assert_eq!(question([document("b.md", 1.0)]).gains(&hits), [0.0]);
    }

    #[test]
    fn where_lines_are_expected_other_lines_are_not_right() {
        let hits = [hit("a", 0.9, (1, 9)), hit("a", 0.8, (10, 19)), hit("a", 0.7, (20, 29))];
        assert_eq!(question([lines("a", 12, 13)]).gains(&hits), [0.0, 1.0]);
        // Both ends belong to the range.
        assert_eq!(question([lines("a", 9, 9)]).gains(&hits), [1.0]);
        assert_eq!(question([lines("a", 30, 40)]).gains(&hits), [0.0]);
    }
}
