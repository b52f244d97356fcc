//! Requests as visitors send them, and answers as a browser gets them.

use tenure::http::{PART_BYTES, Request, Response, escape};

fn request(message: &str) -> Request<'_> {
    Request::parse(message.as_bytes()).unwrap()
}

#[test]
fn request_is_taken_apart() {
    let whole =
        request("POST /set/a%20b?x=1&y HTTP/1.1\r\nHost: panel\r\nX-Two:  2 \r\n\r\nbody\r\n\r\n");
    assert_eq!((whole.method, whole.path, whole.query), ("POST", "/set/a%20b", "x=1&y"));
    assert_eq!(
        (whole.header("host"), whole.header("x-two"), whole.header("x")),
        (Some("panel"), Some("2"), None)
    );
    assert_eq!(whole.body, b"body\r\n\r\n");
}

#[test]
fn parameter_that_is_no_request_is_refused() {
    for parameter in [
        "",
        "GET / HTTP/1.1",
        "GET / HTTP/1.1\r\n",
        "GET /\r\n\r\n",
        "\r\n\r\n",
        "GET / FTP/1.1\r\n\r\n",
    ] {
        assert!(Request::parse(parameter.as_bytes()).is_err(), "{parameter:?}");
    }
    assert!(Request::parse(b"GET /\xff HTTP/1.1\r\n\r\n").is_err());
}

#[test]
fn fields_of_address_and_form_are_decoded() {
    let head = "POST /?a=1%2B1&b HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded; charset=utf-8\r\n\r\n";
    let message = format!("{head}c=x+y%E2%82%AC%&a=3&d%3D=%4");
    let form = request(&message);
    let field = |name| form.field(name);
    assert_eq!(field("a").as_deref(), Some("1+1"), "the address comes first");
    assert_eq!(field("b").as_deref(), Some(""));
    assert_eq!(field("c").as_deref(), Some("x y€%"));
    assert_eq!(field("d=").as_deref(), Some("%4"));
    assert_eq!(field("e"), None);
    let plain = request("POST / HTTP/1.1\r\ncontent-type: text/plain\r\n\r\na=1");
    assert_eq!(plain.field("a"), None);
}

#[test]
fn text_in_html_is_text() {
    assert_eq!(escape("<a href='x\"&'>"), "&lt;a href=&#39;x&quot;&amp;&#39;&gt;");
}

#[test]
fn long_body_is_sent_in_parts_that_fit_together() {
    let page: String = ('a'..='z').cycle().take(2 * PART_BYTES + 1).collect();
    let ask = |range: &str| {
        let message = format!("GET / HTTP/1.1\r\nrange: {range}\r\n\r\n");
        Response::text(page.clone()).part_for(&request(&message))
    };
    let (first, last) = (ask("bytes=0-"), ask(&format!("bytes={}-", 2 * PART_BYTES)));
    let text = format!("{first:?}");
    assert!(text.contains(&format!("bytes 0-{}/{}", PART_BYTES - 1, page.len())), "{text}");
    let text = format!("{last:?}");
    assert!(text.contains(&format!("bytes {0}-{0}/{1}", 2 * PART_BYTES, page.len())), "{text}");
    assert!(format!("{:?}", ask("bytes=2-4")).contains(&format!("bytes 2-4/{}", page.len())));
    assert!(format!("{:?}", ask(&format!("bytes={}-", page.len()))).contains("416"));
    assert_eq!(ask("bytes=4-2"), Response::text(page.clone()));
    // One who asks for no part, or of a page that is short, gets the whole.
    let whole = Response::text(page.clone());
    assert_eq!(whole.clone().part_for(&request("GET / HTTP/1.1\r\n\r\n")), whole);
    let short = Response::text("short");
    assert_eq!(
        short.clone().part_for(&request("GET / HTTP/1.1\r\nrange: bytes=0-\r\n\r\n")),
        short
    );
}

#[test]
fn file_is_of_the_kind_that_its_name_says() {
    for (name, kind) in [
        ("index.html", "text/html"),
        ("a/b.min.JS", "text/javascript"),
        ("photo.jpg", "image/jpeg"),
        ("css", "application/octet-stream"),
        ("a.css.exe", "application/octet-stream"),
        ("", "application/octet-stream"),
    ] {
        let text = format!("{:?}", Response::file(name, "x"));
        assert!(text.contains(&format!("content-type: {kind}")), "{name}: {text}");
    }
}

#[test]
fn value_or_name_of_an_event_makes_no_other_event() {
    let events = Response::events().event("1\n\ndata: 2", "a\rid: 3\n\nb");
    let expected = "id: 1  data: 2\r\ndata: a\r\ndata: id: 3\r\ndata: \r\ndata: b\r\n\r\n";
    assert_eq!(events, Response::body("text/event-stream", expected));
    let live = Response::live("21.5").again_in(core::time::Duration::from_millis(500));
    let expected = "data: 21.5\r\n\r\nretry: 500\r\n\r\n";
    assert_eq!(live, Response::body("text/event-stream", expected));
}

#[test]
fn value_of_a_field_makes_no_other_field() {
    let text = format!("{:?}", Response::see_other("/\r\nset-cookie: a=1\r\n\r\n<script>"));
    assert!(!text.contains("\\r\\nset-cookie") && text.contains("/  set-cookie"), "{text}");
}
