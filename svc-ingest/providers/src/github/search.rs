//! Queries GitHub's own search.

use serde::Deserialize;

use super::GitHub;
use super::issues::Issue;
use crate::rest::{Items, MAX_LIST_BYTES, read};
use crate::{Call, Entry, Fault};

impl GitHub {
    /// The best matches among issues and pull requests, interleaved.
    pub(super) async fn find(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        let words = plain_words(query);
        let mut found = Vec::new();
        if self.content.issues {
            found = self.found(call, &words, "issue", limit).await?;
        }
        if self.content.pulls {
            let pulls = self.found(call, &words, "pull-request", limit).await?;
            // Both are ranked independently: interleave them.
            let mut turns = Vec::with_capacity(found.len() + pulls.len());
            let (mut issues, mut pulls) = (found.into_iter(), pulls.into_iter());
            loop {
                let (issue, pull) = (issues.next(), pulls.next());
                if issue.is_none() && pull.is_none() {
                    break;
                }
                turns.extend(issue);
                turns.extend(pull);
            }
            found = turns;
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn found(&self, call: &Call, words: &str, kind: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        #[derive(Deserialize)]
        struct Found<'a> {
            #[serde(borrow)]
            items: Items<'a>,
        }
        let within = match &self.repository {
            Some(repository) => format!("repo:{}/{repository}", self.owner),
            None => format!("user:{}", self.owner),
        };
        let query = format!("{words} {within} is:{kind}");
        let limit_text = limit.to_string();
        let parameters = [("q", query.as_str()), ("search_type", "hybrid"), ("per_page", &limit_text)];
        let answer =
            self.get(call, &self.api.at_with(["search", "issues"], &parameters), MAX_LIST_BYTES).await?;
        let found: Found<'_> = read(answer.body())?;
        let mut entries = Vec::new();
        for issue in found.items.each::<Issue>().flatten() {
            let Some((owner, repository)) = issue.repository() else { continue };
            // Other repositories are filtered out, whatever the query selected.
            let is_ours = owner.eq_ignore_ascii_case(&self.owner)
                && self.repository.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(repository));
            if is_ours && self.is_wanted(&issue) {
                entries.extend(issue.entry(self.issue_id(repository, issue.number), None).ok());
            }
        }
        entries.truncate(limit);
        Ok(entries)
    }
}

/// The words of a question without GitHub's search qualifiers, which could reach other repositories.
fn plain_words(query: &str) -> String {
    let plain = query.replace([':', '"', '(', ')'], " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}
