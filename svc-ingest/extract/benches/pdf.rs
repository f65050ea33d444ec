//! How much of the words of real PDFs is read, beside poppler's `pdftotext`.
//!
//! `cargo bench -p cairn-extract --bench pdf -- FOLDER [--check]`: a line for each file whose words differ much, those that
//! failed with their sentence, and the mean F1 over the bag of words of files where poppler finds at least 20.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use cairn_extract::{CHILD_COMMAND, Extractor, Raw, Settings};

/// What the mean must reach.
const MIN_MEAN: f64 = 0.91;
/// Files with fewer words say nothing.
const MIN_WORDS: usize = 20;
/// Files below that are listed.
const LISTED_BELOW: f64 = 0.8;

struct Compared {
    name: String,
    f1: f64,
    words: usize,
    took: Duration,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == CHILD_COMMAND) {
        return Ok(cairn_extract::child_main());
    }
    let Some(folder) = arguments.iter().find(|argument| !argument.starts_with('-')) else {
        println!("skipped: name a folder of PDFs: cargo bench -p cairn-extract --bench pdf -- FOLDER");
        return Ok(ExitCode::SUCCESS);
    };
    if Command::new("pdftotext").arg("-v").output().is_err() {
        println!("skipped: pdftotext (poppler) is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    let mut files = Vec::new();
    collect(Path::new(folder), &mut files)?;
    files.sort_unstable();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (compared, failed) = runtime.block_on(compare(&files))?;
    let mean = report(files.len(), compared, &failed);
    let missed = arguments.iter().any(|argument| argument == "--check") && mean < MIN_MEAN;
    Ok(if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pdf")) {
            files.push(path);
        }
    }
    Ok(())
}

async fn compare(files: &[PathBuf]) -> Result<(Vec<Compared>, Vec<(String, String)>), Box<dyn Error>> {
    let extractor = Extractor::start(Settings::default());
    let (mut compared, mut failed) = (Vec::new(), Vec::new());
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let begun = Instant::now();
        let text = extractor.extract(Raw::file(name.clone(), std::fs::read(file)?)).await;
        let took = begun.elapsed();
        let expected = Command::new("pdftotext").args(["-q", "-enc", "UTF-8"]).arg(file).arg("-").output()?;
        let expected = words(&String::from_utf8_lossy(&expected.stdout));
        let count = expected.values().sum();
        match text {
            Ok(text) if count >= MIN_WORDS => {
                let found = words(&without_page_headings(&text.content));
                compared.push(Compared { name, f1: f1(&found, &expected), words: count, took });
            }
            Ok(_) => {}
            Err(failure) => {
                // A file of which poppler reads something, and we do not, counts as nothing read.
                if count >= MIN_WORDS {
                    compared.push(Compared { name: name.clone(), f1: 0.0, words: count, took });
                }
                failed.push((name, failure.message));
            }
        }
    }
    Ok((compared, failed))
}

fn without_page_headings(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("## Page ")).collect::<Vec<_>>().join("\n")
}

/// How often each word occurs: runs of letters and digits, in lower case.
fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    words
}

fn f1(found: &HashMap<String, usize>, expected: &HashMap<String, usize>) -> f64 {
    let common: usize = found.iter().map(|(word, count)| count.min(expected.get(word).unwrap_or(&0))).sum();
    let all: usize = found.values().sum::<usize>() + expected.values().sum::<usize>();
    if all == 0 { 0.0 } else { 2.0 * common as f64 / all as f64 }
}

fn report(files: usize, mut compared: Vec<Compared>, failed: &[(String, String)]) -> f64 {
    compared.sort_by(|one, other| one.f1.total_cmp(&other.f1));
    println!("{:<50} {:>6} {:>8} {:>9}", "file", "F1", "words", "ms");
    for file in compared.iter().take_while(|file| file.f1 < LISTED_BELOW) {
        println!("{:<50} {:>6.3} {:>8} {:>9}", file.name, file.f1, file.words, file.took.as_millis());
    }
    println!("\nfailed: {} of {files}", failed.len());
    for (name, message) in failed {
        println!("{name:<50} {message}");
    }
    let at = |part: f64| compared.get((compared.len() as f64 * part) as usize).map_or(0.0, |file| file.f1);
    let mean = compared.iter().map(|file| file.f1).sum::<f64>() / compared.len().max(1) as f64;
    let took: Duration = compared.iter().map(|file| file.took).sum();
    println!(
        "\n{} files with {MIN_WORDS} words or more: mean F1 {mean:.3} (at least {MIN_MEAN}), median {:.3}, 10th percentile {:.3}, \
         {:.1} s in all",
        compared.len(),
        at(0.5),
        at(0.1),
        took.as_secs_f64(),
    );
    mean
}
