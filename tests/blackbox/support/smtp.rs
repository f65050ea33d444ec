//! A mail server: it accepts mail over SMTP (RFC 5321), stores it, and rejects what a test wants rejected.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A mail that contains this is rejected.
pub(crate) const REFUSED: &str = "zqrefusethismailx";
const USER: &str = "cairn";

/// A received mail.
#[derive(Debug, Clone)]
pub(crate) struct Mail {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    /// Headers and body, without SMTP's dot-stuffing.
    pub(crate) text: String,
}

impl Mail {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let (head, _) = self.text.split_once("\r\n\r\n")?;
        let unfolded = head.replace("\r\n ", " ");
        let start = format!("{}:", name.to_lowercase());
        let line = unfolded.lines().find(|line| line.to_lowercase().starts_with(&start))?;
        Some(line[start.len()..].trim().to_owned())
    }

    /// The decoded body.
    pub(crate) fn body(&self) -> String {
        let body = self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        match self.header("Content-Transfer-Encoding").as_deref() {
            Some("base64") => {
                let digits: String = body.split_whitespace().collect();
                String::from_utf8(STANDARD.decode(digits).unwrap()).unwrap()
            }
            Some("quoted-printable") => quoted_printable(body),
            _ => body.to_owned(),
        }
    }
}

/// A running mail server; its threads end with the test process.
#[derive(Debug, Clone)]
pub(crate) struct MailServer {
    address: SocketAddr,
    password: String,
    mails: Arc<Mutex<Vec<Mail>>>,
}

impl MailServer {
    /// Starts a server that accepts this password.
    pub(crate) fn start(password: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, password: password.to_owned(), mails: Arc::default() };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let session = serving.clone();
                // An error ends only its session.
                std::thread::spawn(move || session.talk(&stream));
            }
        });
        server
    }

    /// The URL that configures Cairn.
    pub(crate) fn url(&self) -> String {
        format!("smtp://{USER}:{}@{}", self.password, self.address)
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }

    /// The mails whose body contains this.
    pub(crate) fn mails_with(&self, text: &str) -> Vec<Mail> {
        self.mails.lock().unwrap().iter().filter(|mail| mail.body().contains(text)).cloned().collect()
    }

    fn talk(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream);
        let say = |text: &str| { stream }.write_all(format!("{text}\r\n").as_bytes());
        say("220 localhost")?;
        let (mut is_known, mut from, mut to) = (false, String::new(), Vec::new());
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            let command = std::mem::take(&mut line).trim_end().to_owned();
            let verb = command.split([' ', ':']).next().unwrap_or_default().to_uppercase();
            match verb.as_str() {
                "EHLO" | "HELO" => say("250-localhost\r\n250-AUTH PLAIN\r\n250 8BITMIME")?,
                "AUTH" => {
                    is_known = self.accepts_credentials(&command);
                    say(if is_known { "235 welcome" } else { "535 who are you" })?;
                }
                _ if !is_known && verb != "QUIT" => say("530 sign in first")?,
                "MAIL" => {
                    (from, to) = (address(&command), Vec::new());
                    say("250 ok")?;
                }
                "RCPT" => {
                    to.push(address(&command));
                    say("250 ok")?;
                }
                "DATA" => {
                    say("354 go on")?;
                    let text = read_data(&mut lines)?;
                    let mail = Mail { from: from.clone(), to: to.clone(), text };
                    let is_refused = mail.body().contains(REFUSED);
                    self.mails.lock().unwrap().push(mail);
                    say(if is_refused { "554 not that one" } else { "250 taken" })?;
                }
                "QUIT" => return say("221 bye"),
                _ => say("250 ok")?,
            }
        }
        Ok(())
    }

    fn accepts_credentials(&self, command: &str) -> bool {
        let given = command.strip_prefix("AUTH PLAIN ").and_then(|digits| STANDARD.decode(digits).ok());
        given.is_some_and(|given| given == format!("\0{USER}\0{}", self.password).into_bytes())
    }
}

/// The address between the angle brackets of `MAIL FROM:<…>`.
fn address(command: &str) -> String {
    let inner = command.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inner.map_or("", |(address, _)| address).to_owned()
}

fn read_data(lines: &mut BufReader<&TcpStream>) -> std::io::Result<String> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 || line == ".\r\n" {
            return Ok(text);
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}

fn quoted_printable(body: &str) -> String {
    let joined = body.replace("=\r\n", "");
    let mut bytes = Vec::new();
    let mut rest = joined.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'=' && tail.len() >= 2 {
            let digits = std::str::from_utf8(&tail[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap()
}
