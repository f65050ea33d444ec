//! On a model that is made here: one layer of noise over embeddings that know which words belong together.

use std::collections::HashMap;

use cairn_chassis::entropy::{Entropy as _, SeededEntropy};
use serde_json::json;

use super::*;
use crate::contract::{self, cosine};

const HIDDEN: usize = 32;
const INNER: usize = 48;
const POSITIONS: usize = 64;

/// Words that mean the like; each row is a direction of its own.
const CONCEPTS: [&str; 6] = [
    "restart restarting database server postgres instance",
    "invoice paid late overdue payment bill",
    "read file line lines by iterate over text",
    "doctor treated patient medical care hospital",
    "recipe apple pie cinnamon football players pitch",
    "telescope observes distant galaxies compile kernel source",
];
const PLAIN: &str = "how to the a with an of in on from was";
const MARKS: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];

/// Small numbers, always the same.
struct Noise(SeededEntropy);

impl Noise {
    fn next(&self) -> f32 {
        let mut bytes = [0; 2];
        self.0.fill(&mut bytes);
        (f32::from(u16::from_le_bytes(bytes)) / 65_535.0 - 0.5) * 0.1
    }

    fn tensor(&self, shape: &[usize]) -> Tensor {
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| self.next()).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }
}

fn vocabulary() -> Vec<String> {
    let concepts = CONCEPTS.iter().flat_map(|concept| concept.split(' '));
    MARKS.into_iter().chain(PLAIN.split(' ')).chain(concepts).map(ToOwned::to_owned).collect()
}

fn word_embeddings(noise: &Noise) -> Tensor {
    let mut values = Vec::new();
    for word in vocabulary() {
        let concept = CONCEPTS.iter().position(|concept| concept.split(' ').any(|known| known == word));
        for place in 0..HIDDEN {
            let belongs = concept.is_some_and(|concept| place / 5 == concept);
            values.push(noise.next() + if belongs { 1.0 } else { 0.0 });
        }
    }
    Tensor::from_vec(values, (vocabulary().len(), HIDDEN), &Device::Cpu).unwrap()
}

fn weights() -> HashMap<String, Tensor> {
    let noise = Noise(SeededEntropy::new(7));
    let mut tensors = HashMap::new();
    let mut add = |name: &str, tensor: Tensor| drop(tensors.insert(name.to_owned(), tensor));
    add("embeddings.word_embeddings.weight", word_embeddings(&noise));
    add("embeddings.position_embeddings.weight", noise.tensor(&[POSITIONS, HIDDEN]));
    add("embeddings.token_type_embeddings.weight", noise.tensor(&[2, HIDDEN]));
    let ones = |length: usize| Tensor::ones(length, DType::F32, &Device::Cpu).unwrap();
    let linears = [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", INNER, HIDDEN),
        ("output.dense", HIDDEN, INNER),
    ];
    for (name, out, within) in linears {
        add(&format!("encoder.layer.0.{name}.weight"), noise.tensor(&[out, within]));
        add(&format!("encoder.layer.0.{name}.bias"), noise.tensor(&[out]));
    }
    for name in ["embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"] {
        add(&format!("{name}.LayerNorm.weight"), ones(HIDDEN));
        add(&format!("{name}.LayerNorm.bias"), noise.tensor(&[HIDDEN]));
    }
    tensors
}

/// As published files are: with limits of somebody's demonstration in it.
pub(super) fn tokenizer_file() -> serde_json::Value {
    let vocabulary: serde_json::Map<_, _> =
        (0..).zip(vocabulary()).map(|(id, word): (u32, _)| (word, json!(id))).collect();
    let mark = |id: u32, content: &str| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    };
    let special = |name: &str, id: u32| (name.to_owned(), json!({"id": name, "ids": [id], "tokens": [name]}));
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": (0..).zip(MARKS).map(|(id, name)| mark(id, name)).collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": serde_json::Map::from_iter([special("[CLS]", 2), special("[SEP]", 3)]),
        },
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

fn config_file() -> serde_json::Value {
    json!({
        "vocab_size": vocabulary().len(), "hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": INNER, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "pad_token_id": 0, "model_type": "bert",
    })
}

fn write(folder: &Path, name: &str, value: &serde_json::Value) {
    let path = folder.join(name);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, serde_json::to_vec(value).unwrap()).unwrap();
}

/// A folder with the model.
pub(crate) fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), CONFIG_FILE, &config_file());
    write(folder.path(), TOKENIZER_FILE, &tokenizer_file());
    candle_core::safetensors::save(&weights(), folder.path().join(WEIGHTS_FILE)).unwrap();
    folder
}

#[tokio::test]
async fn meets_the_contract() {
    contract::check(&Transformer::open(model().path()).unwrap()).await;
}

#[tokio::test]
async fn pooling_by_the_first_token_meets_the_contract_and_is_another_model() {
    let folder = model();
    let mean = Transformer::open(folder.path()).unwrap();
    write(folder.path(), POOLING_FILE, &json!({"pooling_mode_cls_token": true}));
    let first = Transformer::open(folder.path()).unwrap();
    let texts = ["the doctor treated the patient"];
    assert_ne!(
        mean.embed(TextKind::Passage, &texts).await.unwrap(),
        first.embed(TextKind::Passage, &texts).await.unwrap()
    );
    assert_ne!(mean.name(), first.name());
}

#[tokio::test]
async fn the_whole_of_a_long_text_counts() {
    let folder = model();
    write(folder.path(), LENGTH_FILE, &json!({"max_seq_length": 16}));
    let embedder = Transformer::open(folder.path()).unwrap();
    // The second half stands behind everything that one window, or the file's own limit, would hold.
    let (doctor, kernel) = ("doctor ".repeat(40), "kernel ".repeat(40));
    let both = format!("{doctor}{kernel}");
    let vectors = embedder.embed(TextKind::Passage, &[&doctor, &kernel, &both]).await.unwrap();
    let (near, far) = (cosine(&vectors[2], &vectors[0]), cosine(&vectors[2], &vectors[1]));
    assert!((near - far).abs() < 0.1, "{near} and {far}: one half outweighs the other");
    assert!(near > cosine(&vectors[0], &vectors[1]) + 0.2);
}

#[tokio::test]
async fn the_name_tells_models_apart_and_where_they_stand_not() {
    let (one, other) = (model(), model());
    let name = |folder: &Path| Transformer::open(folder).unwrap().name().to_owned();
    let digest = |name: String| name.rsplit('-').next().unwrap().to_owned();
    assert_eq!(digest(name(one.path())), digest(name(other.path())));
    let mut config = config_file();
    config["layer_norm_eps"] = json!(1e-6);
    write(other.path(), CONFIG_FILE, &config);
    assert_ne!(digest(name(one.path())), digest(name(other.path())));
}

fn with_prompts(prompts: &serde_json::Value) -> tempfile::TempDir {
    let folder = model();
    write(folder.path(), PROMPTS_FILE, &json!({"prompts": prompts, "default_prompt_name": null}));
    folder
}

#[tokio::test]
async fn prefixes_meet_the_contract_and_stand_before_texts_of_their_kind() {
    let plain = Transformer::open(model().path()).unwrap();
    let folder = with_prompts(&json!({"query": "how to: ", "passage": "recipe: "}));
    let prefixed = Transformer::open(folder.path()).unwrap();
    contract::check(&prefixed).await;
    let text = "restart the database server";
    for (kind, prefix) in [(TextKind::Query, "how to: "), (TextKind::Passage, "recipe: ")] {
        let expected = plain.embed(kind, &[format!("{prefix}{text}").as_str()]).await.unwrap();
        let embedded = prefixed.embed(kind, &[text]).await.unwrap();
        assert!(cosine(&embedded[0], &expected[0]) > 0.9999, "{kind:?}");
    }
    let query = prefixed.embed(TextKind::Query, &[text]).await.unwrap();
    let passage = prefixed.embed(TextKind::Passage, &[text]).await.unwrap();
    assert!(cosine(&query[0], &passage[0]) < 0.9999);
}

#[test]
fn prefixes_are_part_of_the_identity_and_their_absence_is_none() {
    let digest = |folder: &Path| {
        let name = Transformer::open(folder).unwrap().name().to_owned();
        name.split_once("-32-").unwrap().1.to_owned()
    };
    let plain = digest(model().path());
    assert_eq!(digest(with_prompts(&json!({})).path()), plain);
    assert_eq!(digest(with_prompts(&json!({"query": "", "document": ""})).path()), plain);
    let digests = [
        json!({"query": "how to: "}),
        json!({"passage": "how to: "}),
        json!({"query": "how to: ", "passage": "how to: "}),
        json!({"query": "read: "}),
    ]
    .map(|prompts| digest(with_prompts(&prompts).path()));
    for (place, digest) in digests.iter().enumerate() {
        assert!(digest.ends_with("-prefixed") && *digest != plain, "{digest}");
        assert!(!digests[..place].contains(digest), "{digest} is not unique");
    }
}

#[test]
fn what_is_no_model_is_an_error_that_says_why() {
    let folder = model();
    let reason = |folder: &Path| Transformer::open(folder).unwrap_err().to_string();
    fs_err::write(folder.path().join(WEIGHTS_FILE), b"no weights").unwrap();
    assert!(reason(folder.path()).contains("cannot be used"));
    let mut config = config_file();
    config["model_type"] = json!("llama");
    write(folder.path(), CONFIG_FILE, &config);
    assert!(reason(folder.path()).contains("family llama"));
    config["model_type"] = json!("bert");
    config["num_attention_heads"] = json!(0);
    write(folder.path(), CONFIG_FILE, &config);
    assert!(reason(folder.path()).contains("number of heads"));
    fs_err::remove_file(folder.path().join(CONFIG_FILE)).unwrap();
    assert!(reason(folder.path()).contains(CONFIG_FILE));
}

#[tokio::test]
async fn whatever_goes_through_at_once_the_vectors_are_the_same() {
    let folder = model();
    let limits = Limits::of_this_machine();
    let alone = Transformer::open_within(folder.path(), Limits { windows: 1, threads: 1, ..limits }).unwrap();
    let together = Transformer::open(folder.path()).unwrap();
    let texts: Vec<String> = contract::TRIPLES
        .iter()
        .flat_map(|(one, two, three)| [one, two, three])
        .map(|text| text.repeat(9))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (one, other) =
        tokio::join!(alone.embed(TextKind::Passage, &texts), together.embed(TextKind::Passage, &texts));
    for (one, other) in one.unwrap().iter().zip(other.unwrap()) {
        assert!(cosine(one, &other) > 0.9999);
    }
    // Batches that come together take turns, and each gets its own vectors.
    let batches = (0..8).map(|_| together.embed(TextKind::Passage, &texts));
    let all = futures::future::try_join_all(batches).await.unwrap();
    assert!(all.iter().all(|vectors| vectors.len() == texts.len()));
}

/// A published model, where there is one: the folder is named by `CAIRN_TEST_TRANSFORMER`.
#[tokio::test]
async fn a_published_model_knows_what_is_related() {
    let Some(folder) = std::env::var_os("CAIRN_TEST_TRANSFORMER") else {
        eprintln!("skipped: CAIRN_TEST_TRANSFORMER names no folder with a model");
        return;
    };
    let embedder = Transformer::open(Path::new(&folder)).unwrap();
    let (text, related, unrelated) = contract::TRIPLES[0];
    let vectors = embedder.embed(TextKind::Passage, &[text, related, unrelated]).await.unwrap();
    let (near, far) = (cosine(&vectors[0], &vectors[1]), cosine(&vectors[0], &vectors[2]));
    assert!(near > 0.5 && far < 0.2, "{}: {near} and {far}", embedder.name());
}
