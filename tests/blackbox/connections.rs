//! Idle connections do not harm other callers.

use std::net::{IpAddr, SocketAddr};

use futures::future::join_all;
use reqwest::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::http::Http;
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// More than the usual limit on open files permits.
const MANY: usize = 1_500;
const USUAL_FILE_LIMIT: u32 = 1_024;
const HALF: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: half";

/// This process holds the other end of each connection.
fn raise_own_file_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// A connection from that address of this machine.
async fn connect(from: &str, url: &str) -> TcpStream {
    let to: SocketAddr = url.trim_start_matches("http://").parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse::<IpAddr>().unwrap(), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// Whether the service closes it, whatever it sends before: over HTTP/2, its settings.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut message = Vec::new();
    // It may end with a reset, as when sent data was not read.
    tokio::time::timeout(LIMIT, stream.read_to_end(&mut message)).await.is_ok()
}

async fn answers(base_url: &str) {
    Http::new(base_url).request(Method::GET, "/healthz").await.expect(200);
}

#[test]
fn half_sent_heads_are_closed_and_others_are_answered() {
    raise_own_file_limit();
    run_alone(async {
        let data = Scratch::new();
        let environment = [("CAIRN_MAX_CONNECTIONS_PER_ADDRESS", "100000")];
        let up = SingleProcess::start_on_few_files(data.path(), &environment, USUAL_FILE_LIMIT).await;
        let mut waiting = join_all((0..MANY).map(async |_| {
            let mut stream = connect("127.0.0.2", up.base_url()).await;
            stream.write_all(HALF).await.unwrap();
            stream
        }))
        .await;
        answers(up.base_url()).await;
        let closed = join_all(waiting.iter_mut().map(is_closed)).await;
        assert!(closed.iter().all(|is_closed| *is_closed));
        answers(up.base_url()).await;
    });
}

#[test]
fn one_address_cannot_take_all_connections() {
    run_alone(async {
        let data = Scratch::new();
        let environment = [("CAIRN_MAX_CONNECTIONS_PER_ADDRESS", "20"), ("CAIRN_MAX_CONNECTIONS", "60")];
        let up = SingleProcess::start_on(data.path(), &environment).await;
        let first = join_all((0..20).map(|_| connect("127.0.0.2", up.base_url()))).await;
        // The service accepts connections in order: all of these were handled once the last one is closed.
        for mut over in join_all((0..20).map(|_| connect("127.0.0.2", up.base_url()))).await {
            assert!(is_closed(&mut over).await);
        }
        answers(up.base_url()).await;
        // A trusted proxy forwards many callers, so it has no limit of its own.
        let proxied = join_all((0..25).map(async |_| {
            let mut stream = connect("127.0.0.1", up.base_url()).await;
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, *b"HTTP/1.1 200");
            stream
        }))
        .await;
        drop((first, proxied));
        eventually("places that are left are taken again", async || {
            let mut stream = connect("127.0.0.2", up.base_url()).await;
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.ok()?;
            (stream.read(&mut [0; 64]).await.ok()? > 0).then_some(())
        })
        .await;
    });
}

#[test]
fn grpc_listeners_close_what_says_nothing_too() {
    run_alone(async {
        let data = Scratch::new();
        let environment = [("CAIRN_MAX_CONNECTIONS_PER_ADDRESS", "30")];
        let up = SingleProcess::start_on(data.path(), &environment).await;
        let url = up.grpc_url();
        let mut waiting = join_all((0..40).map(|_| connect("127.0.0.2", &url))).await;
        let closed = join_all(waiting.iter_mut().map(is_closed)).await;
        assert!(closed.iter().all(|is_closed| *is_closed));
    });
}
