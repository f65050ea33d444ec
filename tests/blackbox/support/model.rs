//! A minimal transformer of the BERT family: one layer of noise over word embeddings in which synonyms are close.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The length of its vectors.
pub(crate) const DIMENSIONS: usize = 32;
/// The maximum number of tokens in its input.
pub(crate) const POSITIONS: usize = 64;
/// The files of a model folder.
pub(crate) const FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

const INNER: usize = 48;
const MARKS: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
/// Synonyms; each row is a direction of its own.
const CONCEPTS: [&str; 4] =
    ["quokka marsupial smiles", "espresso beverage coffee", "restart database server", "recipe apple pie"];
/// Vector components reserved for each concept.
const OF_A_CONCEPT: usize = 5;

/// Writes the model into a folder, which is created.
pub(crate) fn write(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.json"), config().to_string()).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer().to_string()).unwrap();
    fs::write(folder.join("model.safetensors"), weights()).unwrap();
}

fn vocabulary() -> Vec<&'static str> {
    MARKS.into_iter().chain(CONCEPTS.iter().flat_map(|concept| concept.split(' '))).collect()
}

fn config() -> Value {
    json!({
        "vocab_size": vocabulary().len(), "hidden_size": DIMENSIONS, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": INNER, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "pad_token_id": 0, "model_type": "bert",
    })
}

fn tokenizer() -> Value {
    let ids: Map<String, Value> =
        (0..).zip(vocabulary()).map(|(id, word): (u32, _)| (word.to_owned(), json!(id))).collect();
    let mark = |id: usize, content: &str| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    };
    let marks: Vec<Value> = MARKS.iter().enumerate().map(|(id, content)| mark(id, content)).collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": marks,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]},
            },
        },
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": ids},
    })
}

/// Small, reproducible numbers.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f32::from((self.0 >> 16) as u16) / 65_535.0 - 0.5) * 0.1
    }

    fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// Every tensor: name, shape and values.
fn tensors() -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let mut noise = Noise(7);
    let mut all = Vec::new();
    let mut add = |name: &str, shape: &[usize], numbers: Vec<f32>| {
        all.push((name.to_owned(), shape.to_vec(), numbers));
    };
    let words = word_embeddings(&mut noise);
    add("embeddings.word_embeddings.weight", &[vocabulary().len(), DIMENSIONS], words);
    for (name, rows) in [("position", POSITIONS), ("token_type", 2)] {
        let numbers = noise.numbers(rows * DIMENSIONS);
        add(&format!("embeddings.{name}_embeddings.weight"), &[rows, DIMENSIONS], numbers);
    }
    for (name, out, within) in [
        ("attention.self.query", DIMENSIONS, DIMENSIONS),
        ("attention.self.key", DIMENSIONS, DIMENSIONS),
        ("attention.self.value", DIMENSIONS, DIMENSIONS),
        ("attention.output.dense", DIMENSIONS, DIMENSIONS),
        ("intermediate.dense", INNER, DIMENSIONS),
        ("output.dense", DIMENSIONS, INNER),
    ] {
        let numbers = noise.numbers(out * within);
        add(&format!("encoder.layer.0.{name}.weight"), &[out, within], numbers);
        add(&format!("encoder.layer.0.{name}.bias"), &[out], noise.numbers(out));
    }
    for name in ["embeddings", "encoder.layer.0.attention.output", "encoder.layer.0.output"] {
        add(&format!("{name}.LayerNorm.weight"), &[DIMENSIONS], vec![1.0; DIMENSIONS]);
        add(&format!("{name}.LayerNorm.bias"), &[DIMENSIONS], noise.numbers(DIMENSIONS));
    }
    all
}

fn word_embeddings(noise: &mut Noise) -> Vec<f32> {
    let mut numbers = Vec::new();
    for word in vocabulary() {
        let concept = CONCEPTS.iter().position(|concept| concept.split(' ').any(|known| known == word));
        for place in 0..DIMENSIONS {
            let belongs = concept.is_some_and(|concept| place / OF_A_CONCEPT == concept);
            numbers.push(noise.next() + if belongs { 1.0 } else { 0.0 });
        }
    }
    numbers
}

/// The safetensors format: header length, header, values.
fn weights() -> Vec<u8> {
    let (mut header, mut numbers) = (Map::new(), Vec::new());
    for (name, shape, of_tensor) in tensors() {
        let begin = numbers.len();
        numbers.extend(of_tensor.into_iter().flat_map(f32::to_le_bytes));
        let place = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, numbers.len()]});
        header.insert(name, place);
    }
    let mut header = Value::Object(header).to_string();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut file = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    file.extend(numbers);
    file
}
