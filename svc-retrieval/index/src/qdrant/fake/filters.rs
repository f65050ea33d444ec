//! Evaluates filters.

use qdrant_client::qdrant::condition::ConditionOneOf;
use qdrant_client::qdrant::r#match::MatchValue;
use qdrant_client::qdrant::payload_index_params::IndexParams;
use qdrant_client::qdrant::{Condition, FieldCondition, Filter, Range, TextIndexParams, TokenizerType};
use tonic::Status;

use super::collection::{Collection, Point, text_of};
use super::unsupported;

impl Collection {
    /// Whether a point matches a filter; every point matches none.
    pub(super) fn passes(&self, filter: Option<&Filter>, id: &str, point: &Point) -> Result<bool, Status> {
        let Some(filter) = filter else { return Ok(true) };
        for condition in &filter.must {
            if !self.meets(condition, id, point)? {
                return Ok(false);
            }
        }
        for condition in &filter.must_not {
            if self.meets(condition, id, point)? {
                return Ok(false);
            }
        }
        for condition in &filter.should {
            if self.meets(condition, id, point)? {
                return Ok(true);
            }
        }
        Ok(filter.should.is_empty())
    }

    fn meets(&self, condition: &Condition, id: &str, point: &Point) -> Result<bool, Status> {
        let kind = condition.condition_one_of.as_ref();
        if let Some(ConditionOneOf::Filter(filter)) = kind {
            return self.passes(Some(filter), id, point);
        }
        if let Some(ConditionOneOf::HasId(some)) = kind {
            return Ok(some.has_id.iter().any(|other| text_of(Some(other)).is_ok_and(|other| other == id)));
        }
        if let Some(ConditionOneOf::HasVector(vector)) = kind {
            return Ok(point.vectors.contains_key(&vector.has_vector));
        }
        if let Some(ConditionOneOf::IsEmpty(field)) = kind {
            return Ok(!point.payload.contains_key(&field.key));
        }
        let Some(ConditionOneOf::Field(field)) = kind else { return Err(unsupported("this condition")) };
        self.has(field, point)
    }

    fn has(&self, wanted: &FieldCondition, point: &Point) -> Result<bool, Status> {
        if let Some(range) = &wanted.range {
            return Ok(point.number(&wanted.key).is_some_and(|number| is_within(range, number)));
        }
        let Some(value) = wanted.r#match.as_ref().and_then(|wanted| wanted.match_value.as_ref()) else {
            return Err(unsupported("this condition of a field"));
        };
        if let MatchValue::Integer(number) = value {
            return Ok(point.integers(&wanted.key).contains(number));
        }
        let Some(text) = point.text(&wanted.key) else { return Ok(false) };
        if let MatchValue::Keyword(keyword) = value {
            return Ok(text == keyword);
        }
        if let MatchValue::Keywords(keywords) = value {
            return Ok(keywords.strings.iter().any(|keyword| text == keyword));
        }
        if let MatchValue::Text(words) = value {
            let is_prefixes = self.text_index(&wanted.key)?.tokenizer() == TokenizerType::Prefix;
            return Ok(words.split_whitespace().all(|word| holds(text, word, is_prefixes)));
        }
        let MatchValue::Phrase(phrase) = value else { return Err(unsupported("this match")) };
        self.text_index(&wanted.key)?;
        let (row, tokens): (Vec<&str>, Vec<&str>) = (phrase.split(' ').collect(), text.split(' ').collect());
        Ok(tokens.windows(row.len()).any(|window| window == row))
    }

    /// Without a text index, Qdrant matches substrings, which the engine never intends.
    fn text_index(&self, field: &str) -> Result<&TextIndexParams, Status> {
        let params = self.indexes.get(field).and_then(|index| index.field_index_params.as_ref());
        let Some(IndexParams::TextIndexParams(text)) = params.and_then(|params| params.index_params.as_ref())
        else {
            return Err(Status::invalid_argument(format!("there is no index of the texts in {field}")));
        };
        Ok(text)
    }
}

fn holds(text: &str, word: &str, is_prefixes: bool) -> bool {
    let mut tokens = text.split(' ');
    if is_prefixes { tokens.any(|token| token.starts_with(word)) } else { tokens.any(|token| token == word) }
}

fn is_within(range: &Range, number: f64) -> bool {
    range.lt.is_none_or(|bound| number < bound)
        && range.lte.is_none_or(|bound| number <= bound)
        && range.gt.is_none_or(|bound| number > bound)
        && range.gte.is_none_or(|bound| number >= bound)
}
