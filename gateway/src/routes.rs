//! Route registration: every method of every path with its class. It is the only way onto the public router.

use std::collections::HashMap;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use http::Method;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{OpenApi, PathItem};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::App;
use crate::class::{Class, Who};

/// Routes, their classes, and the OpenAPI documents of those that have one.
#[derive(Default)]
pub(crate) struct Routes {
    router: OpenApiRouter<App>,
    classes: Classes,
}

impl Routes {
    /// Operations with OpenAPI descriptions: `.api(class, routes!(files::get))`.
    pub(crate) fn api(mut self, class: Class, mut operations: UtoipaMethodRouter<App>) -> Self {
        for (path, item) in &mut operations.1.paths {
            if class.who == Who::Anyone {
                let described = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete];
                let nothing = || Some(vec![SecurityRequirement::default()]);
                described.into_iter().flatten().for_each(|operation| operation.security = nothing());
            }
            methods_of(item).for_each(|method| self.classes.insert(path, Some(method), class));
        }
        self.router = self.router.routes(operations);
        self
    }

    pub(crate) fn get<H: Handler<T, App>, T: 'static>(self, class: Class, path: &str, handler: H) -> Self {
        self.on(class, path, Some(Method::GET), routing::get(handler))
    }

    pub(crate) fn post<H: Handler<T, App>, T: 'static>(self, class: Class, path: &str, handler: H) -> Self {
        self.on(class, path, Some(Method::POST), routing::post(handler))
    }

    pub(crate) fn options<H: Handler<T, App>, T: 'static>(
        self,
        class: Class,
        path: &str,
        handler: H,
    ) -> Self {
        self.on(class, path, Some(Method::OPTIONS), routing::options(handler))
    }

    pub(crate) fn any<H: Handler<T, App>, T: 'static>(self, class: Class, path: &str, handler: H) -> Self {
        self.on(class, path, None, routing::any(handler))
    }

    fn on(mut self, class: Class, path: &str, method: Option<Method>, route: MethodRouter<App>) -> Self {
        self.classes.insert(path, method, class);
        self.router = self.router.route(path, route);
        self
    }

    /// Sets the class of unmatched paths below this one.
    pub(crate) fn below(mut self, path: &'static str, class: Class) -> Self {
        self.classes.below.push((path, class));
        self
    }

    /// Maps the underlying router.
    pub(crate) fn changed(self, change: impl FnOnce(OpenApiRouter<App>) -> OpenApiRouter<App>) -> Self {
        Self { router: change(self.router), ..self }
    }

    pub(crate) fn merge(self, other: Self) -> Self {
        let mut classes = self.classes;
        classes.of_paths.extend(other.classes.of_paths);
        classes.below.extend(other.classes.below);
        Self { router: self.router.merge(other.router), classes }
    }

    /// Takes the OpenAPI document of the operations registered so far.
    pub(crate) fn take_document(&mut self) -> OpenApi {
        std::mem::take(self.router.get_openapi_mut())
    }

    pub(crate) fn into_parts(self) -> (Router<App>, Classes) {
        (self.router.into(), self.classes)
    }
}

fn methods_of(item: &PathItem) -> impl Iterator<Item = Method> {
    let described = [
        (Method::GET, &item.get),
        (Method::POST, &item.post),
        (Method::PUT, &item.put),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ];
    described.into_iter().filter_map(|(method, operation)| operation.is_some().then_some(method))
}

/// The classes of all routes.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    /// By path; `None` stands for every method of it.
    of_paths: HashMap<String, Vec<(Option<Method>, Class)>>,
    below: Vec<(&'static str, Class)>,
}

impl Classes {
    fn insert(&mut self, path: &str, method: Option<Method>, class: Class) {
        self.of_paths.entry(path.to_owned()).or_default().push((method, class));
    }

    /// The class of a request: that of the matched route, else that of the first `below` entry that covers its
    /// path.
    pub(crate) fn of(&self, route: Option<&str>, method: &Method, path: &str) -> Class {
        let Some(registered) = route.and_then(|route| self.of_paths.get(route)) else {
            let is_below = |base: &str| {
                path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let found = self.below.iter().find(|(base, _)| is_below(base));
            return found.map_or(Class::UNKNOWN, |(_, class)| *class);
        };
        // A route that takes GET takes HEAD.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let found = registered.iter().find(|(known, _)| known.as_ref().is_none_or(|known| known == method));
        match (found, registered.first()) {
            (Some((_, class)), _) => *class,
            (None, Some((_, class))) => class.of_other_methods(),
            (None, None) => Class::UNKNOWN,
        }
    }

    /// The path of every route.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.of_paths.keys().map(String::as_str)
    }

    /// Every route: method (`None`: all of them), path, class.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<&Method>, &str, Class)> {
        self.of_paths.iter().flat_map(|(path, methods)| {
            methods.iter().map(move |(method, class)| (method.as_ref(), path.as_str(), *class))
        })
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::identity::Permission;

    use super::*;
    use crate::class::{Surface, Who};

    const NOWHERE: Class = Class::new(Surface::Rest, Who::TokenIfSent);

    #[test]
    fn a_request_has_the_class_of_its_method_on_its_route() {
        let (read, write) = (Class::rest(Permission::Read), Class::rest(Permission::Write).up_to(7));
        let routes = Routes::default()
            .get(read, "/api/v1/files", async || ())
            .post(write, "/api/v1/files", async || ())
            .below("/api/v1", NOWHERE);
        let (_, classes) = routes.into_parts();
        let of = |method: Method| classes.of(Some("/api/v1/files"), &method, "/api/v1/files");
        assert_eq!((of(Method::GET), of(Method::HEAD), of(Method::POST)), (read, read, write));
        assert_eq!(of(Method::PUT), read.of_other_methods());
    }

    #[test]
    fn what_leads_nowhere_is_told_by_whole_segments() {
        let (_, classes) = Routes::default().below("/api/v1", NOWHERE).into_parts();
        for (path, class) in [
            ("/api/v1", NOWHERE),
            ("/api/v1/nothing", NOWHERE),
            ("/api/v10/files", Class::UNKNOWN),
            ("/healthz", Class::UNKNOWN),
        ] {
            assert_eq!(classes.of(None, &Method::GET, path), class, "{path}");
        }
    }
}
