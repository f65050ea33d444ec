//! The OpenAPI 3.1 documents of `/api/v1` and of the console, generated from the routes, and a Swagger UI page for
//! the first.

use std::future::{Ready, ready};
use std::sync::{Arc, OnceLock};

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response as ResponseBody};
use bytes::Bytes;
use cairn_chassis::status::Problem;
use http::header;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    Components, ContentBuilder, InfoBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, ResponsesBuilder,
};
use utoipa::{PartialSchema as _, ToSchema as _};
use utoipa_swagger_ui::Config;

use crate::auth::PLAIN_COOKIE;
use crate::class::{Class, Surface, Who};
use crate::error::{Error, ErrorBody};
use crate::routes::Routes;

const VERSION: &str = "1.0.0";
const BEARER: &str = "bearer";
const SESSION: &str = "session";
const JSON_PATH: &str = "/api/docs/openapi.json";
const CONSOLE_PATH: &str = "/api/docs/console.json";
const UI_PATH: &str = "/api/docs/swagger";
const PAGE_HEAD: &str = "<head><base href=\"/api/docs/swagger/\">";
/// Its own files only; Swagger UI sets inline styles and has small images in its style sheet.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";
const YAML_PATH: &str = "/api/docs/openapi.yaml";
const DESCRIPTION: &str = "Workspace context for AI agents: files and folders, and search over them with citations.\n\n\
    Every operation takes an API token of one workspace: `Authorization: Bearer <API_TOKEN>`. Unknown fields in a body \
    are an error, unknown query parameters are ignored. A write answers `X-Cairn-Change`; sent with a search, the \
    search sees at least that write.";

/// Completes the document of the `/api/v1` routes.
pub(crate) fn of_programs(document: OpenApi) -> OpenApi {
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API token of a workspace, from the console's Tokens page."))
        .build();
    let mut document = completed(document, "Cairn", DESCRIPTION, (BEARER, SecurityScheme::Http(scheme)));
    operations(&mut document).for_each(|(_, operation)| describe_successes(operation));
    document
}

/// Completes the document of the console routes.
pub(crate) fn of_console(document: OpenApi) -> OpenApi {
    let cookie =
        ApiKeyValue::with_description(PLAIN_COOKIE, "The session; over https `__Host-cairn_session`.");
    let scheme = SecurityScheme::ApiKey(ApiKey::Cookie(cookie));
    completed(document, "Cairn console", CONSOLE_DESCRIPTION, (SESSION, scheme))
}

fn completed(
    mut document: OpenApi,
    title: &str,
    description: &str,
    (name, scheme): (&str, SecurityScheme),
) -> OpenApi {
    document.info = InfoBuilder::new().title(title).version(VERSION).description(Some(description)).build();
    document.security = Some(vec![SecurityRequirement::new(name, Vec::<String>::new())]);
    let components = document.components.get_or_insert_with(Components::new);
    components.add_security_scheme(name, scheme);
    describe_shared_parts(components);
    operations(&mut document).for_each(|(path, operation)| describe_errors(path, operation));
    document
}

fn operations(document: &mut OpenApi) -> impl Iterator<Item = (&str, &mut Operation)> {
    document.paths.paths.iter_mut().flat_map(|(path, item)| {
        let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.put, &mut item.delete];
        operations.into_iter().flatten().map(|operation| (path.as_str(), operation))
    })
}

/// Serves both documents and the Swagger UI. They are generated at the first request: a cold start must not pay for
/// them, and they would hold 6 MiB of memory unused.
pub(crate) fn routes(document: fn() -> OpenApi, console: fn() -> OpenApi) -> Routes {
    let open = Class::new(Surface::Open, Who::Anyone);
    let as_json = |document: &OpenApi| document.to_json().unwrap_or_default();
    let as_yaml = |document: &OpenApi| document.to_yaml().unwrap_or_default();
    Routes::default()
        .get(open, JSON_PATH, text_of(document, "application/json", as_json))
        .get(open, YAML_PATH, text_of(document, "application/yaml", as_yaml))
        .get(open, CONSOLE_PATH, text_of(console, "application/json", as_json))
        .get(open, UI_PATH, async || swagger_file(String::new()))
        .get(open, &format!("{UI_PATH}/"), async || swagger_file(String::new()))
        .get(open, &format!("{UI_PATH}/{{*file}}"), async |Path(file): Path<String>| swagger_file(file))
}

fn text_of(
    document: fn() -> OpenApi,
    media_type: &'static str,
    write: fn(&OpenApi) -> String,
) -> impl Fn() -> Ready<ResponseBody> + Clone + Send + Sync + 'static {
    let text: Arc<OnceLock<Bytes>> = Arc::default();
    move || {
        let bytes = text.get_or_init(|| Bytes::from(write(&document()))).clone();
        ready(([(header::CONTENT_TYPE, media_type)], bytes).into_response())
    }
}

/// A file of Swagger UI. Its links are relative, so the page needs a base when it is opened without the trailing
/// slash.
fn swagger_file(name: String) -> Result<ResponseBody, Error> {
    static CONFIG: OnceLock<Arc<Config<'static>>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| Arc::new(Config::from(JSON_PATH)));
    let found = utoipa_swagger_ui::serve(&name, Arc::clone(config))
        .map_err(|error| Problem::internal(format_args!("the API page is damaged: {error}")))?;
    let Some(file) = found else {
        return Err(Error::unknown_route());
    };
    let mut bytes = file.bytes.into_owned();
    if file.content_type == "text/html" {
        let html = String::from_utf8_lossy(&bytes).replacen("<head>", PAGE_HEAD, 1);
        bytes = html.into_bytes();
    }
    let headers = [
        (header::CONTENT_TYPE, file.content_type),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY.to_owned()),
    ];
    Ok((headers, bytes).into_response())
}

const CONSOLE_DESCRIPTION: &str = "What the console's pages call for signed-in people.\n\n\
    An operation takes the session cookie that `POST /api/session` sets, unless it says that it takes none. Requests of \
    another site's page may change nothing. Unknown fields in a body are an error.";

/// On every response: the caller's tightest rate-limit window.
const LIMIT_HEADERS: [(&str, &str); 4] = [
    ("X-RateLimit-Limit", "How many requests the tightest window allows."),
    ("X-RateLimit-Remaining", "How many are left in it."),
    ("X-RateLimit-Reset", "Whole seconds until it ends."),
    ("X-RateLimit-Window", "Which window it is: `minute`, `hour` or `day`."),
];

fn describe_shared_parts(components: &mut Components) {
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema())];
    ErrorBody::schemas(&mut schemas);
    components.schemas.extend(schemas);
    let errors = [
        ("BadRequest", "The body or a parameter is not valid; `errors` lists every problem."),
        ("Unauthorized", "The token is missing, invalid, expired or deactivated."),
        ("Forbidden", "The token lacks the permission, or the resource lies outside its folders."),
        ("NotFound", "There is no such resource in the token's workspace."),
        ("PayloadTooLarge", "The body is too large."),
        ("UnsupportedMediaType", "The body is not JSON."),
        ("RateLimited", "A rate limit is exhausted: wait as long as `Retry-After` says."),
        ("Internal", "A fault of the service; its log has the detail under the request id."),
        ("Unavailable", "A service is down: try again after `Retry-After` seconds."),
        ("Timeout", "The time for the request ran out."),
    ];
    for (name, description) in errors {
        components.responses.insert(name.to_owned(), RefOr::T(error_response(name, description)));
    }
}

fn error_response(name: &str, description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ErrorBody::name()))).build();
    let mut response = ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .header("X-Request-Id", text_header("The request, as the log knows it."));
    for (name, description) in LIMIT_HEADERS {
        response = response.header(name, text_header(description));
    }
    let waits = matches!(name, "RateLimited" | "Unavailable");
    if waits {
        return response.header("Retry-After", text_header("Whole seconds to wait.")).build();
    }
    response.build()
}

/// The error responses of every operation, depending on its inputs.
fn describe_errors(path: &str, operation: &mut Operation) {
    let has_body = operation.request_body.is_some();
    let takes_input =
        has_body || operation.parameters.as_ref().is_some_and(|parameters| !parameters.is_empty());
    let codes = [
        ("400", "BadRequest", takes_input),
        ("401", "Unauthorized", true),
        ("403", "Forbidden", true),
        ("404", "NotFound", path.contains('{') || takes_input),
        ("413", "PayloadTooLarge", has_body),
        ("415", "UnsupportedMediaType", has_body),
        ("429", "RateLimited", true),
        ("500", "Internal", true),
        ("503", "Unavailable", true),
        ("504", "Timeout", true),
    ];
    let mut responses = ResponsesBuilder::new();
    for (code, name, _) in codes.iter().filter(|(.., applies)| *applies) {
        responses = responses.response(*code, Ref::from_response_name(*name));
    }
    operation.responses.responses.extend(responses.build().responses);
}

/// The response headers of successes, by HTTP method.
fn describe_successes(operation: &mut Operation) {
    let id = operation.operation_id.clone().unwrap_or_default();
    let starts_with = |verbs: &[&str]| verbs.iter().any(|verb| id.starts_with(verb));
    let is_list = starts_with(&["list"]);
    let is_write = starts_with(&["create", "update", "delete", "restore"]);
    let mut headers = vec![("X-Request-Id", "The request, as the log knows it.")];
    headers.extend(LIMIT_HEADERS);
    if is_write {
        headers.push(("X-Cairn-Change", "Where this write stands: send it with a search that must see it."));
    }
    if is_list {
        headers.push(("X-Total-Count", "How many there are in all."));
        headers.push(("Link", "`rel=\"next\"`: the address of the next page, if there is one (RFC 8288)."));
    }
    for (code, answer) in &mut operation.responses.responses {
        if let RefOr::T(response) = answer
            && code.starts_with('2')
        {
            let described = headers.iter().map(|(name, text)| ((*name).to_owned(), text_header(text).into()));
            response.headers.extend(described);
        }
    }
}

fn text_header(description: &str) -> utoipa::openapi::Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some(description))
        .build()
}
