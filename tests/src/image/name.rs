//! Image names.

use std::str::FromStr;

use super::ImageError;

/// A name with a tag, as container runtimes write it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    full: String,
    tag_at: usize,
}

impl ImageName {
    /// The full name: `docker.io/library/native-transfer:1.0` for `native-transfer:1.0`.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// The tag alone.
    pub fn tag(&self) -> &str {
        &self.full[self.tag_at..]
    }
}

impl FromStr for ImageName {
    type Err = ImageError;

    /// Reads `[HOST[:PORT]/]PATH[:TAG]`. Where host or tag is missing, Docker's rules fill in `docker.io/library` and `latest`.
    fn from_str(text: &str) -> Result<ImageName, ImageError> {
        let refused = || ImageError::Name(text.to_owned());
        let last = text.rfind('/').map_or(0, |at| at + 1);
        let (path, tag) = match text[last..].find(':') {
            Some(colon) => (&text[..last + colon], &text[last + colon + 1..]),
            None => (text, "latest"),
        };
        let (host, path) = match path.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest.to_owned()),
            Some(_) => ("docker.io", path.to_owned()),
            None => ("docker.io", format!("library/{path}")),
        };
        let component = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
        };
        let host_good = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".:-".contains(&b));
        let tag_good = (1..=128).contains(&tag.len())
            && !tag.starts_with(['.', '-'])
            && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        if text.len() > 255 || !host_good || !tag_good || !path.split('/').all(component) {
            return Err(refused());
        }
        let full = format!("{host}/{path}:{tag}");
        Ok(ImageName { tag_at: full.len() - tag.len(), full })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_written_out_as_runtimes_do() {
        for (short, full, tag) in [
            ("native-transfer:test", "docker.io/library/native-transfer:test", "test"),
            ("native-transfer", "docker.io/library/native-transfer:latest", "latest"),
            ("team/native-transfer:1.0", "docker.io/team/native-transfer:1.0", "1.0"),
            ("registry.example.com:5000/a/b:1", "registry.example.com:5000/a/b:1", "1"),
            ("localhost/a:1", "localhost/a:1", "1"),
        ] {
            let name: ImageName = short.parse().unwrap();
            assert_eq!((name.full(), name.tag()), (full, tag));
        }
    }

    #[test]
    fn what_a_runtime_would_refuse_is_refused() {
        for text in ["", ":1", "a:", "A:1", "a b:1", "a@sha256:00", "a//b:1", "/a:1", "a:1:2", "-a:1", "a:.1"] {
            assert!(text.parse::<ImageName>().is_err(), "{text}");
        }
        assert!("a".repeat(300).parse::<ImageName>().is_err());
    }
}
