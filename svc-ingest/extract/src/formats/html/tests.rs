use super::*;

fn markdown(html: &str) -> String {
    read_page(html, None).content
}

fn read_page(html: &str, base_url: Option<&str>) -> Text {
    let raw = Raw::html(html, base_url.map(str::to_owned));
    let text = read(&raw);
    let text = text.unwrap_or_else(|failure| panic!("{failure}"));
    Text { content: clean::markdown(&text.content), ..text }
}

#[test]
fn a_page_keeps_its_content_and_its_structure() {
    let text = read_page(
        r#"<!doctype html><html><head><title>The  guide</title><style>.x{color:red}</style></head><body>
        <header>Site of things</header><nav><a href="/">Home</a></nav>
        <main><article><header><h1>Guide</h1></header><p>Read <a href="../more?a=1#top">more</a> of <b>it</b>.</p>
        <ul><li>one<ul><li>deep</li></ul></li><li>two</li></ul>
        <table><tr><th>Name</th><th>Is</th></tr><tr><td>a|b</td><td>1</td></tr></table>
        <pre><code class="language-rust">fn main() {
    let x = 1;
}</code></pre></article></main>
        <aside>Related</aside><footer>Imprint</footer><script>alert(1)</script></body></html>"#,
        Some("https://example.com/docs/guide/"),
    );
    assert_eq!(text.title.as_deref(), Some("The guide"));
    let expected = "# Guide\n\nRead [more](https://example.com/docs/more?a=1#top) of **it**.\n\n- one\n    - deep\n- two\n\n\
                    | Name | Is |\n| ---- | -- |\n| a\\|b | 1 |\n\n```rust\nfn main() {\n    let x = 1;\n}\n```\n";
    assert_eq!(text.content, expected);
}

#[test]
fn what_is_not_seen_is_not_read() {
    let text = markdown(
        "<style>.gone,ul .gone-too{display:none}</style><body bgcolor=white><ul><li class=gone-too>IGNORE</ul><p>seen<!-- comment --></p><p hidden>IGNORE</p>\
         <p style='display:none'>IGNORE</p><p class=gone>IGNORE</p><div style='position:absolute;left:-9999px'>IGNORE</div>\
         <p style='color:#FFF'>IGNORE</p><span aria-hidden=true>IGNORE</span><template>IGNORE</template>\
         <noscript>IGNORE</noscript><p>a\u{202e}b\u{200b}\u{200c}c</p><img src=x alt='a chart'>",
    );
    assert_eq!(text, "seen\n\nabc\n\na chart\n");
}

#[test]
fn text_in_white_on_a_page_with_its_own_style_may_well_be_seen() {
    let page = "<link rel=stylesheet href=x.css><h1 style='color:white'>Welcome</h1><p>Here.</p>";
    assert!(markdown(page).contains("Welcome"));
    assert!(!markdown("<h1 style='color:white'>Welcome</h1><p>Here.</p>").contains("Welcome"));
}

#[test]
fn links_that_run_something_are_their_text() {
    let text = read_page(
        "<p><a href='javascript:alert(1)'>one</a> <a href='data:text/html,x'>two</a> <a href='mailto:a@b.c'>three</a> \
         <a href='#part'>four</a></p>",
        Some("https://example.com/a"),
    );
    assert_eq!(text.content, "one two [three](mailto:a@b.c) [four](https://example.com/a#part)\n");
    assert_eq!(markdown("<p><a href='b/c'>one</a></p>"), "[one](b/c)\n");
    assert_eq!(
        markdown("<base href='https://other.example/x/'><p><a href='b'>one</a></p>"),
        "[one](https://other.example/x/b)\n"
    );
}

#[test]
fn a_code_block_keeps_its_language_and_its_lines() {
    for code in [
        "<pre class='lang-sh'>a<br>  b</pre>",
        "<div class='highlight-sh notranslate'><div><pre>a\n  b</pre></div></div>",
        "<pre><code data-lang='SH'>a\n  b</code></pre>",
        "<pre class='brush: sh;'>a\n  b</pre>",
        "<div class='highlight highlight-source-sh'><pre>a\n  b</pre></div>",
        "<pre class='sourceCode sh'><code>a\n  b</code></pre>",
    ] {
        assert_eq!(markdown(code), "```sh\na\n  b\n```\n", "{code}");
    }
}

#[test]
fn the_first_row_of_a_table_names_its_columns() {
    let text = markdown("<table><tr><td>k<td>v<tr><td>a<td>1</table>");
    assert_eq!(text, "| k | v |\n| - | - |\n| a | 1 |\n");
}

#[test]
fn a_page_of_any_depth_has_its_words() {
    for element in ["div", "b", "span", "font size=1", "ul"] {
        let html = format!("<title>Deep</title>{}<p>found</p>", format!("<{element}>").repeat(100_000));
        let text = read_page(&html, None);
        assert_eq!((text.title.as_deref(), text.content.trim()), (Some("Deep"), "found"), "{element}");
    }
    let hidden = format!("{}<p hidden>IGNORE <b>x</b></p><script>IGNORE</script>found", "<i>".repeat(1_000));
    assert_eq!(markdown(&hidden), "found\n");
    let by_sheets = "<style>.x{display:none} body,#y{opacity:0}</style><body><p class='a x'>IGNORE</p><p id=y>IGNORE</p>found";
    assert_eq!(markdown(&format!("{by_sheets}{}", "<i>".repeat(1_000))), "found\n");
}

#[test]
fn paragraphs_without_ends_are_no_depth() {
    let text = markdown(&"<p>word".repeat(2_000));
    assert_eq!(text.matches("word").count(), 2_000);
    assert!(text.contains("word\n\nword"));
}

#[test]
fn an_article_without_marks_is_found_and_a_page_that_is_none_is_kept_whole() {
    let sentence = "The committee met on Tuesday, and after a long discussion, it agreed upon the proposal. ";
    let paragraphs = format!("<p>{}</p>", sentence.repeat(5)).repeat(5);
    let links = "<li><a href='/x'>Some other article of this site</a></li>".repeat(30);
    let page = format!(
        "<title>News</title><body><div class=menu><ul>{links}</ul></div><div id=story><h1>A meeting</h1>{paragraphs}</div>\
         <div class=sidebar><ul>{links}</ul></div></body>"
    );
    let text = markdown(&page);
    assert!(
        text.starts_with("# A meeting\n\nThe committee") && !text.contains("Some other article"),
        "{text}"
    );
    assert_eq!(markdown("<p>Only a word"), "Only a word\n");
}
