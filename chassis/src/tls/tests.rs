use std::net::Ipv4Addr;

use rustls::ClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::*;
use crate::channel::ServiceChannel;
use crate::server;
use crate::testing::certificates::Authority;
use crate::testing::server as double;
use crate::transport::{Connections, Settings};

/// A gRPC server with these files; answers its port.
async fn serve(files: ServerFiles) -> u16 {
    let listener = server::bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = Server::load(files, Protocols::Grpc).unwrap();
    let composed = double::compose(Routes::default(), &[]).await.unwrap();
    tokio::spawn(composed.serve_over(
        listener,
        Settings::grpc(&Connections::default()).over(Some(tls)),
        CancellationToken::new(),
    ));
    port
}

async fn check(address: &str, client: Option<&Client>) -> Result<(), Status> {
    let channel = ServiceChannel::remote_over(address, client).unwrap();
    HealthClient::new(channel).check(HealthCheckRequest::default()).await.map(|_| ())
}

fn trusting(authority: &Authority, pair: Option<Pair>) -> Client {
    Client::load(&ClientFiles { ca: authority.ca(), pair }).unwrap()
}

#[tokio::test]
async fn calls_go_through_to_whom_the_caller_trusts() {
    let (own, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let port = serve(ServerFiles { pair: own.issue("server").unwrap(), client_ca: None }).await;
    for host in ["localhost", "127.0.0.1"] {
        check(&format!("https://{host}:{port}"), Some(&trusting(&own, None))).await.unwrap();
    }
    let address = format!("https://localhost:{port}");
    let refused = check(&address, Some(&trusting(&other, None))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "another authority: {refused}");
    let plain = check(&format!("http://localhost:{port}"), None).await.unwrap_err();
    assert_eq!(plain.code(), Code::Unavailable, "without TLS: {plain}");
    // Whoever did it wrong harmed nobody.
    check(&address, Some(&trusting(&own, None))).await.unwrap();
    assert!(ServiceChannel::remote_over(&address, None).is_err(), "https without anything to trust");
}

#[tokio::test]
async fn with_an_authority_for_clients_nobody_else_gets_in() {
    let (own, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let files = ServerFiles { pair: own.issue("server").unwrap(), client_ca: Some(own.ca()) };
    let address = format!("https://localhost:{}", serve(files).await);
    let member = own.issue("member").unwrap();
    check(&address, Some(&trusting(&own, Some(member)))).await.unwrap();
    let stranger = other.issue("stranger").unwrap();
    for pair in [None, Some(stranger)] {
        let refused = check(&address, Some(&trusting(&own, pair))).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    }
}

#[tokio::test]
async fn http_2_is_agreed_on() {
    let own = Authority::new().unwrap();
    let pair = own.issue("server").unwrap();
    for (protocols, offered, agreed) in [
        (Protocols::Grpc, vec!["h2"], Some("h2")),
        (Protocols::Http, vec!["http/1.1"], Some("http/1.1")),
        (Protocols::Http, vec!["http/1.1", "h2"], Some("h2")),
        (Protocols::Http, vec![], None),
    ] {
        let listener = server::bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let files = ServerFiles { pair: pair.clone(), client_ca: None };
        let server = Server::load(files, protocols).unwrap();
        let _listening = tokio::spawn(async move {
            let (stream, peer) = listener.accept().await.unwrap();
            let _kept = server.shake_hands(stream, peer).await;
            std::future::pending::<()>().await;
        });
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(authorities(&own.ca()).unwrap())
            .with_no_client_auth();
        config.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(address).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed.map(str::as_bytes), "{offered:?}");
    }
}

#[tokio::test]
async fn a_caller_without_tls_is_let_go_and_a_silent_one_holds_up_nobody() {
    let own = Authority::new().unwrap();
    let port = serve(ServerFiles { pair: own.issue("server").unwrap(), client_ca: None }).await;
    let silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let mut plain = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // An alert of TLS, or nothing; either way it ends.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));
    check(&format!("https://localhost:{port}"), Some(&trusting(&own, None))).await.unwrap();
    drop(silent);
}

#[tokio::test]
async fn renewed_files_are_taken_and_damaged_ones_are_not() {
    let (old, new) = (Authority::new().unwrap(), Authority::new().unwrap());
    let pair = old.issue("server").unwrap();
    let server = Server::load(ServerFiles { pair: pair.clone(), client_ca: None }, Protocols::Grpc).unwrap();
    let before = server.config();
    let look = || {
        let mut loaded = server.loaded.lock().unwrap();
        // As if the file were older: its time has the grain of the file system.
        loaded.stamps.clear();
        server.refresh(&mut loaded);
    };
    std::fs::write(&pair.key, "nothing").unwrap();
    look();
    assert!(Arc::ptr_eq(&before, &server.config()), "damaged files are not taken");
    let renewed = new.issue("server").unwrap();
    std::fs::copy(renewed.certificate, &pair.certificate).unwrap();
    look();
    assert!(Arc::ptr_eq(&before, &server.config()), "half of a pair is not taken");
    std::fs::copy(renewed.key, &pair.key).unwrap();
    look();
    assert!(!Arc::ptr_eq(&before, &server.config()));
}

#[tokio::test]
async fn a_caller_whose_certificate_was_renewed_gets_in_without_a_restart() {
    let (old, new) = (Authority::new().unwrap(), Authority::new().unwrap());
    let files = ServerFiles { pair: new.issue("server").unwrap(), client_ca: Some(new.ca()) };
    let address = format!("https://localhost:{}", serve(files).await);
    let (ca, pair) = (old.ca(), old.issue("member").unwrap());
    let client = Client::load(&ClientFiles { ca: ca.clone(), pair: Some(pair.clone()) }).unwrap();
    let refused = check(&address, Some(&client)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    let before = client.config();

    let renewed = new.issue("member").unwrap();
    std::fs::copy(new.ca(), &ca).unwrap();
    std::fs::copy(renewed.certificate, &pair.certificate).unwrap();
    client.force_reload();
    assert!(Arc::ptr_eq(&before, &client.config()), "half of a pair is not taken");
    std::fs::copy(renewed.key, &pair.key).unwrap();
    client.force_reload();
    check(&address, Some(&client)).await.unwrap();
}

#[test]
fn what_is_wrong_with_the_files_is_said() {
    let own = Authority::new().unwrap();
    let (one, other) = (own.issue("one").unwrap(), own.issue("other").unwrap());
    let load = |certificate: &Path, key: &Path, client_ca: Option<&Path>| {
        let pair = Pair { certificate: certificate.to_owned(), key: key.to_owned() };
        let files = ServerFiles { pair, client_ca: client_ca.map(ToOwned::to_owned) };
        Server::load(files, Protocols::Http).unwrap_err().to_string()
    };
    let missing = Path::new("/no/such/file.pem");
    assert!(load(missing, &one.key, None).contains("/no/such/file.pem cannot be read"));
    assert!(load(&one.certificate, missing, None).contains("cannot be read"));
    assert!(load(&one.key, &one.key, None).contains("holds no certificate"));
    assert!(load(&one.certificate, &one.certificate, None).contains("holds no private key"));
    let mismatch = load(&one.certificate, &other.key, None);
    assert!(mismatch.contains("one.crt") && mismatch.contains("other.key"), "{mismatch}");
    assert!(load(&one.certificate, &one.key, Some(&one.key)).contains("holds no certificate"));

    let pair = Some(Pair { certificate: one.certificate, key: other.key });
    let refused = Client::load(&ClientFiles { ca: own.ca(), pair }).unwrap_err().to_string();
    assert!(refused.contains("other.key"), "{refused}");
    let refused = Client::load(&ClientFiles { ca: missing.to_owned(), pair: None }).unwrap_err();
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
}
