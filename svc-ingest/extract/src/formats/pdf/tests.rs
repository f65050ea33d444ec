use super::*;

/// A PDF of pages with these contents, each with a font and an image that it may show.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|index| format!("{} 0 R", 5 + 2 * index)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Count {} /Kids [{}] >>", pages.len(), kids.join(" ")),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\nstream\n0\nendstream".to_owned(),
    ];
    for (index, content) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /I1 4 0 R >> >> >>",
            6 + 2 * index
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for place in places {
        file.push_str(&format!("{place:010} 00000 n \n"));
    }
    file.push_str(&format!(
        "trailer << /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n",
        objects.len() + 1
    ));
    file.into_bytes()
}

fn words(size: usize, y: usize, text: &str) -> String {
    format!("BT /F1 {size} Tf 50 {y} Td ({text}) Tj ET\n")
}

const IMAGE: &str = "q 600 0 0 800 0 0 cm /I1 Do Q";

#[test]
fn each_page_stands_under_its_number() {
    let first =
        [words(12, 700, "The first page holds a sentence."), words(12, 500, "And a second one.")].concat();
    let bytes = pdf(&[&first, &words(12, 700, "The other page.")]);
    let text = read(&Raw::file("a.pdf", bytes.clone())).unwrap();
    let expected =
        "## Page 1\n\nThe first page holds a sentence. And a second one.\n\n## Page 2\n\nThe other page.\n";
    assert_eq!(text.content, expected);
    let noisy = [b"A program said this.\n".as_slice(), &bytes].concat();
    assert_eq!(read(&Raw::file("a.pdf", noisy)).unwrap().content, expected);
}

#[test]
fn a_few_words_on_a_page_are_text_and_a_page_that_is_an_image_has_none() {
    assert!(read(&Raw::file("a.pdf", pdf(&[&words(12, 700, "Hi.")]))).is_ok());
    for scan in [pdf(&[IMAGE]), pdf(&[IMAGE, &[words(8, 20, "p. 2").as_str(), IMAGE].concat()]), pdf(&[""])] {
        let failed = read(&Raw::file("a.pdf", scan)).unwrap_err();
        assert!(failed.kind == FailureKind::NoText && failed.message.contains("no text layer"), "{failed}");
    }
}

#[test]
fn what_is_cut_or_no_pdf_is_broken_or_what_is_left_of_it() {
    let whole = pdf(&[&words(12, 700, "Some words on a page.")]);
    for length in (0..whole.len()).step_by(37) {
        // Any answer but a panic: readers mend what they can.
        let _ = read(&Raw::file("a.pdf", whole[..length].to_vec()));
    }
    assert_eq!(read(&Raw::file("a.pdf", "%PDF-1.4 and nothing else")).unwrap_err().kind, FailureKind::Broken);
}
