//! A client for the admin listener of a running node.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use crate::failure::Failure;

/// The longest time in which a node has to send one response.
const DEADLINE: Duration = Duration::from_secs(10);

/// The longest time in which a node has to read an upload and send the response.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(300);

/// The most bytes of a response. Every response is smaller, even one with 10,000 overrides.
const MAX_ANSWER: usize = 16 << 20;

/// The admin listener and the token to use.
#[derive(Clone, Debug, Args)]
pub(crate) struct AdminClient {
    /// The node's admin listener, as http://HOST:PORT
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8182")]
    admin: Uri,
    /// A file with one of the listener's tokens on its first line that is not a comment
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl AdminClient {
    /// Sends a request for `path` with its query, and with `body` if there is one, and returns the
    /// node's response.
    ///
    /// # Errors
    /// The error message of the node, or a message that the node did not respond.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        self.document(self.exchange(self.request(method, path, body)?, DEADLINE).await?)
    }

    /// Returns the JSON document of a response. If the status is an error, returns an error with
    /// the message in the document.
    fn document(&self, (status, bytes): (StatusCode, Bytes)) -> Result<Value, Failure> {
        let at = &self.admin;
        let message: Value = serde_json::from_slice(&bytes).map_err(|_| {
            format!("{at} responded with {status} and no JSON: is it an admin listener?")
        })?;
        if status.is_success() {
            return Ok(message);
        }
        let word = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
        Err(format!("{}: {}", word("title"), word("detail")).into())
    }

    /// Sends `body` to `path`, and returns the node's response.
    ///
    /// # Errors
    /// The error message of the node, or a message that the node did not respond.
    pub(crate) async fn upload<B>(
        &self,
        path: &str,
        media_type: &'static str,
        body: B,
    ) -> Result<Value, Failure>
    where
        B: Body<Data = Bytes, Error = io::Error> + Send + Unpin + 'static,
    {
        let (mut head, _) = self.request(Method::POST, path, None)?.into_parts();
        head.headers.insert("content-type", HeaderValue::from_static(media_type));
        let answer = self.exchange(Request::from_parts(head, body), UPLOAD_DEADLINE).await?;
        self.document(answer)
    }

    /// Requests `path` from the node, and returns the response as text.
    ///
    /// # Errors
    /// The node has no such path, or did not respond.
    pub(crate) async fn read(&self, path: &str) -> Result<String, Failure> {
        let (status, bytes) =
            self.exchange(self.request(Method::GET, path, None)?, DEADLINE).await?;
        if !status.is_success() {
            return Err(format!("{}{path} answered {status}", self.admin).into());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn exchange<B>(
        &self,
        request: Request<B>,
        deadline: Duration,
    ) -> Result<(StatusCode, Bytes), Failure>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let exchange = async {
            let client = Client::builder(TokioExecutor::new()).build_http();
            let response = client.request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|error| -> Failure { error })?;
            Ok::<_, Failure>((status, body.to_bytes()))
        };
        let at = &self.admin;
        let slow = || format!("{at} did not respond within {} s", deadline.as_secs());
        let answered = timeout(deadline, exchange).await.map_err(|_| slow())?;
        Ok(answered.map_err(|error| format!("cannot query {at}: {}", causes(&*error)))?)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let (Some("http"), Some(authority)) = (self.admin.scheme_str(), self.admin.authority())
        else {
            let at = &self.admin;
            return Err(format!(
                "{at}: give the listener as http://HOST:PORT, of this machine or through a tunnel"
            )
            .into());
        };
        let mut request = Request::builder().method(method);
        request = request.uri(format!("http://{authority}{path}"));
        if let Some(token) = self.token()? {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        Ok(request.body(Full::from(body))?)
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let at = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{at}: {error}"))?;
        let mut lines = text.lines().map(str::trim);
        let token = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        let token = token.ok_or_else(|| format!("{at}: the file has no token"))?;
        Ok(Some(token.to_owned()))
    }
}

impl fmt::Display for AdminClient {
    /// Writes the URL of the listener.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.admin.fmt(f)
    }
}

/// Returns the message of an error with the messages of its causes. The message of an HTTP client
/// alone is often only "connect".
fn causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message += &format!(": {error}");
        cause = error.source();
    }
    message
}
