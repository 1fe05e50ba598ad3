use http::HeaderValue;

use super::*;

fn delimiter(content_type: &str) -> Result<Delimiter, MultipartError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap());
    Delimiter::of(&headers)
}

fn read(body: impl Into<Vec<u8>>) -> Result<Vec<BodyPart>, MultipartError> {
    parts(&Bytes::from(body.into()), &delimiter("multipart/form-data; boundary=B").unwrap(), 2)
}

fn refused(body: impl Into<Vec<u8>>) -> (MultipartDefect, Option<usize>) {
    let unreadable = read(body).unwrap_err();
    (unreadable.what, unreadable.offset)
}

fn form(head: &str, body: &str) -> String {
    format!("--B\r\n{head}\r\n{body}\r\n--B--\r\n")
}

const NAMED: &str = "Content-Disposition: form-data; name=\"statement\"; filename=\"x.cose\"\r\n";

#[test]
fn parts_are_slices_of_the_body() {
    let body =
        format!("--B\r\n{NAMED}Content-Type: application/cose\r\n\r\n\r\n\0\r\n--\r\n--B\r\n\r\n\r\n--B--");
    let parts = read(body).unwrap();
    assert_eq!(parts.len(), 2);
    assert_eq!(&parts[0].body[..], b"\r\n\0\r\n--");
    assert_eq!(parts[0].name(), Ok("statement"));
    assert_eq!(parts[0].media_type().unwrap().essence, "application/cose");
    assert_eq!(&parts[1].body[..], b"");
    assert!(parts[1].name().is_err() && parts[1].media_type().is_none());
}

#[test]
fn a_boundary_is_named_once_and_as_rfc_2046_has_it() {
    for good in ["B", "\"a b?=:/.,-_+()'\"", "----WebKitFormBoundary7MA4YWxk", &"x".repeat(70)] {
        assert!(delimiter(&format!("multipart/mixed; charset=utf-8; Boundary={good}")).is_ok(), "{good}");
    }
    for none in [
        "multipart/mixed",
        "multipart/mixed; boundary=",
        "multipart/mixed; boundary=A; boundary=A",
        "multipart/mixed; boundary=\"A",
    ] {
        assert_eq!(delimiter(none).unwrap_err().what, MultipartDefect::NoBoundary, "{none}");
    }
    for bad in ["a*b", "\"a \"", "\"a\\\"b\"", "ä", &"x".repeat(71), &"x".repeat(5000)] {
        assert_eq!(
            delimiter(&format!("multipart/mixed; boundary={bad}")).unwrap_err().what,
            MultipartDefect::BadBoundary,
            "{bad}"
        );
    }
    assert_eq!(Delimiter::of(&HeaderMap::new()).unwrap_err().what, MultipartDefect::NoBoundary);
}

#[test]
fn nothing_stands_before_between_or_behind_the_parts() {
    let whole = form(NAMED, "x");
    assert!(read(whole.as_str()).is_ok());
    assert!(read(whole.trim_end()).is_ok(), "the last line end may be absent");
    assert_eq!(refused(format!("hello\r\n{whole}")), (MultipartDefect::Preamble, Some(0)));
    assert_eq!(refused(format!("\r\n{whole}")), (MultipartDefect::Preamble, Some(0)));
    assert_eq!(refused(format!("{whole}bye")).0, MultipartDefect::Epilogue);
    assert_eq!(refused(format!("{whole}\r\n")).0, MultipartDefect::Epilogue);
    assert_eq!(refused(whole.replace("--B\r\n", "--B \r\n")), (MultipartDefect::BadDelimiter, Some(3)));
    assert_eq!(refused(whole.replace("--B--", "--B---")).0, MultipartDefect::Epilogue);
    assert_eq!(refused(whole.replace("\r\n", "\n")), (MultipartDefect::BadDelimiter, Some(3)));
    assert_eq!(refused(format!("--B\r\n{NAMED}\r\nx\r\n--Bee\r\n--B--")).0, MultipartDefect::BadDelimiter);
}

#[test]
fn a_body_without_parts_is_none() {
    assert_eq!(refused("--B--\r\n").0, MultipartDefect::NoParts);
}

#[test]
fn every_prefix_of_a_body_is_cut_short() {
    let whole = form(NAMED, "x");
    for end in 0..whole.trim_end().len() {
        let what = refused(&whole[..end]).0;
        let expected =
            if (1..3).contains(&end) { MultipartDefect::Preamble } else { MultipartDefect::CutShort };
        assert_eq!(what, expected, "{:?}", &whole[..end]);
    }
}

#[test]
fn part_headers_are_few_short_and_whole() {
    let many: String = (0..=PART_HEADERS).map(|n| format!("x-{n}: 1\r\n")).collect();
    assert_eq!(refused(form(&many, "x")).0, MultipartDefect::LargeHeaders);
    let long = format!("x: {}\r\n", "y".repeat(PART_HEADER_BYTES));
    assert_eq!(refused(form(&long, "x")).0, MultipartDefect::LargeHeaders);
    assert_eq!(refused(form(&"x".repeat(1 << 20), "x")).0, MultipartDefect::LargeHeaders);
    for bad in [
        "no colon\r\n",
        ": no name\r\n",
        "a b: c\r\n",
        "a: b\r\n folded\r\n",
        "a: b\nc: d\r\n",
        "a: b\rc: d\r\n",
        "a: \u{0}\r\n",
    ] {
        assert_eq!(refused(form(bad, "x")).0, MultipartDefect::BadHeader, "{bad:?}");
    }
    assert_eq!(refused(form("A: b\r\na: b\r\n", "x")).0, MultipartDefect::HeaderTwice);
    assert_eq!(refused("--B\r\nno end of headers\r\n--B--").0, MultipartDefect::BadHeader);
}

#[test]
fn a_transfer_encoding_is_refused_unless_it_encodes_nothing() {
    for plain in ["binary", "8bit", "7BIT"] {
        assert!(
            read(form(&format!("{NAMED}Content-Transfer-Encoding: {plain}\r\n"), "x")).is_ok(),
            "{plain}"
        );
    }
    for encoded in ["base64", "quoted-printable", "x-uuencode", ""] {
        let body = form(&format!("{NAMED}Content-Transfer-Encoding: {encoded}\r\n"), "eA==");
        assert_eq!(refused(body).0, MultipartDefect::Encoded, "{encoded}");
    }
}

#[test]
fn parts_beyond_the_limit_are_not_read() {
    let mut body = String::new();
    (0..10_000).for_each(|_| body.push_str("--B\r\n\r\nx\r\n"));
    body.push_str("--B--");
    assert_eq!(refused(body).0, MultipartDefect::TooManyParts(2));
}

#[test]
fn a_body_of_almost_boundaries_takes_no_longer_than_any_other() {
    let boundary = format!("{}b", "a".repeat(69));
    let delimiter = delimiter(&format!("multipart/mixed; boundary={boundary}")).unwrap();
    let time_of = |line: &str| {
        let body = Bytes::from(format!("--{boundary}\r\n\r\n{}", line.repeat((16 << 20) / line.len())));
        let started = std::time::Instant::now();
        assert_eq!(parts(&body, &delimiter, 2).unwrap_err().what, MultipartDefect::CutShort);
        started.elapsed()
    };
    let [almost, other] = ["--", "xx"].map(|start| time_of(&format!("\r\n{start}{}", "a".repeat(69))));
    assert!(almost < 4 * other + std::time::Duration::from_secs(1), "{almost:?}, and others {other:?}");
}

/// Every body that this parser accepts is parsed in the same way by another one.
///
/// The other parser is laxer, so it gets only bodies that this one accepts. It takes the first empty line for the end
/// of the headers of a part without headers, so those bodies are left out.
#[test]
fn what_is_read_here_is_read_the_same_elsewhere() {
    let whole =
        [form(NAMED, "one"), form("A: b\r\nContent-Disposition: form-data; name=payload\r\n", "\r\n--\r\n")];
    let whole = whole.concat().replacen("--B--\r\n", "", 1).into_bytes();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut body = whole.clone();
        for _ in 0..=next(3) {
            let at = next(body.len());
            match next(3) {
                0 => body[at] = b"\r\n-B:; =\"x\0"[next(11)],
                1 => drop(body.remove(at)),
                _ => body.insert(at, b"\r\n-B:; =\"x\0"[next(11)]),
            }
        }
        match read(body.clone()) {
            Ok(parts) if parts.iter().all(|part| !part.headers.is_empty()) => {
                accepted += 1;
                let ours: Vec<_> = parts
                    .iter()
                    .map(|part| (part.name().ok().map(str::to_owned), part.body.clone()))
                    .collect();
                assert_eq!(elsewhere(body.clone(), &ours), ours, "{:?}", String::from_utf8_lossy(&body));
            }
            Ok(_) => {}
            Err(_) => refused += 1,
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} accepted, {refused} refused");
}

type Named = Vec<(Option<String>, Bytes)>;

/// The parts as multer parses them. Where this parser finds no usable name, multer may find another one.
fn elsewhere(body: Vec<u8>, ours: &Named) -> Named {
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(body)]);
    let mut multipart = multer::Multipart::new(stream, "B");
    let mut found: Named = Vec::new();
    futures::executor::block_on(async {
        while let Some(field) = multipart.next_field().await.expect("it reads on") {
            let named = ours.get(found.len()).is_some_and(|(name, _)| name.is_some());
            let name = field.name().filter(|_| named).map(str::to_owned);
            found.push((name, field.bytes().await.expect("it reads the part")));
        }
    });
    found
}

#[test]
fn names_of_form_parts_are_given_once_and_in_form_data() {
    for (head, name) in [
        ("Content-Disposition: form-data; name=payload\r\n", Some("payload")),
        (
            "content-disposition: FORM-DATA; filename=\"name=payload\"; NAME=\"statement\"\r\n",
            Some("statement"),
        ),
        ("Content-Disposition: attachment; name=payload\r\n", None),
        ("Content-Disposition: form-data; name=a; name=b\r\n", None),
        ("Content-Disposition: form-data; name*=UTF-8''payload\r\n", None),
        ("Content-Type: text/plain\r\n", None),
    ] {
        assert_eq!(read(form(head, "x")).unwrap()[0].name().ok(), name, "{head}");
    }
}
