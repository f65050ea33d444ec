//! Parses JSON-RPC messages from server-sent events.

/// The data of each event, in order. Comments, event names and ids are ignored.
pub(super) fn events(text: &str) -> impl Iterator<Item = String> {
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut is_over = false;
    std::iter::from_fn(move || {
        let mut data: Option<String> = None;
        while !is_over {
            let Some(line) = lines.next() else {
                // A stream that ends within an event may still have a complete message: the JSON parser decides.
                is_over = true;
                break;
            };
            if line.is_empty() {
                if data.is_some() {
                    break;
                }
                continue;
            }
            let Some(value) = line.strip_prefix("data:") else { continue };
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                None => data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            }
        }
        data
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        events(text).collect()
    }

    #[test]
    fn data_is_put_together_and_all_else_passed_over() {
        assert_eq!(
            all("event: message\nid: 7\ndata: {\"a\":\ndata: 1}\n\n: ping\n\ndata:b\r\n\r\n"),
            ["{\"a\":\n1}", "b"]
        );
        assert_eq!(all("data: cut"), ["cut"]);
        assert_eq!(all("\n\n\n"), Vec::<String>::new());
        assert_eq!(all(""), Vec::<String>::new());
        assert_eq!(all("retry: 5\n\ndata:\n\n"), [""]);
    }
}
