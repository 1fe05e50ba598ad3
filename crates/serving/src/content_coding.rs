//! Content codings (RFC 9110, section 8.4): the daemons accept none in requests, and the gateway none in answers.

use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Returns `true` if a body has a content coding other than `identity`. Empty elements of the list count as none
/// (RFC 9110, section 5.6.1.2).
pub fn is_coded(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(CONTENT_ENCODING).iter();
    let mut codings =
        lists.flat_map(|list| list.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_coding_that_changes_the_body_counts() {
        for (lists, expected) in [
            (&[][..], false),
            (&["identity"], false),
            (&["Identity, identity"], false),
            (&[""], false),
            (&[" , identity,"], false),
            (&["gzip"], true),
            (&["identity, br"], true),
            (&["identity", "gzip"], true),
        ] {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(list));
            }
            assert_eq!(is_coded(&headers), expected, "{lists:?}");
        }
    }
}
