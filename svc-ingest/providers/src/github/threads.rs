//! Lists and reads issues and pull requests with their comments.
//!
//! Both lists are sorted by modification time, so numbered pages shift during a listing: a modified item moves to the end, and those after
//! it move forward. The next page is therefore requested by the time of the last item.

use std::collections::BTreeMap;

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use http::Response;
use url::Url;

use super::issues::{Comment, Issue};
use super::place::{CommentsOf, Place, Stage, Walk};
use super::{GitHub, OVERLAP, PAGE};
use crate::rest::{Collected, Items, MAX_BODY_PAGES, MAX_LIST_BYTES, moment, next_page, read};
use crate::{Call, Fault, Fetched, Version};

/// Comments per page. Each may need a request for its issue.
const COMMENTS_PAGE: &str = "30";

impl CommentsOf {
    /// The path prefix of their URLs.
    const fn kind(self) -> &'static str {
        match self {
            Self::Issues => "issues",
            Self::Reviews => "pulls",
        }
    }
}

impl GitHub {
    pub(super) async fn issues(
        &self,
        call: &Call,
        place: &mut Place,
        repository: &str,
        page: Option<&str>,
    ) -> Result<Collected, Fault> {
        let since = place.before().latest.map(since);
        let url = self.page(page, || {
            let mut url = self.at(repository, &["issues"]);
            let order = [("state", "all"), ("sort", "updated"), ("direction", "asc"), ("per_page", PAGE)];
            url.query_pairs_mut()
                .extend_pairs(order)
                .extend_pairs(since.as_ref().map(|since| ("since", since)));
            url
        })?;
        let answer = self.get(call, &url, MAX_LIST_BYTES).await?;
        let listed: Items<'_> = read(answer.body())?;
        let (mut collected, mut last) = (Collected::default(), None);
        for issue in listed.each::<Issue>() {
            let issue = match issue {
                Ok(issue) => issue,
                Err(fault) => {
                    collected.take(Err(fault));
                    continue;
                }
            };
            last = issue.updated_at().or(last);
            if self.is_wanted(&issue) {
                if let Some(at) = issue.updated_at() {
                    place.now.saw_issue(at);
                }
                collected.take(self.entry(repository, &issue, None));
            }
        }
        let next = next_in_time(&answer, &url, last)?;
        if page.is_none() && since.is_none() {
            place.now.comments = Some(self.latest_comment(call, repository).await?);
        }
        place.stage = match next {
            Some(next) => Stage::Issues { page: Some(next.into()) },
            // A first listing has every issue with its comments: only later comments matter by themselves.
            None if since.is_some() => Stage::Comments { of: CommentsOf::Issues, page: None },
            None => Stage::Files(Walk::default()),
        };
        Ok(collected)
    }

    /// Issues with new or edited comments, which do not always update the issue's own time.
    pub(super) async fn comments(
        &self,
        call: &Call,
        place: &mut Place,
        repository: &str,
        of: CommentsOf,
        page: Option<&str>,
    ) -> Result<Collected, Fault> {
        let before = place.before();
        let since = before.comments.or(before.latest).map(since);
        let url = self.page(page, || {
            let mut url = self.at(repository, &[of.kind(), "comments"]);
            let order = [("sort", "updated"), ("direction", "asc"), ("per_page", COMMENTS_PAGE)];
            url.query_pairs_mut()
                .extend_pairs(order)
                .extend_pairs(since.as_ref().map(|since| ("since", since)));
            url
        })?;
        let (mut collected, mut next) = (Collected::default(), None);
        if let Some(answer) = self.list_of_comments(call, &url, page.is_none()).await? {
            let listed: Items<'_> = read(answer.body())?;
            let (mut last, mut written) = (None, BTreeMap::new());
            for comment in listed.each::<Comment>().flatten() {
                let Some(at) = comment.updated_at() else { continue };
                last = Some(at);
                place.now.saw_comment(at);
                if let Some(number) = comment.number() {
                    written.insert(number, at);
                }
            }
            for (number, at) in written {
                if let Some(issue) = self.issue(call, repository, number).await?
                    && self.is_wanted(&issue)
                    && issue.updated_at() < Some(at)
                {
                    collected.take(self.entry(repository, &issue, Some(at)));
                }
            }
            next = next_in_time(&answer, &url, last)?;
        }
        place.stage = match (next, of) {
            (Some(next), of) => Stage::Comments { of, page: Some(next.into()) },
            (None, CommentsOf::Issues) if self.content.pulls => {
                Stage::Comments { of: CommentsOf::Reviews, page: None }
            }
            (None, _) => Stage::Files(Walk::default()),
        };
        Ok(collected)
    }

    /// A page of comments; `None` from compatible servers without this endpoint.
    async fn list_of_comments(
        &self,
        call: &Call,
        url: &Url,
        is_first: bool,
    ) -> Result<Option<Response<Bytes>>, Fault> {
        match self.get(call, url, MAX_LIST_BYTES).await {
            Err(Fault::Gone) if is_first => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// The time of the latest comment before the first listing of a repository, in microseconds, so that comments written during the
    /// listing count as changes.
    async fn latest_comment(&self, call: &Call, repository: &str) -> Result<i64, Fault> {
        let mut latest = 0;
        let reviews = self.content.pulls.then_some(CommentsOf::Reviews);
        for of in std::iter::once(CommentsOf::Issues).chain(reviews) {
            let mut url = self.at(repository, &[of.kind(), "comments"]);
            url.query_pairs_mut().extend_pairs([
                ("sort", "updated"),
                ("direction", "desc"),
                ("per_page", "1"),
            ]);
            let Some(answer) = self.list_of_comments(call, &url, true).await? else { continue };
            let listed: Items<'_> = read(answer.body())?;
            let first = listed.each::<Comment>().flatten().next();
            let at = first.and_then(|comment| comment.updated_at()).map(Timestamp::as_micros);
            latest = latest.max(at.unwrap_or_default());
        }
        Ok(latest)
    }

    /// One issue; `None` if it does not exist, or was moved to another repository.
    async fn issue(&self, call: &Call, repository: &str, number: u64) -> Result<Option<Issue>, Fault> {
        let url = self.at(repository, &["issues", &number.to_string()]);
        let answer = match self.get(call, &url, MAX_LIST_BYTES).await {
            Err(Fault::Gone) => return Ok(None),
            answer => answer?,
        };
        let issue: Issue = read(answer.body())?;
        let is_elsewhere = issue.repository().is_some_and(|(owner, name)| {
            !owner.eq_ignore_ascii_case(&self.owner) || !name.eq_ignore_ascii_case(repository)
        });
        Ok((issue.number == number && !is_elsewhere).then_some(issue))
    }

    pub(super) async fn fetch_issue(
        &self,
        call: &Call,
        repository: &str,
        number: u64,
        known: Option<&Version>,
    ) -> Result<Fetched, Fault> {
        let issue = self.issue(call, repository, number).await?.filter(|issue| self.is_wanted(issue));
        let Some(issue) = issue else { return Ok(Fetched::Gone) };
        let has_comments = issue.comments != Some(0) || issue.is_pull();
        if !has_comments && known == Some(&issue.version(None)) {
            return Ok(Fetched::Same);
        }
        let number = number.to_string();
        let mut comments = Vec::new();
        if issue.comments != Some(0) {
            comments = self.comments_of(call, self.at(repository, &["issues", &number, "comments"])).await?;
        }
        if issue.is_pull() {
            comments
                .extend(self.comments_of(call, self.at(repository, &["pulls", &number, "comments"])).await?);
        }
        // A comment may be later than the issue's own time, so the version includes both.
        let version = issue.version(comments.iter().filter_map(Comment::updated_at).max());
        if known == Some(&version) {
            return Ok(Fetched::Same);
        }
        let text = issue.text(&comments);
        if text.is_too_large() {
            return Ok(Fetched::TooLarge(crate::rest::MAX_BODY_BYTES as u64));
        }
        Ok(Fetched::Body(text.body(&issue, version)))
    }

    async fn comments_of(&self, call: &Call, mut url: Url) -> Result<Vec<Comment>, Fault> {
        url.query_pairs_mut().append_pair("per_page", PAGE);
        let mut comments = Vec::new();
        let mut next = Some(url);
        let mut bytes = 0;
        for _ in 0..MAX_BODY_PAGES {
            let Some(url) = next else { break };
            let answer = self.get(call, &url, MAX_LIST_BYTES).await?;
            bytes += answer.body().len();
            if bytes > 2 * MAX_LIST_BYTES {
                return Err(Fault::TooLarge(bytes as u64));
            }
            let listed: Items<'_> = read(answer.body())?;
            comments.extend(listed.each::<Comment>().flatten());
            next = next_page(answer.headers(), &url)?;
        }
        Ok(comments)
    }
}

/// The time from which changes are requested.
fn since(latest: i64) -> String {
    let overlap = i64::try_from(OVERLAP.as_micros()).unwrap_or_default();
    Timestamp::from_micros(latest.saturating_sub(overlap).max(0)).to_rfc3339()
}

/// The next page of a list sorted by modification time: the items since the time of the last one. The `Link` header is only followed while
/// all items of a page have the same time.
fn next_in_time(answer: &Response<Bytes>, url: &Url, last: Option<Timestamp>) -> Result<Option<Url>, Fault> {
    const SINCE: &str = "since";
    let linked = next_page(answer.headers(), url)?;
    let value = url.query_pairs().find(|(name, _)| name == SINCE).map(|(_, value)| value.into_owned());
    let began = value.as_deref().and_then(moment);
    let Some((_, last)) = linked.as_ref().zip(last.filter(|last| Some(*last) > began)) else {
        return Ok(linked);
    };
    let others: Vec<(String, String)> =
        url.query_pairs().into_owned().filter(|(name, _)| name != SINCE && name != "page").collect();
    let mut next = url.clone();
    next.query_pairs_mut().clear().extend_pairs(others).append_pair(SINCE, &last.to_rfc3339());
    Ok(Some(next))
}
