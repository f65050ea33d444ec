//! Expands words to arguments: a glob becomes the matching paths, or stays as it is if there are none.

use crate::context::{Context, HELD_BYTES, Halt, Stop};
use crate::glob::Glob;
use crate::parse::Word;
use crate::paths;
use crate::tree::{Kind, Node};

/// The maximum total length of the paths from the globs of one pipe, as Linux limits the arguments of a command.
pub(crate) const MAX_PATH_BYTES: usize = 2 << 20;

/// The arguments that the words expand to. The paths are charged to `room`.
pub(crate) fn expand(
    ctx: &Context<'_>,
    words: &[Word],
    room: &mut usize,
) -> Result<Result<Vec<String>, String>, Halt> {
    let mut args = Vec::with_capacity(words.len());
    for word in words {
        let before = args.len();
        if let Some(glob) = &word.glob {
            let paths = match matching(ctx, glob)? {
                Ok(paths) => paths,
                Err(why) => return Ok(Err(format!("shell: the glob {}: {why}", word.text))),
            };
            for path in paths {
                let Some(left) = room.checked_sub(path.len() + 1) else {
                    return Ok(Err(format!(
                        "shell: the glob {} stands for too many paths: use `find` or `grep -r --include`",
                        word.text
                    )));
                };
                *room = left;
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
fn matching(ctx: &Context<'_>, glob: &str) -> Result<Result<Vec<String>, String>, Halt> {
    let tree = ctx.tree;
    let absolute = glob.starts_with('/');
    let root = if absolute { tree.root() } else { ctx.cwd() };
    let mut found: Vec<(Node, String)> = vec![(root, if absolute { "/".to_owned() } else { String::new() })];
    let mut segments = glob.split('/').filter(|segment| !segment.is_empty()).peekable();
    while let Some(segment) = segments.next() {
        let inner = segments.peek().is_some() || glob.ends_with('/');
        let pattern = match Glob::new(segment, false) {
            Ok(pattern) => pattern,
            Err(why) => return Ok(Err(why)),
        };
        let mut next = Vec::new();
        let mut held = 0;
        for (folder, path) in found {
            if tree.kind(folder) != Kind::Folder {
                continue;
            }
            if let Some(name) = pattern.literal() {
                ctx.visit(folder)?;
                if let Ok(node) = paths::resolve(tree, folder, &name) {
                    next.push((node, paths::joined(&path, &name)));
                    held += path.len() + name.len();
                }
                continue;
            }
            for &child in tree.children(folder) {
                ctx.visit(child)?;
                let name = tree.name(child);
                let shown = !name.starts_with('.') || pattern.starts_with_dot();
                let shown = shown && (!inner || tree.kind(child) == Kind::Folder);
                if shown && pattern.matches(name, &ctx.meter)? {
                    next.push((child, paths::joined(&path, name)));
                    held += path.len() + name.len();
                }
                if held > HELD_BYTES {
                    return Err(Halt::Stop(Stop::Memory));
                }
            }
        }
        found = next;
    }
    let slash = glob.ends_with('/');
    Ok(Ok(found.into_iter().map(|(_, path)| if slash { format!("{path}/") } else { path }).collect()))
}
