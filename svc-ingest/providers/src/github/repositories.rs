//! Lists the repositories to read.

use serde::Deserialize;
use url::Url;

use super::{GitHub, Owner, PAGE, is_name};
use crate::rest::{Items, MAX_LIST_BYTES, next_page, read};
use crate::{Call, Fault};

/// Pages of an owner's repositories.
const MAX_PAGES: usize = 20;

#[derive(Deserialize)]
struct Named {
    name: String,
    owner: Owner,
}

impl GitHub {
    /// The names of the repositories, and whether the list is complete.
    pub(super) async fn repositories(&self, call: &Call) -> Result<(Vec<String>, bool), Fault> {
        if let Some(repository) = &self.repository {
            return Ok((vec![repository.clone()], true));
        }
        let query = [("per_page", PAGE), ("sort", "full_name")];
        let (mine, is_whole) = self.named(call, self.api.at_with(["user", "repos"], &query)).await?;
        if !mine.is_empty() {
            return Ok((mine, is_whole));
        }
        // The public repositories of an owner other than the token's.
        let public = match self.named(call, self.api.at_with(["orgs", &self.owner, "repos"], &query)).await {
            Err(Fault::Gone) => {
                self.named(call, self.api.at_with(["users", &self.owner, "repos"], &query)).await
            }
            named => named,
        };
        public.map(|(names, is_all)| (names, is_whole && is_all))
    }

    async fn named(&self, call: &Call, first: Url) -> Result<(Vec<String>, bool), Fault> {
        let (mut names, mut is_whole) = (Vec::new(), true);
        let mut next = Some(first);
        for _ in 0..MAX_PAGES {
            let Some(url) = next else { break };
            let answer = self.get(call, &url, MAX_LIST_BYTES).await?;
            let listed: Items<'_> = read(answer.body())?;
            for named in listed.each::<Named>() {
                match named {
                    Ok(named) if !named.owner.login.eq_ignore_ascii_case(&self.owner) => {}
                    Ok(named) if is_name(&named.name) => names.push(named.name),
                    Ok(_) | Err(_) => is_whole = false,
                }
            }
            next = next_page(answer.headers(), &url)?;
        }
        names.sort();
        names.dedup();
        Ok((names, is_whole && next.is_none()))
    }
}
