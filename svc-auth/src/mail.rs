//! Mail over SMTP.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::PoolConfig;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

use crate::error::Error;

/// The timeout of one SMTP command; a delivery has several, and its caller has its own timeout.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: u32 = 4;

/// The mail server.
#[derive(Clone)]
pub struct Config {
    /// `smtps://user:password@host:465`, or `smtp://…:587?tls=required`.
    pub url: String,
    /// The sender: `Cairn <cairn@example.com>`.
    pub from: String,
}

// Without the URL, which may hold a password.
cairn_chassis::debug_fields!(Config { from });

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsent {
    /// The address is invalid.
    #[error("the address is not one that mail can be sent to: {0}")]
    Address(#[from] lettre::address::AddressError),
    /// The message cannot be built.
    #[error("the mail cannot be written: {0}")]
    Message(#[from] lettre::error::Error),
    /// The server could not be reached, or rejected the mail.
    #[error("the mail server did not take it: {0}")]
    Server(#[from] lettre::transport::smtp::Error),
}

/// Sends mail; cheap to clone. Connections are opened on demand and reused.
#[derive(Clone)]
pub(crate) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

cairn_chassis::debug_fields!(Mailer { from });

impl Mailer {
    /// A mailer without open connections.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let from = config.from.parse().map_err(|_| {
            Error::Config("CAIRN_MAIL_FROM must be an address such as `Cairn <cairn@example.com>`".to_owned())
        })?;
        // The URL is not quoted: it may hold a password.
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(&config.url).map_err(|_| {
            let forms = "smtps://user:password@host:465 or smtp://user:password@host:587?tls=required";
            Error::Config(format!("CAIRN_SMTP_URL must be an address such as {forms}"))
        })?;
        let pool = PoolConfig::new().max_size(MAX_CONNECTIONS);
        Ok(Self { transport: builder.timeout(Some(COMMAND_TIMEOUT)).pool_config(pool).build(), from })
    }

    /// Sends a plain text to one address. Line breaks in the subject are replaced, so that no text can add a header.
    pub(crate) async fn send(&self, to: &str, subject: &str, text: &str) -> Result<(), Unsent> {
        let subject: String = subject.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to.parse()?))
            .message_id(None)
            .subject(subject)
            .header(ContentType::TEXT_PLAIN)
            .body(text.to_owned())?;
        self.transport.send(message).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, from: &str) -> Config {
        Config { url: url.to_owned(), from: from.to_owned() }
    }

    #[tokio::test]
    async fn settings_are_checked_without_being_repeated() {
        for url in [
            "smtp://127.0.0.1:2525",
            "smtp://user:s3cret@mail.example:587?tls=required",
            "smtps://user:s3cret@mail.example",
        ] {
            let mailer = Mailer::new(&config(url, "Cairn <cairn@example.com>")).unwrap();
            assert!(!format!("{mailer:?} {:?}", config(url, "x")).contains("s3cret"));
        }
        for url in ["", "mail.example", "https://user:s3cret@mail.example", "smtp://"] {
            let refusal = Mailer::new(&config(url, "cairn@example.com")).unwrap_err().to_string();
            assert!(refusal.contains("CAIRN_SMTP_URL") && !refusal.contains("s3cret"), "{url}: {refusal}");
        }
        for from in ["", "cairn", "a@b.example\r\nBcc: c@d.example"] {
            let refusal = Mailer::new(&config("smtp://127.0.0.1", from)).unwrap_err().to_string();
            assert!(refusal.contains("CAIRN_MAIL_FROM"), "{from}: {refusal}");
        }
    }
}
