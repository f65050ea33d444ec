//! Callers: anonymous, a program with an API token, a person with a session.

use reqwest::Method;

use super::http::{Http, Request};

/// Someone who sends requests to a deployment.
pub(crate) trait Caller {
    /// A request with this caller's credentials.
    fn request(&self, method: Method, path: &str) -> Request;

    fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    fn post(&self, path: &str) -> Request {
        self.request(Method::POST, path)
    }

    fn patch(&self, path: &str) -> Request {
        self.request(Method::PATCH, path)
    }

    fn delete(&self, path: &str) -> Request {
        self.request(Method::DELETE, path)
    }
}

/// A caller without credentials.
#[derive(Debug, Clone)]
pub(crate) struct Anonymous {
    pub(crate) http: Http,
}

impl Caller for Anonymous {
    fn request(&self, method: Method, path: &str) -> Request {
        self.http.request(method, path)
    }
}

/// A program with an API token.
#[derive(Debug, Clone)]
pub(crate) struct ApiToken {
    pub(crate) http: Http,
    pub(crate) secret: String,
}

impl Caller for ApiToken {
    fn request(&self, method: Method, path: &str) -> Request {
        self.http.request(method, path).header("authorization", format!("Bearer {}", self.secret))
    }
}

/// A person who signed in.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) http: Http,
    /// `cairn_session=…`
    pub(crate) cookie: String,
}

impl Caller for Session {
    fn request(&self, method: Method, path: &str) -> Request {
        self.http.request(method, path).header("cookie", &self.cookie)
    }
}
