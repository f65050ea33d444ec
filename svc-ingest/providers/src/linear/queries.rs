//! The GraphQL queries.
//!
//! Flat pages with few nested connections: the cost of a nested field is multiplied by `first` of every enclosing connection.

pub(super) const VIEWER: &str = "query Viewer { viewer { email name } }";

/// The time of the latest change.
pub(super) const LATEST: &str = "query Latest {
  issues(first: 1, includeArchived: true, orderBy: updatedAt) { nodes { updatedAt } }
  comments(first: 1, includeArchived: true, orderBy: updatedAt) { nodes { updatedAt } }
  documents(first: 1, includeArchived: true, orderBy: updatedAt) { nodes { updatedAt } }
}";

pub(super) const ISSUES: &str =
    "query Issues($first: Int!, $after: String, $filter: IssueFilter, $order: PaginationOrderBy) {
  issues(first: $first, after: $after, filter: $filter, includeArchived: true, orderBy: $order) {
    nodes { id identifier title updatedAt trashed url }
    pageInfo { hasNextPage endCursor }
  }
}";

pub(super) const DOCUMENTS: &str =
    "query Documents($first: Int!, $after: String, $filter: DocumentFilter, $order: PaginationOrderBy) {
  documents(first: $first, after: $after, filter: $filter, includeArchived: true, orderBy: $order) {
    nodes { id title content updatedAt trashed url }
    pageInfo { hasNextPage endCursor }
  }
}";

pub(super) const COMMENTS: &str =
    "query Comments($first: Int!, $after: String, $filter: CommentFilter, $order: PaginationOrderBy) {
  comments(first: $first, after: $after, filter: $filter, includeArchived: true, orderBy: $order) {
    nodes { id updatedAt issue { id identifier title updatedAt trashed url } }
    pageInfo { hasNextPage endCursor }
  }
}";

pub(super) const ISSUE: &str = "query Issue($id: String!, $after: String) {
  issue(id: $id) {
    id identifier title description updatedAt trashed url
    state { name } labels { nodes { name } } creator { name }
    comments(first: 100, after: $after) {
      nodes { body createdAt updatedAt user { name } }
      pageInfo { hasNextPage endCursor }
    }
  }
}";

pub(super) const DOCUMENT: &str = "query Document($id: String!) {
  document(id: $id) { id title content updatedAt trashed url }
}";

pub(super) const SEARCH: &str = "query Search($term: String!, $first: Int!) {
  searchIssues(term: $term, first: $first, includeComments: true) {
    nodes { id identifier title updatedAt trashed url }
  }
}";
