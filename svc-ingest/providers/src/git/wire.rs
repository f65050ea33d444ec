//! Git's smart HTTP protocol, version 2: resolves refs, and fetches shallow packs.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderValue, Request, Response, header};
use url::Url;

use super::pack::Oid;
use crate::{Call, Fault, FinalUrl};

const MAX_ADVERTISED_BYTES: usize = 1024 * 1024;
const MAX_REFS_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a pack, which is in memory while it is read.
const MAX_PACK_BYTES: usize = 128 * 1024 * 1024;

const NO_GIT: Fault = Fault::broken("there is no git repository at this address");
const BROKEN: Fault = Fault::broken("the git server's answer is not what git's protocol says");

/// A server that speaks the protocol.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// The URL of the repository, without a trailing slash, after the redirects of the first request.
    base: String,
    authorization: Option<HeaderValue>,
    names_format: bool,
}

/// A pkt-line.
#[derive(Debug, PartialEq, Eq)]
enum Packet<'a> {
    Data(&'a [u8]),
    Delimiter,
    Flush,
    End,
}

impl Server {
    /// Requests the capabilities of a server.
    pub(super) async fn discover(
        call: &Call,
        repository: &Url,
        authorization: Option<HeaderValue>,
    ) -> Result<Self, Fault> {
        const DISCOVERY: &str = "/info/refs?service=git-upload-pack";
        let base = repository.as_str().trim_end_matches('/');
        let mut request = Request::get(format!("{base}{DISCOVERY}")).header("git-protocol", "version=2");
        if let Some(authorization) = &authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Bytes::new()).map_err(|_| Fault::Address)?;
        let answer = call.send(request, MAX_ADVERTISED_BYTES).await?;
        require_type(&answer, "application/x-git-upload-pack-advertisement")?;
        let last = answer.extensions().get::<FinalUrl>().map_or(repository, |last| &last.0);
        let has_moved = last.origin() != repository.origin();
        let base = last.as_str().strip_suffix(DISCOVERY).ok_or(NO_GIT)?.to_owned();
        let mut names_format = false;
        let mut is_version_2 = false;
        let mut rest = answer.body().as_ref();
        while !rest.is_empty() {
            if let Packet::Data(line) = packet(&mut rest)? {
                is_version_2 |= line.trim_ascii_end() == b"version 2";
                names_format |= line.starts_with(b"object-format=");
                if line.trim_ascii_end() == b"object-format=sha256" {
                    return Err(Fault::broken("the repository has SHA-256 ids, which are not read yet"));
                }
            }
        }
        if !is_version_2 {
            return Err(Fault::broken("the git server does not speak version 2 of git's protocol"));
        }
        // Credentials are not sent to another origin.
        Ok(Self { base, authorization: authorization.filter(|_| !has_moved), names_format })
    }

    /// Resolves `HEAD`, a branch, a tag or a full ref name to a commit; `None` if it does not exist.
    pub(super) async fn resolve(&self, call: &Call, name: &str) -> Result<Option<Oid>, Fault> {
        if let Some(id) = oid(name.as_bytes()) {
            return Ok(Some(id));
        }
        let candidates = match name {
            "HEAD" => vec![name.to_owned()],
            full if full.starts_with("refs/") => vec![full.to_owned()],
            short => vec![format!("refs/heads/{short}"), format!("refs/tags/{short}")],
        };
        let mut arguments = vec!["peel\n".to_owned(), "symrefs\n".to_owned()];
        arguments.extend(candidates.iter().map(|candidate| format!("ref-prefix {candidate}\n")));
        let answer = self.command(call, "ls-refs", &arguments, MAX_REFS_BYTES).await?;
        let mut rest = answer.as_ref();
        let mut found: Vec<(String, Oid)> = Vec::new();
        while !rest.is_empty() {
            let Packet::Data(line) = packet(&mut rest)? else { continue };
            let line = std::str::from_utf8(line.trim_ascii_end()).map_err(|_| BROKEN)?;
            let mut parts = line.split(' ');
            let (id, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            // An annotated tag is an object of its own: its peeled value is the commit.
            let peeled = parts.find_map(|part| part.strip_prefix("peeled:"));
            let Some(id) = oid(peeled.unwrap_or(id).as_bytes()) else { continue };
            if candidates.iter().any(|candidate| candidate == name) {
                found.push((name.to_owned(), id));
            }
        }
        let first = |candidate: &String| found.iter().find(|(name, _)| name == candidate).map(|(_, id)| *id);
        Ok(candidates.iter().find_map(first))
    }

    /// A shallow pack of these commits.
    ///
    /// # Errors
    /// [`Fault::PositionLost`] if the server does not have them.
    pub(super) async fn fetch(&self, call: &Call, commits: &[Oid]) -> Result<Bytes, Fault> {
        let mut arguments =
            vec!["no-progress\n".to_owned(), "ofs-delta\n".to_owned(), "deepen 1\n".to_owned()];
        arguments.extend(commits.iter().map(|commit| format!("want {}\n", hex::encode(commit))));
        arguments.push("done\n".to_owned());
        let answer = self.command(call, "fetch", &arguments, MAX_PACK_BYTES).await?;
        let mut pack = BytesMut::with_capacity(answer.len());
        let mut rest = answer.as_ref();
        let mut is_pack = false;
        while !rest.is_empty() {
            match packet(&mut rest)? {
                Packet::Data(line) if is_pack => match line.split_first() {
                    Some((1, data)) => pack.put_slice(data),
                    Some((2, _)) => {}
                    Some((_, _)) | None => return Err(Fault::Unavailable),
                },
                Packet::Data(line) if line.starts_with(b"ERR ") => return Err(Fault::PositionLost),
                Packet::Data(line) => is_pack = line.trim_ascii_end() == b"packfile",
                Packet::Delimiter | Packet::Flush | Packet::End => {}
            }
        }
        if pack.is_empty() { Err(BROKEN) } else { Ok(pack.freeze()) }
    }

    async fn command(
        &self,
        call: &Call,
        name: &str,
        arguments: &[String],
        most: usize,
    ) -> Result<Bytes, Fault> {
        let mut body = BytesMut::new();
        put(&mut body, &format!("command={name}\n"))?;
        put(&mut body, concat!("agent=cairn/", env!("CARGO_PKG_VERSION"), "\n"))?;
        if self.names_format {
            put(&mut body, "object-format=sha1\n")?;
        }
        body.put_slice(b"0001");
        for argument in arguments {
            put(&mut body, argument)?;
        }
        body.put_slice(b"0000");
        let mut request = Request::post(format!("{}/git-upload-pack", self.base))
            .header("git-protocol", "version=2")
            .header(header::CONTENT_TYPE, "application/x-git-upload-pack-request")
            .header(header::ACCEPT, "application/x-git-upload-pack-result");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(body.freeze()).map_err(|_| Fault::Address)?;
        let answer = call.send(request, most).await.map_err(|fault| match fault {
            Fault::TooLarge(_) => {
                Fault::broken("the repository is larger than the 128 MiB that are read of one")
            }
            other @ (Fault::Waiting { .. }
            | Fault::Budget
            | Fault::Credentials
            | Fault::Forbidden
            | Fault::Gone
            | Fault::PositionLost
            | Fault::Refused
            | Fault::Address
            | Fault::Unavailable
            | Fault::Broken(_)) => other,
        })?;
        require_type(&answer, "application/x-git-upload-pack-result")?;
        Ok(answer.into_body())
    }
}

/// Rejects pages for people, such as login pages.
fn require_type(answer: &Response<Bytes>, wanted: &str) -> Result<(), Fault> {
    let sent = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if sent.is_some_and(|sent| sent.split(';').next().unwrap_or_default().trim() == wanted) {
        Ok(())
    } else {
        Err(NO_GIT)
    }
}

/// Parses an object id in hexadecimal.
pub(super) fn oid(text: &[u8]) -> Option<Oid> {
    hex::decode(text).ok()?.try_into().ok()
}

fn put(body: &mut BytesMut, line: &str) -> Result<(), Fault> {
    const MAX_PACKET_BYTES: usize = 65_520;
    let length = line.len() + 4;
    if length > MAX_PACKET_BYTES {
        return Err(Fault::Refused);
    }
    body.put_slice(format!("{length:04x}").as_bytes());
    body.put_slice(line.as_bytes());
    Ok(())
}

fn packet<'a>(rest: &mut &'a [u8]) -> Result<Packet<'a>, Fault> {
    let (length, behind) = rest.split_at_checked(4).ok_or(BROKEN)?;
    // The number parser would also accept a sign.
    let digits =
        std::str::from_utf8(length).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let length = digits.and_then(|text| usize::from_str_radix(text, 16).ok());
    let (packet, behind) = match length.ok_or(BROKEN)? {
        0 => (Packet::Flush, behind),
        1 => (Packet::Delimiter, behind),
        2 => (Packet::End, behind),
        3 => return Err(BROKEN),
        length => {
            let (data, behind) = behind.split_at_checked(length - 4).ok_or(BROKEN)?;
            (Packet::Data(data), behind)
        }
    };
    *rest = behind;
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_and_what_is_cut_is_none() {
        let mut rest: &[u8] = b"0009hello000000010004";
        assert_eq!(packet(&mut rest), Ok(Packet::Data(b"hello")));
        assert_eq!(packet(&mut rest), Ok(Packet::Flush));
        assert_eq!(packet(&mut rest), Ok(Packet::Delimiter));
        assert_eq!(packet(&mut rest), Ok(Packet::Data(b"")));
        for odd in [b"00".as_slice(), b"000ahello", b"0003", b"zzzz", b"+004", b"ffff"] {
            let mut rest = odd;
            assert!(packet(&mut rest).is_err(), "{odd:?}");
        }
    }
}
