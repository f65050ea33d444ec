//! The form fields of each provider. The service that knows the provider validates them; limits and costs are taken
//! from its guide.

use cairn_proto::domain::SourceMode;

use crate::guides;

const GUIDE: &str = "connecting-a-source";
const INDEXED: SourceMode = SourceMode::Indexed;
const CATALOG: SourceMode = SourceMode::Catalog;
const LIVE: SourceMode = SourceMode::Live;

/// A provider's form.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What is read from it.
    pub(super) told: &'static str,
    /// The default first.
    pub(super) modes: &'static [SourceMode],
    pub(super) settings: &'static [Input],
    pub(super) credentials: &'static [Input],
}

/// A field.
#[derive(Debug)]
pub(super) struct Input {
    /// The API's name.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Number,
    /// A list, one value per line.
    Lines,
    /// A single choice.
    One(&'static [&'static str]),
    /// A multiple choice.
    Some(&'static [&'static str]),
    /// A secret, never rendered back.
    Secret,
}

const fn input(name: &'static str, label: &'static str, hint: &'static str, kind: Kind) -> Input {
    Input { name, label, hint, kind, is_required: false }
}

const fn needed(name: &'static str, label: &'static str, hint: &'static str, kind: Kind) -> Input {
    Input { is_required: true, ..input(name, label, hint, kind) }
}

const INCLUDE: Input =
    input("include", "Only these", "Patterns as in a .gitignore, one a line, such as *.md.", Kind::Lines);
const EXCLUDE: Input =
    input("exclude", "Not these", "Patterns as in a .gitignore, one a line, such as /drafts/.", Kind::Lines);
const BASE: Input = input("baseUrl", "Base address", "Only where a gateway stands before it.", Kind::Line);
const SITE: Input = needed("site", "Site", "Such as https://acme.atlassian.net.", Kind::Line);
const EMAIL: Input =
    needed("email", "Email of the account", "Of the account that made the token.", Kind::Line);
const API_TOKEN: Input =
    needed("token", "API token", "A classic one, made at id.atlassian.com.", Kind::Secret);

/// Every provider, in the order of the guide.
pub(super) const ALL: &[Provider] = &[
    Provider {
        name: "folder",
        title: "Folder",
        told: "Files of the server",
        modes: &[INDEXED, CATALOG],
        settings: &[
            needed(
                "path",
                "Path",
                "Of a folder on the server, below one that its operator allows.",
                Kind::Line,
            ),
            INCLUDE,
            EXCLUDE,
        ],
        credentials: &[],
    },
    Provider {
        name: "git",
        title: "Git",
        told: "Files of a repository",
        modes: &[INDEXED, CATALOG],
        settings: &[
            needed("url", "Address", "As for git clone, over http(s).", Kind::Line),
            input("ref", "Branch, tag or commit", "The default branch when left empty.", Kind::Line),
            input("path", "Folder", "In the repository; all of it when left empty.", Kind::Line),
            INCLUDE,
            EXCLUDE,
        ],
        credentials: &[
            input("username", "Username", "Where the host wants one: oauth2 for GitLab.", Kind::Line),
            input("token", "Token", "None for a public repository.", Kind::Secret),
        ],
    },
    Provider {
        name: "web",
        title: "Web",
        told: "A page, a sitemap, a feed, a site",
        modes: &[INDEXED, CATALOG, LIVE],
        settings: &[
            needed("kind", "What to read", "", Kind::One(&["page", "sitemap", "feed", "crawl"])),
            input("url", "Address", "Where it begins.", Kind::Line),
            input("urls", "More pages", "For the kind page: addresses, one a line.", Kind::Lines),
            input("maxPages", "Pages at most", "Of a sitemap or crawl: 1 000 when left empty.", Kind::Number),
            input("maxDepth", "Links one after another", "Of a crawl: 10 when left empty.", Kind::Number),
        ],
        credentials: &[],
    },
    Provider {
        name: "s3",
        title: "S3",
        told: "Objects of a bucket",
        modes: &[INDEXED, CATALOG],
        settings: &[
            needed("bucket", "Bucket", "Its name, without an address.", Kind::Line),
            input("prefix", "Prefix", "What keys begin with.", Kind::Line),
            input("region", "Region", "us-east-1 when left empty.", Kind::Line),
            input(
                "endpoint",
                "Endpoint",
                "The store's address without the bucket; Amazon's when left empty.",
                Kind::Line,
            ),
        ],
        credentials: &[
            needed("accessKeyId", "Access key id", "", Kind::Secret),
            needed("secretAccessKey", "Secret access key", "", Kind::Secret),
            input("sessionToken", "Session token", "Of temporary keys.", Kind::Secret),
        ],
    },
    Provider {
        name: "github",
        title: "GitHub",
        told: "Issues, pull requests, files",
        modes: &[INDEXED, CATALOG, LIVE],
        settings: &[
            needed("owner", "Owner", "The account or organisation, such as rust-lang.", Kind::Line),
            input("repo", "Repository", "All that the token sees when left empty.", Kind::Line),
            input(
                "content",
                "What to read",
                "All when none is chosen.",
                Kind::Some(&["issues", "pulls", "files"]),
            ),
            input(
                "baseUrl",
                "Base address",
                "Of GitHub Enterprise Server, such as https://github.example/api/v3.",
                Kind::Line,
            ),
        ],
        credentials: &[needed("token", "Token", "A fine-grained personal access token.", Kind::Secret)],
    },
    Provider {
        name: "notion",
        title: "Notion",
        told: "Pages and rows of databases",
        modes: &[INDEXED, CATALOG, LIVE],
        settings: &[BASE],
        credentials: &[needed(
            "token",
            "Token",
            "The secret of an internal integration (ntn_…).",
            Kind::Secret,
        )],
    },
    Provider {
        name: "google_drive",
        title: "Google Drive",
        told: "Files",
        modes: &[CATALOG, INDEXED, LIVE],
        settings: &[
            input("driveId", "Shared drive", "Its id.", Kind::Line),
            input("folderId", "Folder", "Its id: it is read with all below it.", Kind::Line),
            BASE,
        ],
        credentials: &[
            input("serviceAccount", "Service account", "Its key file, as text.", Kind::Secret),
            input(
                "subject",
                "Acts for",
                "The person, where the domain delegates to the account.",
                Kind::Line,
            ),
            input(
                "accessToken",
                "Access token",
                "Instead of a service account; it ends after an hour.",
                Kind::Secret,
            ),
        ],
    },
    Provider {
        name: "slack",
        title: "Slack",
        told: "Messages",
        modes: &[LIVE],
        settings: &[
            input(
                "channelTypes",
                "Channels",
                "Public ones when none is chosen.",
                Kind::Some(&["public_channel", "private_channel", "mpim", "im"]),
            ),
            BASE,
        ],
        credentials: &[needed(
            "token",
            "Token",
            "A user token (xoxp-…) of an app of your organisation.",
            Kind::Secret,
        )],
    },
    Provider {
        name: "confluence",
        title: "Confluence",
        told: "Pages",
        modes: &[INDEXED, CATALOG, LIVE],
        settings: &[
            SITE,
            input(
                "spaces",
                "Spaces",
                "Their keys, one a line; all that the account sees when left empty.",
                Kind::Lines,
            ),
        ],
        credentials: &[EMAIL, API_TOKEN],
    },
    Provider {
        name: "jira",
        title: "Jira",
        told: "Issues",
        modes: &[INDEXED, CATALOG, LIVE],
        settings: &[
            SITE,
            input(
                "projects",
                "Projects",
                "Their keys, one a line; all that the account sees when left empty.",
                Kind::Lines,
            ),
        ],
        credentials: &[EMAIL, API_TOKEN],
    },
    Provider {
        name: "linear",
        title: "Linear",
        told: "Issues and documents",
        modes: &[INDEXED, CATALOG, LIVE],
        settings: &[BASE],
        credentials: &[needed(
            "token",
            "Token",
            "A personal API key (lin_api_…) or an OAuth token.",
            Kind::Secret,
        )],
    },
    Provider {
        name: "mcp",
        title: "MCP",
        told: "Resources of a server, or its search tool",
        modes: &[INDEXED, CATALOG, LIVE],
        settings: &[
            needed("url", "Address", "Of the server's endpoint.", Kind::Line),
            input(
                "searchTool",
                "Search tool",
                "For the mode Live, where it is not called search.",
                Kind::Line,
            ),
            input("queryArgument", "Argument of the question", "Of that tool.", Kind::Line),
            input("fetchTool", "Fetch tool", "Where it is not called fetch.", Kind::Line),
        ],
        credentials: &[input(
            "token",
            "Token",
            "Sent as a bearer token; none for an open server.",
            Kind::Secret,
        )],
    },
];

/// The provider of that name.
pub(super) fn named(name: &str) -> Option<&'static Provider> {
    ALL.iter().find(|provider| provider.name == name)
}

impl Provider {
    /// The guide's row for a heading such as `Cost`: a line of Markdown.
    pub(super) fn row(&self, heading: &str) -> Option<&'static str> {
        let page = guides::named(GUIDE)?.file(&format!("references/{}.md", self.name))?;
        let start = format!("| {heading} | ");
        page.text.lines().find_map(|line| line.strip_prefix(start.as_str())?.strip_suffix(" |"))
    }

    /// The URL of its guide.
    pub(super) fn guide(&self) -> String {
        format!("/docs/guides/{GUIDE}/references/{}.md", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words formatted as code in a row.
    fn words(row: &str) -> Vec<&str> {
        row.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn forms_ask_for_what_the_guides_tell() {
        let guide = guides::named(GUIDE).unwrap();
        let pages = guide.files.iter().filter(|file| file.path.starts_with("references/")).count();
        assert_eq!(ALL.len(), pages, "each provider has a form");
        for provider in ALL {
            let name = provider.name;
            let modes = words(provider.row("Modes").unwrap());
            let of_form: Vec<_> = provider.modes.iter().map(|mode| mode.as_str()).collect();
            assert_eq!(&modes[..of_form.len()], of_form, "{name}");
            for (heading, inputs) in [("Settings", provider.settings), ("Credentials", provider.credentials)]
            {
                let told = words(provider.row(heading).unwrap());
                for input in inputs {
                    assert!(told.contains(&input.name), "{name}: {heading} tell no {}", input.name);
                    if let Kind::One(words) | Kind::Some(words) = input.kind {
                        assert!(words.iter().all(|word| told.contains(word)), "{name}: {words:?}");
                    }
                }
            }
            assert!(provider.row("Cost").is_some() && provider.row("Is read").is_some(), "{name}");
        }
    }
}
