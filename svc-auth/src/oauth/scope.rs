//! Scopes: the names of the three permissions.

use cairn_chassis::identity::{Permission, PermissionSet};

use crate::model::oauth_error::{Code, OauthError};

/// Parses a scope parameter; `None` if it is absent. Unknown scopes (`openid`, `offline_access`) are ignored, as long
/// as one of ours is among them.
pub(super) fn read(scope: Option<&str>) -> Result<Option<PermissionSet>, OauthError> {
    let text = scope.unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    let refused = |message| Err(OauthError::new(Code::InvalidScope, "scope", message));
    // RFC 6749, section 3.3.
    if !text.bytes().all(|byte| byte == b' ' || (byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))) {
        return refused("scope must be names with one space between them");
    }
    let asked: PermissionSet = text.split(' ').filter_map(|name| name.parse::<Permission>().ok()).collect();
    if asked == PermissionSet::default() {
        return refused("scope must name some of: read write delete");
    }
    Ok(Some(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_some_of_the_permissions() {
        let read_write: PermissionSet = [Permission::Read, Permission::Write].into_iter().collect();
        assert_eq!(read(None), Ok(None));
        assert_eq!(read(Some(" ")), Ok(None));
        assert_eq!(read(Some("write read")), Ok(Some(read_write)));
        assert_eq!(read(Some("read offline_access write")), Ok(Some(read_write)));
        for odd in ["claudeai", "READ", "read,write", "read\twrite", "\"read\"", "read\u{e9}"] {
            assert_eq!(read(Some(odd)).unwrap_err().code, Code::InvalidScope, "{odd}");
        }
    }
}
