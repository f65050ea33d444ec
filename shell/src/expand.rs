//! Words to arguments: globs become the paths that they match, or stay as they are when there are none.

use crate::context::{Context, Halt};
use crate::glob::Glob;
use crate::parse::Word;
use crate::paths;
use crate::tree::{Kind, Node};

/// The most bytes that the arguments of one command have, as on Linux.
const MOST: usize = 2 << 20;

/// The arguments that words stand for, or why there are too many.
pub(crate) fn expand(ctx: &Context<'_>, words: &[Word]) -> Result<Result<Vec<String>, String>, Halt> {
    let mut args = Vec::with_capacity(words.len());
    let mut bytes = 0;
    for word in words {
        let before = args.len();
        if let Some(glob) = &word.glob {
            for path in matching(ctx, glob)? {
                bytes += path.len() + 1;
                if bytes > MOST {
                    return Ok(Err(format!(
                        "shell: the glob {} stands for too many paths: use `find` or `grep -r --include`",
                        word.text
                    )));
                }
                args.push(path);
            }
        }
        if args.len() == before {
            args.push(word.text.clone());
        }
    }
    Ok(Ok(args))
}

/// The paths that a glob matches, in byte order, segment by segment.
fn matching(ctx: &Context<'_>, glob: &str) -> Result<Vec<String>, Halt> {
    let tree = ctx.tree;
    let absolute = glob.starts_with('/');
    let root = if absolute { tree.root() } else { ctx.cwd() };
    let mut found: Vec<(Node, String)> = vec![(root, if absolute { "/".to_owned() } else { String::new() })];
    let mut segments = glob.split('/').filter(|segment| !segment.is_empty()).peekable();
    while let Some(segment) = segments.next() {
        let inner = segments.peek().is_some() || glob.ends_with('/');
        let pattern = Glob::new(segment, false);
        let mut next = Vec::new();
        for (folder, path) in found {
            if tree.kind(folder) != Kind::Folder {
                continue;
            }
            if let Some(name) = pattern.literal() {
                ctx.visit(folder)?;
                if let Ok(node) = paths::resolve(tree, folder, &name) {
                    next.push((node, paths::joined(&path, &name)));
                }
                continue;
            }
            for &child in tree.children(folder) {
                ctx.visit(child)?;
                let name = tree.name(child);
                let shown = !name.starts_with('.') || pattern.starts_with_dot();
                if shown && (!inner || tree.kind(child) == Kind::Folder) && pattern.matches(name) {
                    next.push((child, paths::joined(&path, name)));
                }
            }
        }
        found = next;
    }
    let slash = glob.ends_with('/');
    Ok(found.into_iter().map(|(_, path)| if slash { format!("{path}/") } else { path }).collect())
}
