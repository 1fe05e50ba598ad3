//! Several servers behind one endpoint, as one server.
//!
//! What servers offer has their names before it ([`names`]), and a request goes to the server that its name says, with the
//! text otherwise as it is ([`rewrite`]). Lists, capabilities and instructions are those of all of them ([`merge`]); a page
//! of a list has a page of each server, and its cursor says which of them have more. A session with the client is a session
//! with each server, all in the same revision; if one server loses its own, the client's is gone too (404), and it begins
//! anew. What servers ask comes to the client with ids that say whose question it is, and cannot collide.
//!
//! All servers speak the era that the client speaks: nothing is translated between eras. One that does not makes the
//! endpoint refuse, as that server would: the client then meets the era that all of them have, if there is one.
//!
//! Not here: what stands in the text of a tool's answer, or in arguments. A resource's URI there is not renamed.

mod gather;
mod merge;
mod names;
mod rewrite;
mod sessions;
mod streams;

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::BASE64;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use self::gather::Said;
pub use self::names::BadName;
use self::names::{Names, Place, Whose};
use self::rewrite::{Named, Target};
use self::sessions::{Member, Session, Sessions};
use super::request::{
    LAST_EVENT, NAME, SESSION, header, is_initialize, is_method_of_the_past, is_modern, new_session_id,
};
use super::text::{Edits, Json, Kind, Message, quoted};
use super::{Answer, Exchange, Upstream, UpstreamError, answer};
use crate::limits;

/// Several servers.
pub struct Federation(Arc<Inner>);

struct Inner {
    names: Arc<Names>,
    servers: Vec<Arc<dyn Upstream>>,
    sessions: Sessions,
}

impl Federation {
    /// These servers, by name. To be made where tokio runs.
    ///
    /// # Errors
    /// If the names cannot be told apart.
    pub fn new(servers: Vec<(String, Arc<dyn Upstream>)>, separator: &str) -> Result<Self, BadName> {
        let (names, servers): (Vec<_>, Vec<_>) = servers.into_iter().unzip();
        let names = Arc::new(Names::new(names, separator)?);
        let inner = Arc::new(Inner { names, servers, sessions: Sessions::default() });
        tokio::spawn(close_idle(Arc::downgrade(&inner)));
        Ok(Self(inner))
    }

    /// How many legacy sessions there are.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }
}

#[async_trait]
impl Upstream for Federation {
    async fn exchange(&self, request: Exchange) -> Result<Answer, UpstreamError> {
        match request.method {
            Method::POST => self.0.post(&request).await,
            _ if is_method_of_the_past(&request) => Ok(answer::not_allowed("POST")),
            Method::GET => self.0.listen(&request).await,
            Method::DELETE => self.0.delete(&request).await,
            _ => Ok(answer::not_allowed("GET, POST, DELETE")),
        }
    }
}

/// A request on its way: what came, and the session that it is in (legacy).
#[derive(Clone, Copy)]
struct Asked<'a> {
    request: &'a Exchange,
    session: Option<&'a Session>,
}

impl Asked<'_> {
    /// To one server.
    fn to(&self, whose: Whose, body: Bytes) -> Exchange {
        let headers = match self.session {
            Some(session) => session.headers(whose, &self.request.headers),
            None => without_session(&self.request.headers),
        };
        Exchange { method: self.request.method.clone(), headers, body }
    }
}

impl Inner {
    async fn post(&self, request: &Exchange) -> Result<Answer, UpstreamError> {
        let Some(message) = std::str::from_utf8(&request.body).ok().and_then(Message::read) else {
            return Ok(answer::no_message());
        };
        if is_modern(request, &message) {
            let asked = Asked { request, session: None };
            return match message.kind {
                Kind::Request => self.request(asked, &message).await,
                Kind::Notification => Ok(answer::empty(StatusCode::ACCEPTED)),
                Kind::Response => Ok(answer::no_responses()),
            };
        }
        let session = match self.session(request, &message) {
            Ok(Some(_)) if is_initialize(&message) => {
                return Ok(answer::initialized_already(message.id().map(Json::raw)));
            }
            Ok(Some(session)) => session,
            Ok(None) => return self.initialize(request, &message).await,
            Err(refusal) => return Ok(refusal),
        };
        let asked = Asked { request, session: Some(&session) };
        let answer = match message.kind {
            Kind::Request => self.request(asked, &message).await,
            Kind::Notification => self.tell(asked, &message).await,
            Kind::Response => self.reply(asked, &message).await,
        };
        self.noticed(request, answer).await
    }

    /// The session that a request is in; none if it opens one.
    fn session(&self, request: &Exchange, message: &Message<'_>) -> Result<Option<Arc<Session>>, Answer> {
        let id = message.id().map(Json::raw);
        match header(request, &SESSION) {
            Some(named) => match self.sessions.get(named) {
                Some(session) => Ok(Some(session)),
                None if is_initialize(message) => Ok(None),
                None => Err(answer::no_such_session(id)),
            },
            None if is_initialize(message) => Ok(None),
            None => Err(answer::session_missing(id)),
        }
    }

    /// A server that lost its session: there is none with the client any more.
    async fn noticed(
        &self,
        request: &Exchange,
        answer: Result<Answer, UpstreamError>,
    ) -> Result<Answer, UpstreamError> {
        let lost = answer.as_ref().is_ok_and(|answer| answer.status == StatusCode::NOT_FOUND);
        let named = header(request, &SESSION).filter(|_| lost);
        if let Some(session) = named.and_then(|id| self.sessions.remove(id)) {
            self.close(session.members()).await;
        }
        answer
    }

    // --- requests -------------------------------------------------------------------------------------

    async fn request(&self, asked: Asked<'_>, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let method = message.method().unwrap_or_default();
        if let Some(named) = rewrite::named(&method) {
            return match rewrite::target(&self.names, message, named) {
                Some(target) => self.one(asked, message, &target).await,
                None => Ok(no_such_name(asked, message, named)),
            };
        }
        match method.as_str() {
            "server/discover" => self.discover(asked, message).await,
            "tools/list" => self.list(asked, message, "tools").await,
            "prompts/list" => self.list(asked, message, "prompts").await,
            "resources/list" => self.list(asked, message, "resources").await,
            "resources/templates/list" => self.list(asked, message, "resourceTemplates").await,
            "tasks/list" => self.list(asked, message, "tasks").await,
            "subscriptions/listen" => self.subscribe(asked, message).await,
            "ping" | "logging/setLevel" => self.all(asked, message).await,
            _ => Ok(no_such_method(asked, message)),
        }
    }

    /// A request that names something of one server.
    async fn one(
        &self,
        asked: Asked<'_>,
        message: &Message<'_>,
        target: &Target<'_>,
    ) -> Result<Answer, UpstreamError> {
        let mut exchange = asked.to(target.whose, rewrite::inward(&self.names, message, target));
        if exchange.headers.contains_key(NAME) {
            exchange.headers.insert(NAME, mirrored(&target.inside));
        }
        let answer = self.servers[target.whose].exchange(exchange).await?;
        Ok(streams::passed(Arc::clone(&self.names), target.whose, answer))
    }

    /// A request that all servers get, and that says nothing but that they did it.
    async fn all(&self, asked: Asked<'_>, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let said = self.gather(asked, self.to_everybody(message)).await?;
        Ok(match successes(said) {
            Ok(parts) => {
                parts.into_iter().next().map_or_else(|| no_such_method(asked, message), Said::into_answer)
            }
            Err(other) => other.into_answer(),
        })
    }

    async fn discover(&self, asked: Asked<'_>, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let said = self.gather(asked, self.to_everybody(message)).await?;
        if let Some(other) = said.iter().find(|said| said.result().is_none()) {
            return Ok(other.clone().into_answer());
        }
        let id = message.id().map_or("null", Json::raw);
        let parts: Vec<_> = said.iter().filter_map(|said| Some((said.whose, said.result()?))).collect();
        Ok(match merge::discovered(&self.names, &parts) {
            Some(result) => answer::json(StatusCode::OK, merge::response(id, &result).into()),
            None => bad(asked, message, answer::INVALID_PARAMS, NO_COMMON_REVISION),
        })
    }

    async fn list(
        &self,
        asked: Asked<'_>,
        message: &Message<'_>,
        list: &str,
    ) -> Result<Answer, UpstreamError> {
        let cursor = message.param("cursor").filter(|cursor| cursor.raw() != "null");
        let bodies = match cursor {
            None => self.to_everybody(message),
            Some(part) => {
                let Some(cursors) = part.string().and_then(|cursor| self.names.cursor_inside(&cursor)) else {
                    return Ok(bad(
                        asked,
                        message,
                        answer::INVALID_PARAMS,
                        "the cursor is none that this endpoint gave",
                    ));
                };
                let with = |cursor: String| {
                    let mut edits = Edits::of(message.text());
                    edits.replace(part, quoted(&cursor));
                    edits.done()
                };
                let more = cursors.into_iter().enumerate();
                more.filter_map(|(whose, cursor)| Some((whose, with(cursor?)))).collect()
            }
        };
        let said = self.gather(asked, bodies).await?;
        let parts = match successes(said) {
            Ok(parts) if parts.is_empty() => return Ok(no_such_method(asked, message)),
            Ok(parts) => parts,
            Err(other) => return Ok(other.into_answer()),
        };
        let parts: Vec<_> = parts.iter().filter_map(|said| Some((said.whose, said.result()?))).collect();
        let id = message.id().map_or("null", Json::raw);
        let result = merge::listed(&self.names, list, &parts);
        Ok(answer::json(StatusCode::OK, merge::response(id, &result).into()))
    }

    async fn subscribe(&self, asked: Asked<'_>, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let uris = message.at(&["params", "notifications", "resourceSubscriptions"]);
        let bodies = (0..self.servers.len()).map(|whose| {
            let mut edits = Edits::of(message.text());
            if let Some(uris) = uris {
                let mine = uris.items().into_iter().filter_map(Json::string).filter_map(|uri| {
                    self.names
                        .uri_inside(&uri)
                        .filter(|(server, _)| *server == whose)
                        .map(|(_, uri)| uri.to_owned())
                });
                edits.replace(uris, serde_json::json!(mine.collect::<Vec<_>>()).to_string());
            }
            (whose, edits.done())
        });
        let answers = self.ask(asked, bodies.collect()).await?;
        match streams::opened(answers) {
            Ok(open) => streams::subscribed(Arc::clone(&self.names), open).await,
            Err(other) => Ok(other.unwrap_or_else(|| no_such_method(asked, message))),
        }
    }

    // --- what is no request ---------------------------------------------------------------------------

    /// A notification: to whom its token belongs, or to everybody. A request's id is the same at each server.
    async fn tell(&self, asked: Asked<'_>, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        if message.method().as_deref() == Some("notifications/progress") {
            let Some(token) = message.param("progressToken") else {
                return Ok(answer::empty(StatusCode::ACCEPTED));
            };
            let Some((whose, raw)) = self.names.id_inside(token) else {
                return Ok(answer::empty(StatusCode::ACCEPTED));
            };
            let mut edits = Edits::of(message.text());
            edits.replace(token, raw);
            return self.servers[whose].exchange(asked.to(whose, edits.done())).await;
        }
        let answers = self.ask(asked, self.to_everybody(message)).await?;
        let refusal =
            answers.into_iter().map(|(_, answer)| answer).find(|answer| !answer.status.is_success());
        Ok(refusal.unwrap_or_else(|| answer::empty(StatusCode::ACCEPTED)))
    }

    /// The answer to a question that one server asked.
    async fn reply(&self, asked: Asked<'_>, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        match rewrite::reply_inward(&self.names, message) {
            Some((whose, body)) => self.servers[whose].exchange(asked.to(whose, body)).await,
            None => Ok(bad(asked, message, answer::INVALID_REQUEST, "no server has asked for this")),
        }
    }

    // --- sessions -------------------------------------------------------------------------------------

    async fn initialize(&self, request: &Exchange, message: &Message<'_>) -> Result<Answer, UpstreamError> {
        let id = message.id().map_or("null", Json::raw);
        if !self.sessions.have_room() {
            return Ok(answer::busy(Some(id), "there are as many sessions as there may be"));
        }
        let asked = Asked { request, session: None };
        let mut opened = self.open(asked, self.to_everybody(message)).await?;
        if opened.refused().is_none() {
            opened = self.agreed(asked, message, opened).await?;
        }
        if let Some(refused) = opened.refused() {
            let answer = refused.into_answer();
            self.close(&opened.members).await;
            return Ok(answer);
        }
        if !opened.is_of_one_revision() {
            self.close(&opened.members).await;
            return Ok(bad(asked, message, answer::INVALID_PARAMS, NO_COMMON_REVISION));
        }
        let parts: Vec<_> =
            opened.said.iter().filter_map(|said| Some((said.whose, said.result()?))).collect();
        let result = merge::initialized(&self.names, &parts, &opened.version());
        let mut answer = answer::json(StatusCode::OK, merge::response(id, &result).into());
        let session = new_session_id()?;
        let value =
            HeaderValue::from_str(&session).map_err(|error| UpstreamError::Lost(error.to_string()))?;
        answer.headers.insert(SESSION, value);
        self.sessions.insert(session, Session::new(opened.members));
        Ok(answer)
    }

    /// Opens a session at each of these servers.
    async fn open(&self, asked: Asked<'_>, bodies: Vec<(Whose, Bytes)>) -> Result<Opened, UpstreamError> {
        let opening = bodies.into_iter().map(|(whose, body)| async move {
            gather::read(whose, self.servers[whose].exchange(asked.to(whose, body)).await?).await
        });
        let mut opened = Opened::default();
        let mut failure = None;
        for said in join_all(opening).await {
            match said {
                Ok(said) => opened.add(said),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => Ok(opened),
            Some(error) => {
                self.close(&opened.members).await;
                Err(error)
            }
        }
    }

    /// The sessions in one revision: with servers that agreed to a later one than others do, once more.
    async fn agreed(
        &self,
        asked: Asked<'_>,
        message: &Message<'_>,
        mut opened: Opened,
    ) -> Result<Opened, UpstreamError> {
        let version = opened.version();
        let later: Vec<Whose> =
            (0..opened.said.len()).filter(|at| opened.members[*at].version != *version).collect();
        let (Some(part), false) = (message.param("protocolVersion"), later.is_empty()) else {
            return Ok(opened);
        };
        self.close(&later.iter().map(|at| opened.members[*at].clone()).collect::<Vec<_>>()).await;
        let mut edits = Edits::of(message.text());
        edits.replace(part, quoted(&version));
        let body = edits.done();
        let bodies = later.iter().map(|at| (opened.said[*at].whose, body.clone())).collect();
        let again = match self.open(asked, bodies).await {
            Ok(again) => again,
            Err(error) => {
                self.close(&opened.members).await;
                return Err(error);
            }
        };
        for ((at, said), member) in later.into_iter().zip(again.said).zip(again.members) {
            (opened.said[at], opened.members[at]) = (said, member);
        }
        Ok(opened)
    }

    async fn delete(&self, request: &Exchange) -> Result<Answer, UpstreamError> {
        let Some(id) = header(request, &SESSION) else { return Ok(answer::session_missing(None)) };
        let Some(session) = self.sessions.remove(id) else { return Ok(answer::no_such_session(None)) };
        self.close(session.members()).await;
        Ok(answer::empty(StatusCode::OK))
    }

    /// Ends the sessions at their servers. A server that does not hear of it ends it when nobody uses it.
    async fn close(&self, members: &[Member]) {
        let closing = members.iter().filter(|member| member.id.is_some());
        join_all(closing.map(|member| {
            let headers = member.headers(&HeaderMap::new());
            let exchange = Exchange { method: Method::DELETE, headers, body: Bytes::new() };
            self.servers[member.whose].exchange(exchange)
        }))
        .await;
    }

    async fn listen(&self, request: &Exchange) -> Result<Answer, UpstreamError> {
        let Some(id) = header(request, &SESSION) else { return Ok(answer::session_missing(None)) };
        let Some(session) = self.sessions.get(id) else { return Ok(answer::no_such_session(None)) };
        let places = match header(request, &LAST_EVENT).map(|id| self.names.event_inside(id)) {
            None => vec![None; self.servers.len()],
            Some(Some(Place::All(places))) => places,
            Some(Some(Place::One(whose, id))) => {
                let answer = self.open_stream(request, &session, whose, Some(&id)).await;
                let answer = answer.map(|answer| streams::passed(Arc::clone(&self.names), whose, answer));
                return self.noticed(request, answer).await;
            }
            Some(None) => {
                let why = "Last-Event-ID names no event of this session";
                return Ok(answer::error(StatusCode::BAD_REQUEST, None, answer::NO_SESSION, why));
            }
        };
        let session = &session;
        let opening = places.iter().enumerate().map(|(whose, place)| async move {
            Ok::<_, UpstreamError>((
                whose,
                self.open_stream(request, session, whose, place.as_deref()).await?,
            ))
        });
        let answers = join_all(opening).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        if answers.iter().any(|(_, answer)| answer.status == StatusCode::NOT_FOUND) {
            return self.noticed(request, Ok(answer::no_such_session(None))).await;
        }
        Ok(match streams::opened(answers) {
            Ok(open) => streams::common(Arc::clone(&self.names), places, open),
            Err(other) => other.unwrap_or_else(|| answer::not_allowed("POST, DELETE")),
        })
    }

    async fn open_stream(
        &self,
        request: &Exchange,
        session: &Session,
        whose: Whose,
        place: Option<&str>,
    ) -> Result<Answer, UpstreamError> {
        let mut exchange = Asked { request, session: Some(session) }.to(whose, Bytes::new());
        if let Some(place) = place.and_then(|place| HeaderValue::from_str(place).ok()) {
            exchange.headers.insert(LAST_EVENT, place);
        }
        self.servers[whose].exchange(exchange).await
    }

    // --- several servers ------------------------------------------------------------------------------

    fn to_everybody(&self, message: &Message<'_>) -> Vec<(Whose, Bytes)> {
        let body = Bytes::copy_from_slice(message.text().as_bytes());
        (0..self.servers.len()).map(|whose| (whose, body.clone())).collect()
    }

    async fn ask(
        &self,
        asked: Asked<'_>,
        bodies: Vec<(Whose, Bytes)>,
    ) -> Result<Vec<(Whose, Answer)>, UpstreamError> {
        let asking = bodies.into_iter().map(|(whose, body)| async move {
            Ok((whose, self.servers[whose].exchange(asked.to(whose, body)).await?))
        });
        join_all(asking).await.into_iter().collect()
    }

    /// What all of these say, in the order of the servers.
    async fn gather(
        &self,
        asked: Asked<'_>,
        bodies: Vec<(Whose, Bytes)>,
    ) -> Result<Vec<Said>, UpstreamError> {
        let asking = bodies.into_iter().map(|(whose, body)| async move {
            gather::read(whose, self.servers[whose].exchange(asked.to(whose, body)).await?).await
        });
        join_all(asking).await.into_iter().collect()
    }
}

const NO_COMMON_REVISION: &str = "the servers behind this endpoint have no revision in common";

/// What servers said to `initialize`, and what the session is there.
#[derive(Default)]
struct Opened {
    said: Vec<Said>,
    members: Vec<Member>,
}

impl Opened {
    fn add(&mut self, said: Said) {
        let version = said.result().and_then(|result| result.get("protocolVersion")?.string());
        let version = version.and_then(|version| HeaderValue::from_str(&version).ok());
        self.members.push(Member {
            whose: said.whose,
            id: said.headers.get(SESSION).cloned(),
            version: version.unwrap_or_else(|| HeaderValue::from_static("")),
        });
        self.said.push(said);
    }

    fn refused(&self) -> Option<Said> {
        self.said.iter().find(|said| said.result().is_none()).cloned()
    }

    fn is_of_one_revision(&self) -> bool {
        self.members.iter().all(|member| member.version == self.members[0].version)
    }

    /// The earliest revision that a server agreed to. Revisions are dates: their order is that of their text.
    fn version(&self) -> String {
        let versions = self.members.iter().filter_map(|member| member.version.to_str().ok());
        versions.min().unwrap_or_default().to_owned()
    }
}

/// The successes; servers that do not have the method are left out. Anything else is what the client gets.
fn successes(said: Vec<Said>) -> Result<Vec<Said>, Box<Said>> {
    let (successes, other): (Vec<_>, Vec<_>) = said.into_iter().partition(|said| said.result().is_some());
    match other.into_iter().find(|said| !said.has_no_such_method()) {
        Some(other) => Err(Box::new(other)),
        None => Ok(successes),
    }
}

/// An error of ours that is an answer: in the modern era its status says so too.
fn bad(asked: Asked<'_>, message: &Message<'_>, code: i64, why: &str) -> Answer {
    let status = match (asked.session.is_some(), code) {
        (true, _) => StatusCode::OK,
        (false, answer::NO_METHOD) => StatusCode::NOT_FOUND,
        (false, _) => StatusCode::BAD_REQUEST,
    };
    answer::error(status, message.id().map(Json::raw), code, why)
}

fn no_such_method(asked: Asked<'_>, message: &Message<'_>) -> Answer {
    bad(asked, message, answer::NO_METHOD, "no server behind this endpoint has this method")
}

fn no_such_name(asked: Asked<'_>, message: &Message<'_>, named: Named) -> Answer {
    let code = match named {
        Named::Uri(_) if asked.session.is_some() => -32002,
        _ => answer::INVALID_PARAMS,
    };
    bad(asked, message, code, "no server behind this endpoint has what this names")
}

fn without_session(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove(SESSION);
    headers.remove(LAST_EVENT);
    headers
}

/// A name as `Mcp-Name` has it: as it is, or in base64 where a header cannot hold it.
fn mirrored(name: &str) -> HeaderValue {
    let plain = name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && name.trim() == name
        && !name.starts_with("=?");
    let encoded = || format!("=?base64?{}?=", BASE64.encode(name.as_bytes()));
    let text = if plain { name.to_owned() } else { encoded() };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

async fn close_idle(federation: Weak<Inner>) {
    loop {
        tokio::time::sleep(limits::SESSION_SWEEP).await;
        let Some(inner) = federation.upgrade() else { return };
        let idle = inner.sessions.remove_idle();
        let closing: FuturesUnordered<_> =
            idle.iter().map(|session| inner.close(session.members())).collect();
        closing.collect::<()>().await;
    }
}
