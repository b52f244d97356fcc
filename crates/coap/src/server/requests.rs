//! Requests: what each asks for, and the answer or the call that it leads to.

use std::net::SocketAddr;

use tenure_hal::Instant;
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::{Name, Topic};

use super::{Server, Visitor, Whom};
use crate::answer::{Answer, NoAnswer};
use crate::confirmables::About;
use crate::exchanges::State;
use crate::format::{self, NoParameter};
use crate::links;
use crate::message::{Asked, Code, Method, Misread, Observe, Reply, Request, Type, empty_message};
use crate::observers::Subject;
use crate::place::{Place, no_topic};
use crate::transfers::{Step, UPLOAD_BYTES_MAX};
use crate::wish::{BELIEVED_S, Wish};

/// The step after a request.
enum Next {
    /// An answer that is there.
    Answer(Answer),
    /// The last event of a topic.
    Topic(Topic),
    /// A call.
    Call(Name, String, Option<Vec<u8>>),
    /// The next block of its payload is wanted.
    Continue,
}

impl Server {
    /// Takes in a request; one that came before gets what it got.
    pub(super) fn request(&mut self, now: Instant, peer: SocketAddr, request: Request) {
        if let Some(echo) = &request.echo {
            self.proofs.judge(now, peer, echo);
        }
        let exchange = (peer, request.id);
        let acknowledgement = || empty_message(Type::Acknowledgement, request.id);
        match self.exchanges.state(&exchange) {
            None => {}
            Some(State::Answered { .. }) => {
                // A client's own repetition has the same bytes; somebody else's may be shorter than what it asks for.
                let room = self.proofs.room(now, peer, request.datagram_bytes).bytes;
                if let Some(bytes) = self.exchanges.again(&exchange, room) {
                    self.send(peer, bytes);
                }
                return;
            }
            Some(State::Acknowledged | State::Separate) if request.is_confirmable => {
                return self.send(peer, acknowledgement());
            }
            Some(_) => return,
        }
        if matches!(request.asked, Err(Misread { code: Code::BadOption, .. }))
            && !request.is_confirmable
        {
            // RFC 7252 §5.4.1: it is dropped.
            return;
        }
        self.requests += 1;
        self.exchanges.begin(now, exchange);
        let mut visitor = Visitor {
            id: request.id,
            is_confirmable: request.is_confirmable,
            is_acknowledged: false,
            wish: Wish::of(peer, &request),
        };
        let next = match request.asked {
            Ok(asked) => self.next(now, &mut visitor.wish, asked),
            Err(Misread { code, text }) => Err(Answer::error(code, &text)),
        };
        match next {
            Ok(Next::Answer(answer)) | Err(answer) => self.deliver(now, &visitor, answer, None),
            Ok(Next::Topic(topic)) => self.topic(now, &visitor, topic),
            Ok(Next::Call(machine, function, parameter)) => match self.admit(now, peer, &machine) {
                Ok(()) => {
                    let call = (machine, function, parameter);
                    self.begin_call(now, call, Whom::Visitor(visitor));
                }
                Err(answer) => self.deliver(now, &visitor, answer, None),
            },
            Ok(Next::Continue) => {
                let mut reply = Reply::new(Code::Continue);
                reply.block1 = visitor.wish.block1;
                self.respond(now, &visitor, &reply);
            }
        }
    }

    fn next(&mut self, now: Instant, wish: &mut Wish, asked: Asked) -> Result<Next, Answer> {
        if wish.observe == Some(Observe::Deregister) {
            self.observers.remove_by_token(wish.key.peer, &wish.token);
        }
        if wish.block2.is_some_and(|block| !block.is_first()) {
            let kept = self.downloads.next(now, &wish.key.of_download());
            return kept.map(Next::Answer).ok_or_else(|| {
                let text = "the answer isn't kept any more; begin anew";
                Answer::error(Code::RequestEntityIncomplete, text)
            });
        }
        let place = Place::at(&wish.key.path)?;
        let is_get = asked.method == Method::Get;
        match place {
            Place::Core | Place::Topic(_) if !is_get => Err(only("it is only to be read")),
            Place::Core => self.list(wish).map(Next::Answer),
            Place::Topic(topic) if self.topics.is_open(&topic) => Ok(Next::Topic(topic)),
            Place::Topic(_) => Err(no_topic()),
            Place::Function { machine, function } => {
                self.entry(&machine, &function)?;
                if asked.method == Method::Other {
                    return Err(only("a function takes GET, FETCH, POST and PUT"));
                }
                if !format::is_spoken(wish.accept) {
                    return Err(Answer::not_acceptable());
                }
                let parameter = match asked.method {
                    Method::Get => asked.query.map(String::into_bytes),
                    _ => match self.parameter(now, wish, asked)? {
                        Some(parameter) => parameter,
                        None => return Ok(Next::Continue),
                    },
                };
                Ok(Next::Call(machine, function, parameter))
            }
        }
    }

    /// The parameter in a request, null or not; `None` if its next block is to come.
    fn parameter(
        &mut self,
        now: Instant,
        wish: &mut Wish,
        asked: Asked,
    ) -> Result<Option<Option<Vec<u8>>>, Answer> {
        if asked.size1.is_some_and(|bytes| bytes as usize > UPLOAD_BYTES_MAX) {
            return Err(too_large());
        }
        let payload = match wish.block1 {
            None => asked.payload,
            Some(block) => {
                let step = self.uploads.block(now, wish.key.clone(), block, &asked.payload);
                match step {
                    Step::Whole(payload) => payload,
                    Step::Continue => return Ok(None),
                    Step::TooLarge => return Err(too_large()),
                    Step::Incomplete => {
                        let text = "this isn't the next block; begin anew";
                        return Err(Answer::error(Code::RequestEntityIncomplete, text));
                    }
                    Step::Misfit => {
                        let text = "the block has another length than it says";
                        return Err(Answer::error(Code::BadRequest, text));
                    }
                }
            }
        };
        let parameter = match (payload.is_empty(), asked.query) {
            (false, Some(_)) => {
                let text = "the parameter is the payload or the query, not both";
                return Err(Answer::error(Code::BadRequest, text));
            }
            (true, query) => query.map(String::into_bytes),
            (false, None) => {
                format::parameter(payload, asked.format).map_err(|reason| match reason {
                    NoParameter::Unsupported => Answer::error(
                        Code::UnsupportedContentFormat,
                        "content formats are 0, 42, 50 and 60",
                    ),
                    NoParameter::Malformed => {
                        Answer::error(Code::BadRequest, "the payload isn't of its format")
                    }
                })?
            }
        };
        let is_long = |bytes: &Vec<u8>| bytes.len() > PARAMETER_BYTES_MAX;
        if parameter.as_ref().is_some_and(is_long) { Err(too_large()) } else { Ok(Some(parameter)) }
    }

    fn list(&self, wish: &Wish) -> Result<Answer, Answer> {
        if !matches!(wish.accept, None | Some(format::LINKS)) {
            return Err(Answer::not_acceptable());
        }
        let query = wish.key.query.as_deref();
        let list = links::list(&self.entries, self.topics.listed(), query);
        Ok(Answer {
            code: Code::Content,
            format: Some(format::LINKS),
            max_age_s: None,
            bytes: list.into(),
        })
    }

    /// Answers with the last event of a topic, and tells of the next if that is wanted.
    fn topic(&mut self, now: Instant, visitor: &Visitor, topic: Topic) {
        let wish = &visitor.wish;
        let is_observed = wish.observe == Some(Observe::Register) && {
            let subject = Subject::Topic(topic.clone());
            self.observers.register(now, wish, subject)
        };
        let last = self.topics.last(&topic).unwrap_or_default();
        let answer = wish.representation(Some(last), is_observed);
        if !answer.is_success() {
            self.observers.remove_by_token(wish.key.peer, &wish.token);
        }
        let observe = is_observed.then(|| self.next_in_sequence());
        self.deliver(now, visitor, answer, observe);
    }

    /// Answers a visitor whose call is over, and tells of other results if that is wanted.
    pub(super) fn answer_visitor(
        &mut self,
        now: Instant,
        visitor: &Visitor,
        outcome: Result<Option<Vec<u8>>, NoAnswer>,
        is_stirred: bool,
    ) {
        let wish = &visitor.wish;
        let result = match outcome {
            Ok(result) => result,
            Err(reason) => return self.deliver(now, visitor, reason.into(), None),
        };
        let answer = wish.representation(result.as_deref(), false);
        let subject = (answer.code == Code::Content).then(|| self.observable(wish)).flatten();
        let Some(subject) = subject.filter(|one| self.observers.register(now, wish, one.clone()))
        else {
            return self.deliver(now, visitor, answer, None);
        };
        self.observers.watch(now, &subject, result, is_stirred);
        let answer = Answer { max_age_s: Some(BELIEVED_S), ..answer };
        let observe = self.next_in_sequence();
        self.deliver(now, visitor, answer, Some(observe));
    }

    /// The function that a request wants to observe, if its machine publishes events.
    fn observable(&self, wish: &Wish) -> Option<Subject> {
        if wish.observe != Some(Observe::Register) || wish.key.method != Method::Get {
            return None;
        }
        let Ok(Place::Function { machine, function }) = Place::at(&wish.key.path) else {
            return None;
        };
        let publishes = self.entry(&machine, &function).is_ok_and(|entry| entry.publishes);
        let query = wish.key.query.clone();
        publishes.then_some(Subject::Function { machine, function, query })
    }

    pub(super) fn deliver(
        &mut self,
        now: Instant,
        visitor: &Visitor,
        answer: Answer,
        observe: Option<u32>,
    ) {
        self.refused += u64::from(!answer.is_success());
        let reply = self.cut(now, &visitor.wish, answer, observe);
        self.respond(now, visitor, &reply);
    }

    /// Sends the reply to a request: with the acknowledgement where that is still to be sent, else in a message of its own
    /// (RFC 7252 §5.2).
    fn respond(&mut self, now: Instant, visitor: &Visitor, reply: &Reply) {
        let (wish, peer) = (&visitor.wish, visitor.wish.key.peer);
        let exchange = (peer, visitor.id);
        if visitor.is_acknowledged {
            self.exchanges.note(&exchange, State::Separate);
            return self.confirm(now, wish, reply, About::Answer, false);
        }
        let (kind, id) = match visitor.is_confirmable {
            true => (Type::Acknowledgement, visitor.id),
            false => (Type::NonConfirmable, self.next_id(peer)),
        };
        let bytes = reply.message(kind, id, &wish.token);
        self.exchanges.note(&exchange, State::answered(bytes.clone()));
        self.send(peer, bytes);
    }
}

fn only(text: &str) -> Answer {
    Answer::error(Code::MethodNotAllowed, text)
}

fn too_large() -> Answer {
    Answer::error(Code::RequestEntityTooLarge, "the payload is longer than a parameter")
}
