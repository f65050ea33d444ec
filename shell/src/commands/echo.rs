//! `echo`

use super::{Call, Command, Started, writer};
use crate::context::DONE;

pub(super) const COMMAND: Command = Command {
    name: "echo",
    usage: "echo [-n] [-e] [TEXT…]",
    about: "write text",
    details: "  -n  no end of line\n  -e  \\n, \\t and \\\\ mean what they mean elsewhere\n",
    start,
};

fn start(call: &Call<'_>) -> Started {
    let (mut ends, mut escapes) = (true, false);
    let mut words = call.args;
    while let Some((first, rest)) = words.split_first() {
        let options = first.strip_prefix('-').filter(|options| !options.is_empty());
        let Some(options) = options.filter(|options| options.chars().all(|c| "neE".contains(c))) else {
            break;
        };
        for option in options.chars() {
            match option {
                'n' => ends = false,
                other => escapes = other == 'e',
            }
        }
        words = rest;
    }
    let mut text = words.join(" ");
    if escapes {
        text = unescaped(&text);
    }
    if ends {
        text.push('\n');
    }
    writer(move |_, out| {
        out.text(&text);
        Ok(DONE)
    })
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('\\') => plain.push('\\'),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}
