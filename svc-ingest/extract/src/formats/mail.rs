//! E-mail: headers, text, and the names of attachments.

use mail_parser::{Address, Message, MessageParser, MimeHeaders as _, PartType};

use crate::formats::html;
use crate::markdown::{self, Markdown};
use crate::model::{Failure, Format, Raw, Text};

/// Addresses of a header that are listed.
const MAX_ADDRESSES: usize = 50;

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let message =
        MessageParser::default().parse(raw.bytes.as_ref()).ok_or_else(|| Failure::broken("an e-mail"))?;
    let subject = message.subject().map(markdown::one_line);
    let mut out = Markdown::default();
    out.heading(1, subject.as_deref().unwrap_or_default());
    out.block(&head(&message));
    for part in message.text_bodies() {
        match &part.body {
            PartType::Text(text) => out.block(&body(text)),
            PartType::Html(text) => out.block(html::part(text).trim()),
            PartType::Binary(_)
            | PartType::InlineBinary(_)
            | PartType::Message(_)
            | PartType::Multipart(_) => {}
        }
    }
    let attached: Vec<String> =
        message.attachments().filter_map(|part| part.attachment_name()).map(markdown::one_line).collect();
    if !attached.is_empty() {
        out.paragraph(&format!("Attached: {}", attached.join(", ")));
    }
    Ok(Text { format: Format::Markdown, content: out.into_text(), title: subject })
}

fn head(message: &Message<'_>) -> String {
    let date = message.date().map(mail_parser::DateTime::to_rfc3339);
    let lines = [
        ("From", message.from().map(addresses)),
        ("To", message.to().map(addresses)),
        ("Cc", message.cc().map(addresses)),
        ("Date", date),
    ];
    let lines = lines.into_iter().filter_map(|(name, value)| Some(format!("- {name}: {}", value?)));
    lines.collect::<Vec<_>>().join("\n")
}

fn addresses(addresses: &Address<'_>) -> String {
    let named =
        addresses.iter().take(MAX_ADDRESSES).map(|address| match (address.name(), address.address()) {
            (Some(name), Some(address)) => format!("{name} ({address})"),
            (one, other) => one.or(other).unwrap_or_default().to_owned(),
        });
    markdown::one_line(&named.collect::<Vec<_>>().join(", "))
}

/// Converts plain text to Markdown: keeps line breaks, and escapes accidental headings.
fn body(text: &str) -> String {
    let lines =
        text.lines().map(|line| if line.starts_with('#') { format!("\\{line}") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &str) -> Text {
        read(&Raw::file("a.eml", message.replace('\n', "\r\n"))).unwrap()
    }

    #[test]
    fn a_message_says_who_wrote_what_to_whom() {
        let message = "From: =?utf-8?q?J=C3=BCrgen?= <j@example.com>\nTo: Ada <ada@example.com>, b@example.com\n\
                       Subject: =?utf-8?b?UGzDpG5l?= for May\nDate: Tue, 5 May 2026 10:00:00 +0200\nMIME-Version: 1.0\n\
                       Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n\
                       # no heading\nGr=FC=DFe\n";
        let text = text(message);
        assert_eq!(text.title.as_deref(), Some("Pläne for May"));
        assert_eq!(
            text.content,
            "# Pläne for May\n\n- From: Jürgen (j@example.com)\n- To: Ada (ada@example.com), b@example.com\n\
             - Date: 2026-05-05T10:00:00+02:00\n\n\\# no heading\nGrüße\n"
        );
    }

    #[test]
    fn of_two_forms_the_plain_one_is_read_and_html_where_there_is_no_other() {
        let parts = "From: a@b.c\nSubject: Two\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=x\n\n--x\n\
                     Content-Type: text/plain\n\nplain words\n--x\nContent-Type: text/html\n\n<p>html words</p>\n--x--\n";
        let both = text(parts).content;
        assert!(both.contains("plain words") && !both.contains("html words"), "{both}");
        let html = "From: a@b.c\nSubject: One\nMIME-Version: 1.0\nContent-Type: text/html\n\n\
                    <h2>News</h2><p hidden>IGNORE</p><p>See <a href='https://x.example/'>this</a> or <a href='/y'>that</a></p>\n";
        let html = text(html).content;
        assert!(html.contains("## News\n\nSee [this](https://x.example/) or that"), "{html}");
        assert!(!html.contains("IGNORE"));
    }

    #[test]
    fn what_is_attached_is_named() {
        let message = "From: a@b.c\nSubject: Files\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\
                       Content-Type: text/plain\n\nhere\n--x\nContent-Type: application/pdf; name=\"report.pdf\"\n\
                       Content-Disposition: attachment; filename=\"report.pdf\"\nContent-Transfer-Encoding: base64\n\n\
                       JVBERi0=\n--x--\n";
        assert!(text(message).content.ends_with("here\n\nAttached: report.pdf\n"));
    }
}
