//! The filters of a file list, which also define "all that match".

use cairn_proto::ids::WorkspaceId;

use crate::operations::ROOT;
use crate::operations::bulk::MatchingFiles;
use crate::pages::folders;
use crate::pages::form::Form;

/// The filters: a folder, a part of a name, a tag.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListFilters<'a> {
    folder: Option<&'a str>,
    query: Option<&'a str>,
    tag: Option<&'a str>,
}

impl<'a> ListFilters<'a> {
    /// Empty values do not filter.
    pub(super) fn of(folder: Option<&'a str>, query: Option<&'a str>, tag: Option<&'a str>) -> Self {
        let given = |text: Option<&'a str>| text.map(str::trim).filter(|text| !text.is_empty());
        Self { folder: given(folder), query: given(query), tag: given(tag) }
    }

    pub(super) fn read(form: &'a Form) -> Self {
        Self::of(Some(form.text("in")), Some(form.text("q")), Some(form.text("tag")))
    }

    pub(super) const fn folder(&self) -> Option<&'a str> {
        self.folder
    }

    pub(super) const fn query(&self) -> Option<&'a str> {
        self.query
    }

    pub(super) const fn tag(&self) -> Option<&'a str> {
        self.tag
    }

    /// Whether there are filters beside the folder.
    pub(super) const fn narrows(&self) -> bool {
        self.query.is_some() || self.tag.is_some()
    }

    /// As form fields.
    pub(super) fn fields(&self) -> Vec<(&'static str, &'a str)> {
        let fields = [("in", self.folder), ("q", self.query), ("tag", self.tag)];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The URL of the list.
    pub(super) fn address(&self, workspace: WorkspaceId) -> String {
        let fields = [("folder", self.folder), ("q", self.query), ("tag", self.tag)];
        let given: Vec<_> = fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let path = folders::address(workspace, None);
        if given.is_empty() {
            return path;
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(given);
        format!("{path}?{}", query.finish())
    }

    /// The same selection for a bulk change: names and tags are searched in subfolders, too.
    pub(super) fn matching(&self) -> MatchingFiles {
        // No folder means the root, but everywhere if subfolders are searched.
        let root = (!self.narrows()).then_some(ROOT);
        MatchingFiles {
            folder_id: self.folder.or(root).map(ToOwned::to_owned),
            recursive: Some(self.narrows()),
            tags: self.tag.map(|tag| vec![tag.to_owned()]),
            query: self.query.map(ToOwned::to_owned),
            expected_count: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_match_are_those_that_the_list_shows() {
        let matching = |folder, query, tag| {
            let files = ListFilters::of(folder, query, tag).matching();
            (files.folder_id, files.recursive)
        };
        assert_eq!(matching(None, None, None), (Some("root".to_owned()), Some(false)));
        assert_eq!(matching(Some("1"), Some(" "), None), (Some("1".to_owned()), Some(false)));
        assert_eq!(matching(None, None, Some("a")), (None, Some(true)));
        assert_eq!(matching(Some("1"), Some("x"), None), (Some("1".to_owned()), Some(true)));
    }

    #[test]
    fn what_is_narrowed_stands_in_the_address() {
        let workspace: WorkspaceId = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        let address = ListFilters::of(Some("1"), Some("a&b"), Some("")).address(workspace);
        assert!(address.ends_with("/files?folder=1&q=a%26b"), "{address}");
        assert!(ListFilters::default().address(workspace).ends_with("/files"));
    }
}
