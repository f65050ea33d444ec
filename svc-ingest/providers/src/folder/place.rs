//! Validates the path of a folder.

use std::path::{Component, Path, PathBuf};

const OUTSIDE: &str = "must be below one of the folders that the operator lists in CAIRN_SOURCE_ROOTS";
const NO_ROOTS: &str =
    "folders cannot be connected: the operator has to list where they may be in CAIRN_SOURCE_ROOTS";

/// The folder with symbolic links resolved, as far as it exists: the folder of an unmounted disk stays valid.
///
/// # Errors
/// A message about the path.
pub(super) fn below_roots(path: &str, roots: &[PathBuf]) -> Result<PathBuf, &'static str> {
    if roots.is_empty() {
        return Err(NO_ROOTS);
    }
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err("must be an absolute path");
    }
    let resolved = resolved(path).ok_or(OUTSIDE)?;
    roots.iter().any(|root| resolved.starts_with(root)).then_some(resolved).ok_or(OUTSIDE)
}

/// Resolves links in the existing part of a path; `None` if the rest has `..` components.
fn resolved(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let (above, canonical) = there?;
    let rest = path.strip_prefix(above).ok()?;
    // A dangling link cannot be resolved, and its target may appear later.
    let first =
        above.join(rest.components().next().map_or(Path::new(""), |first| Path::new(first.as_os_str())));
    if !rest.as_os_str().is_empty() && first.symlink_metadata().is_ok() {
        return None;
    }
    let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_below_a_root_when_links_are_resolved() {
        let disk = tempfile::tempdir().unwrap();
        let base = disk.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::create_dir(base.join("root2")).unwrap();
        symlink(&base, root.join("out")).unwrap();
        symlink("docs", root.join("inside")).unwrap();
        symlink(base.join("later"), root.join("dangling")).unwrap();
        let roots = [root.clone()];
        let at = |path: PathBuf| below_roots(path.to_str().unwrap(), &roots);
        assert_eq!(at(root.clone()), Ok(root.clone()));
        assert_eq!(at(root.join("docs/../docs")), Ok(root.join("docs")));
        assert_eq!(at(root.join("inside")), Ok(root.join("docs")));
        assert_eq!(at(root.join("unmounted/part")), Ok(root.join("unmounted/part")));
        for outside in
            ["..", "out", "out/root2", "dangling", "dangling/x", "missing/../../x", "docs/../..", "../root2"]
        {
            assert_eq!(at(root.join(outside)), Err(OUTSIDE), "{outside}");
        }
        assert_eq!(at("/".into()), Err(OUTSIDE));
        assert!(at("docs".into()).is_err());
        assert_eq!(below_roots("/", &[]), Err(NO_ROOTS));
    }
}
