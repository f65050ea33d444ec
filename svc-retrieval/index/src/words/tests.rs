//! What is a word, in tables, and what holds for any text.

use proptest::prelude::*;

use super::{AnalysedQuery, Kind, Language, Languages, SearchableText, Stems, split};
use crate::ParsedQuery;

/// The words of a text as `place:word`, names in parentheses and pairs in brackets.
fn shown(text: &str) -> String {
    let show = |word: &super::Word| match word.kind {
        Kind::Part => format!("{}:{}", word.position, word.text),
        Kind::Name => format!("({}:{})", word.position, word.text),
        Kind::Character => format!("{}:{}", word.position, word.text),
        Kind::Pair => format!("[{}:{}]", word.position, word.text),
    };
    split(text).iter().map(show).collect::<Vec<_>>().join(" ")
}

#[test]
fn splits_prose_and_names() {
    let cases = [
        ("Plain words, here.", "0:plain 1:words 2:here"),
        ("getUserName", "0:get 1:user 2:name (0:getusername)"),
        (
            "HTTPServer parseJSON2Map",
            "0:http 1:server (0:httpserver) 2:parse 3:json2 4:map (2:parsejson2map)",
        ),
        ("get_user_name", "0:get 1:user 2:name (0:getusername)"),
        ("__init__ x", "0:init 1:x"),
        ("read-your-writes", "0:read 1:your 2:writes (0:readyourwrites)"),
        ("URLs IDs APIs", "0:urls 1:ids 2:apis"),
        ("utf8 sha256 3D H2O", "0:utf8 1:sha256 2:3d 3:h2o"),
        ("src/index/main.rs", "0:src 1:index 2:main 3:rs (2:mainrs)"),
        ("std::mem::swap", "0:std 1:mem 2:swap"),
        ("Node.js", "0:node 1:js (0:nodejs)"),
        ("1.2.3", "0:1 1:2 2:3 (0:1.2.3)"),
        ("v0.27.0,", "0:0 1:27 2:0 (0:0.27.0)"),
        ("tokio-1.38.0", "0:tokio 1:1 2:38 3:0 (1:1.38.0) (0:tokio1.38.0)"),
        ("pi is 3.14.", "0:pi 1:is 2:3 3:14 (2:3.14)"),
        ("C++ and C# or notepad++", "0:c++ 1:and 2:c# 3:or 4:notepad++ 4:notepad"),
        ("C++17", "0:c++ 1:17 (0:c++17)"),
        (".NET", "0:net"),
        ("jane.doe@example.com", "0:jane 1:doe 2:example 3:com (0:janedoeexamplecom)"),
        ("the user's l'avion don't", "0:the 1:user 2:l 3:avion (2:lavion) 4:don 5:t (4:dont)"),
        ("AT&T", "0:at 1:t (0:att)"),
        ("see #include <a.h>", "0:see 1:include 2:a 3:h (2:ah)"),
        ("soft\u{ad}hyphen", "0:softhyphen"),
        ("ﬁne ＡＢＣ", "0:fine 1:abc"),
        ("İstanbul", "0:i\u{307}stanbul"),
        ("🚀 — … ¿?", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn splits_writing_without_spaces() {
    let cases = [
        ("検索拡張", "0:検 [0:検索] 1:索 [1:索拡] 2:拡 [2:拡張] 3:張"),
        ("犬", "0:犬"),
        ("Rustで書く v2", "0:rust 1:で [1:で書] 2:書 [2:書く] 3:く 4:v2"),
        ("한국어", "0:한 [0:한국] 1:국 [1:국어] 2:어"),
        ("ค้น", "0:ค\u{e49} [0:ค\u{e49}น] 1:น"),
        ("ｶﾞｷﾞ", "0:ガ [0:ガギ] 1:ギ"),
        ("हिन्दी", "0:हिन्दी"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn encoded_data_is_one_word_and_long_words_are_cut() {
    assert_eq!(split("aGVsbG8gd29ybGQgaGVsbG8").len(), 1);
    let long = "x".repeat(1_000);
    assert_eq!(split(&long)[0].text.len(), 64);
    assert_eq!(split(&long), split(&long[..64]));
}

fn analysed(text: &str, languages: Languages) -> AnalysedQuery {
    AnalysedQuery::new(&ParsedQuery::parse(text), languages)
}

fn words(analysed: &AnalysedQuery) -> Vec<(&str, f32)> {
    analysed.words.iter().map(|(word, weight)| (word.as_str(), *weight)).collect()
}

#[test]
fn a_question_looks_up_stems_without_stop_words() {
    let english = Languages::default();
    assert_eq!(words(&analysed("how are the connections made", english)), [("connect", 1.0), ("made", 1.0)]);
    assert_eq!(words(&analysed("what is it", english)), [("what", 1.0), ("is", 1.0), ("it", 1.0)]);
    assert_eq!(words(&analysed("rate rates", english)), [("rate", 2.0)]);
    let name = analysed("getUserName", english);
    assert_eq!(words(&name), [("get", 1.0), ("user", 1.0), ("name", 1.0), ("getusernam", 0.5)]);
    assert_eq!(words(&analysed("検索拡", english)), [("検索", 1.0), ("索拡", 1.0)]);
    assert_eq!(words(&analysed("犬", english)), [("犬", 1.0)]);
}

#[test]
fn a_question_looks_up_the_forms_of_every_language_that_is_searched() {
    let both = Languages::from(Language::German);
    assert_eq!(words(&analysed("die Häuser", both)), [("hauser", 0.125), ("haus", 1.0), ("häuser", 0.125)]);
    assert_eq!(words(&analysed("résumé", Languages::default())), [("resum", 0.5), ("résumé", 0.5)]);
    let many = Language::ALL.iter().fold(Languages::default(), |all, language| all.with(*language));
    assert!(analysed("universal connections", many).words.len() > 4);
}

#[test]
fn a_pasted_page_is_cut() {
    let page: String = (0..5_000).map(|number| format!("w{number} ")).collect();
    assert_eq!(analysed(&page, Languages::default()).words.len(), 128);
}

#[test]
fn a_phrase_holds_the_places_of_its_words() {
    let phrase = |text: &str| {
        let analysed = analysed(&format!("\"{text}\""), Languages::default());
        let rows: Vec<String> = analysed.phrases[0]
            .rows
            .iter()
            .map(|row| {
                row.iter().map(|(place, word)| format!("{place}:{word}")).collect::<Vec<_>>().join(" ")
            })
            .collect();
        rows.join(" | ")
    };
    assert_eq!(phrase("to be or not"), "0:to 1:be 2:or 3:not");
    assert_eq!(phrase("getUserName"), "0:get 1:user 2:name | 0:getusernam");
    assert_eq!(phrase("call getUserName"), "0:call 1:get 2:user 3:name");
    assert_eq!(phrase("notepad++ works"), "0:notepad++ 1:work");
    assert_eq!(phrase("検索拡"), "0:検索 1:索拡");
}

#[test]
fn only_a_word_can_be_begun() {
    let begun = |text: &str| analysed(text, Languages::default()).prefix.map(|prefix| prefix.text);
    assert_eq!(begun("how to kuber"), Some("kuber".to_owned()));
    assert_eq!(begun("Résu"), Some("resu".to_owned()));
    for text in ["ku", "検索", "1.2.3", "c++", "x -kube", "\"kube\"", ""] {
        let expected = (text == "x -kube").then_some(()).and(None::<String>);
        assert_eq!(begun(text), expected, "{text}");
    }
}

fn searched(text: &str, language: Language) -> Vec<super::Token> {
    SearchableText::text(text, language).tokens(&mut Stems::default())
}

proptest! {
    #[test]
    fn any_text_splits_into_words_in_order(text in any::<String>()) {
        let words = split(&text);
        for word in &words {
            prop_assert!(!word.text.is_empty() && word.text.len() <= 64 && !word.text.contains(char::is_whitespace));
        }
        let parts: Vec<u32> =
            words.iter().filter(|word| word.kind != Kind::Name).map(|word| word.position).collect();
        prop_assert!(parts.is_sorted());
    }

    #[test]
    fn a_word_of_the_text_is_found_as_it_stands(
        before in "([a-z]{1,6} ){0,3}",
        word in "[a-zA-Z0-9_.+#'éäßøひ漢ก-]{1,20}",
        after in "( [a-z]{1,6}){0,3}",
        place in 0..Language::ALL.len(),
    ) {
        let language = Language::ALL[place];
        let indexed = searched(&format!("{before}{word}{after}"), language);
        let analysed = analysed(word.trim_start_matches('-'), Languages::from(language));
        for (asked, _) in &analysed.words {
            let is_form_of_another_language = analysed.words.len() > 1;
            prop_assert!(
                is_form_of_another_language || indexed.iter().any(|token| token.text == *asked),
                "{asked} is not in {indexed:?}"
            );
        }
        let is_found = analysed.words.iter().any(|(asked, _)| indexed.iter().any(|token| token.text == *asked));
        prop_assert!(analysed.words.is_empty() || is_found);
    }

    #[test]
    fn a_phrase_of_the_text_stands_in_it(
        text in prop::collection::vec("[a-zA-Z_.é漢字]{1,8}", 1..8),
        first in 0_usize..8,
        count in 1_usize..4,
    ) {
        let indexed = searched(&text.join(" "), Language::English);
        let phrase: Vec<&str> = text.iter().map(String::as_str).skip(first).take(count).collect();
        for phrase in analysed(&format!("\"{}\"", phrase.join(" ")), Languages::default()).phrases {
            let stands = |row: &Vec<(u32, String)>, from: u32| {
                row.iter().all(|(place, word)| {
                    indexed.iter().any(|token| token.position == from + place && token.text == *word)
                })
            };
            let places = 0..=indexed.last().map_or(0, |last| last.position);
            prop_assert!(places.clone().any(|from| phrase.rows.iter().any(|row| stands(row, from))), "{phrase:?}");
        }
    }

    #[test]
    fn no_question_fails(text in any::<String>(), bits in 0_usize..27) {
        let languages = Language::ALL.iter().take(bits).fold(Languages::default(), |all, one| all.with(*one));
        let analysed = analysed(&text, languages);
        prop_assert!(analysed.words.len() <= 128);
        prop_assert!(analysed.phrases.iter().chain(&analysed.excluded).all(|phrase| !phrase.rows.is_empty()));
    }
}
